"""Leagues: schemes over classes of drawn scenarios, with ranks, clouds and each one's worst day.

Read `classes` (the files in leagues/) first, then `drawing` (how scenarios are drawn), `entrants` (how a scheme enters
a scenario), `running` (the games and results), `scoring` (the ranking).
"""

from paceline.leagues.running import League, league

__all__ = ["League", "league"]
