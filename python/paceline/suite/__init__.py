"""Suites with verdicts: cases as data beside their thresholds and sources, run for any scheme or queue.

A suite is a folder `suites/NAME/` of scenarios and `suite.toml`: what is measured, the cases, and the thresholds of
each. It is a sibling of a paper (`paceline.papers`), whose metrics, expressions, points, runner, figures and page
parts it uses. Two things differ: the scheme or queue under test comes from outside (`subject`), and a number is
compared with a threshold (`verdict`), not with a published value.

Read `suite` (the data), `loading` (reading it) and `running` (running and judging) first.
"""
