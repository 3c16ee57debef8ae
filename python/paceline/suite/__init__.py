"""Suites with verdicts: cases as data beside their thresholds and sources, run for any scheme or queue.

A suite is a folder `suites/NAME/` of scenarios and `suite.toml`: what is measured, the cases, and what each is held
against. It is the sister of a paper (`paceline.papers`), whose metrics, expressions, points, runner, figures and
page parts it uses. What is its own: the scheme or queue under test is put in from outside (`subject`), and a number is
held against a threshold (`verdict`), not against what was published.

Look first at `suite` (what there is), `loading` (how it is read), `running` (how it is run and judged).
"""
