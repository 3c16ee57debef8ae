"""Makes `needs` importable from every test below this folder (pytest puts a conftest's folder on the path), and tries
tests in real time again that failed while others had the processors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadFileScheduling, Scheduling

import dev_package  # noqa: F401
from realtime import TRIES, Disturbance

# An example may take its time where others have the processors. The same examples each time: what a new draw finds
# would stop a change that has nothing to do with it.
hypothesis.settings.register_profile("patient", deadline=None, derandomize=True)
hypothesis.settings.load_profile("patient")

_disturbance = Disturbance()

SPREAD = ("tests/test_docs_output.py",)
"""Long files whose tests any process may run: they share nothing."""


FIRST = "tests/test_worlds_real.py"
"""The longest of the tests in real time: what begins last is waited for at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """`--dist loadfile`: a file's tests stay together for their fixtures, but for those of `SPREAD`."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in SPREAD else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Takes `ByFile` for xdist's own."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test in real time that failed is tried again, from its module's fixtures on, if others had some of the
    processors meanwhile. If they had much of them each time it is inconclusive, a skip even where skips are forbidden:
    the host has all that the test needs."""
    if item.get_closest_marker("realtime") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _tried(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _tried(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
    much, said = True, []
    for attempt in range(TRIES):
        _disturbance.begin(item.path, restart=attempt > 0)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        taken = _disturbance.taken()
        much &= taken.much
        said.append([str(getattr(report.longrepr, "reprcrash", "")) for report in reports if report.failed])
        if not taken.some or not said[-1]:
            break
        # all fixtures anew
        item.session._setupstate.teardown_exact(None)
        if hasattr(item, "_initrequest"):
            item._initrequest()
    path, line, _ = item.location
    for report in reports:
        # What fails with the same words each time is no matter of time, unless they are of an object and its address or
        # the program itself says that the host may be too busy.
        timely = any(words != said[0] or " at 0x" in str(words) or "too busy" in str(words) for words in said)
        if report.failed and much and timely:
            report.outcome = "skipped"
            words = report.longreprtext[-500:]
            report.longrepr = (
                path,
                line or 0,
                f"inconclusive: {taken}, {TRIES} times; it failed with: {words}",
            )
        yield report
