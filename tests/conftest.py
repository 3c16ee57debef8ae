"""Makes `needs` importable from every test below this folder (pytest puts a conftest's folder on the path), and tries
tests in real time again that failed while others had the processors."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from realtime import MOST_STEAL, MUCH_STEAL, TRIES, Steal

# an example may take its time where others have the processors
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

_steal = Steal()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test in real time that failed is tried again, from its module's fixtures on, if the processors were given to
    others meanwhile. If they had much of them each time it is inconclusive, a skip even where skips are forbidden: the
    host has all that the test needs."""
    if item.get_closest_marker("realtime") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _tried(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _tried(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
    _steal.begin(item.path)
    least, said = 1.0, []
    for _ in range(TRIES):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        steal = _steal.share()
        least = min(least, steal)
        said.append([str(getattr(report.longrepr, "reprcrash", "")) for report in reports if report.failed])
        if steal <= MOST_STEAL or not said[-1]:
            break
        # all fixtures anew
        item.session._setupstate.teardown_exact(None)
        _steal.begin(None)
        _steal.begin(item.path)
        if hasattr(item, "_initrequest"):
            item._initrequest()
    path, line, _ = item.location
    for report in reports:
        # what fails with the same words each time is no matter of time
        if report.failed and least > MUCH_STEAL and any(words != said[0] for words in said):
            report.outcome = "skipped"
            why = f"inconclusive: others took {least:.1%} of the processors' time or more"
            report.longrepr = (
                path,
                line or 0,
                f"{why}, {TRIES} times; it failed with: {report.longreprtext[-500:]}",
            )
        yield report
