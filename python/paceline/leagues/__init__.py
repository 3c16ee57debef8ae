"""Leagues: schemes over classes of drawn scenarios, with ranks, clouds and each one's worst day.

Look first at `classes` (what a file of leagues/ says), `drawing` (how it is drawn), `entrants` (how a scheme is put
in), `running` (who plays, and what comes of it), `scoring` (who is ahead).
"""

from paceline.leagues.running import League, league

__all__ = ["League", "league"]
