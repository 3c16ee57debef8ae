"""What threads import first: nothing, for libraries that put their imports off break where threads meet."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SCENARIO = """
duration = "0.1 s"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
[flow.a]
"""

WAYS = {
    "threads": """
        import paceline
        paceline.run(SCENARIO, runs=8, workers=4, record=("cwnd", "rate"))
    """,
    "kept": """
        import paceline
        paceline.run(SCENARIO, runs=8, workers=4, record=("cwnd", "rate"), out=FOLDER + "/run")
    """,
    "an executor of one's own": """
        import paceline
        from concurrent.futures import ThreadPoolExecutor
        paceline.run(SCENARIO, runs=8, record=("cwnd", "rate"), executor=ThreadPoolExecutor(4))
    """,
    "Polars imported before": """
        import polars
        import paceline
        paceline.sweep(SCENARIO, {"flow.a.cc": ["newreno", "vegas"]}, runs=4, workers=4, record=("cwnd",))
    """,
    "runs in real time": """
        import math, paceline
        from paceline import _core
        from paceline.emulator import realtime_queue
        from paceline.results.results import RunRecord
        from paceline.results.store import Store
        from paceline.simulate.points import Point
        def runner(scenario, seed, record, every_s):
            return RunRecord.of(seed, _core.run(scenario, seed, list(record), every_s))
        realtime_queue.in_turn(
            [Point(paceline.parse(SCENARIO))], [1, 2, 3, 4], runner, over="nothing", record=("cwnd",),
            record_every_s=0.02, store=Store(FOLDER), budget=realtime_queue.Budget(4, math.inf),
        )
    """,
}
"""Each way to threads that make tables."""

SEES = """
import sys, threading

class Sees:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            print("imported on a thread:", name)

sys.meta_path.insert(0, Sees)
"""

MEETS = """
import importlib, itertools, threading, time

real, many = importlib.import_module, itertools.count(1)
def slowly(name, package=None):
    module = real(name, package)
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.1 * next(many))
    return module
importlib.import_module = slowly
"""
"""Each thread at which a library imports something is there for longer than the one before: they meet."""


def said(before: str, way: str, folder: str) -> str:
    """What a fresh process prints that goes this way to threads."""
    values = f"SCENARIO, FOLDER = {SCENARIO!r}, {folder!r}\n"
    ran = subprocess.run(
        [sys.executable, "-c", before + values + textwrap.dedent(WAYS[way])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("way", WAYS)
def test_no_thread_imports_anything_first(way: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert said(SEES, way, str(tmp_path_factory.mktemp("kept"))) == ""


def test_the_check_sees_an_import() -> None:
    code = (
        "import threading\nthread = threading.Thread(target=__import__, args=('colorsys',))\nthread.start()\n"
    )
    ran = subprocess.run([sys.executable, "-c", SEES + code], capture_output=True, text=True, check=True)
    assert ran.stdout == "imported on a thread: colorsys\n"


def test_threads_that_meet_at_an_import_do_not_fail(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Once a TypeError in some 25 fresh processes beside load: `'module' object does not support item assignment`."""
    said(MEETS, "threads", str(tmp_path_factory.mktemp("kept")))
