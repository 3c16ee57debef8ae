"""Controllers in C and C++: a twin gives the built-in one's bits, and libraries that do not fit are refused by name."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path

import pytest

import paceline
from needs import require
from own_controllers import LOSSY, PLAIN, TWINS, same
from paceline import ControllerError, ScenarioError, own_controllers


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in C and C++, built."""
    require("cc")
    folder = tmp_path_factory.mktemp("libraries")
    for compiler, source in (("cc", "reno_twin.c"), ("c++", "binomial.cc")):
        build(folder / Path(source).with_suffix(".so"), TWINS / source, compiler)
    return folder


def build(library: Path, source: Path, compiler: str = "cc") -> None:
    warnings = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{own_controllers.include()}"]
    subprocess.run([compiler, *warnings, str(source), "-o", str(library)], check=True)


def test_renos_twin_in_c_gives_the_same_bits(libraries: Path) -> None:
    cc = f"library:{libraries / 'reno_twin.so'}"
    ours = paceline.run(LOSSY, runs=3, set={"flow.own.cc": cc, "flow.pages.cc": cc}, record=("cwnd",))
    same(ours, paceline.run(LOSSY, runs=3, record=("cwnd",)), "cwnd")


def test_parameters_are_as_those_of_built_in_ones(libraries: Path, tmp_path: Path) -> None:
    cc = f"library:{libraries / 'binomial.so'}:sqrt"
    results = paceline.run(
        PLAIN, set={"flow.own.cc": cc, "flow.own.params": {"beta": 0.9}}, record=("cwnd",), runs=2
    )
    cuts = results.series("cwnd")["last_cut_packets"].drop_nans()
    assert 0 < cuts.min() < cuts.max()  # type: ignore[operator]
    less = paceline.run(PLAIN, set={"flow.own.cc": cc, "flow.own.params": {"beta": 0.01}}, runs=2)
    assert less.flows["goodput_bps"].mean() > results.flows["goodput_bps"].mean()  # type: ignore[operator]
    for params, said in (
        ({"beta": 2}, "`2` must be from 0.01 to 1"),
        ({"betta": 0.5}, "did you mean `beta`?"),
    ):
        with pytest.raises(ScenarioError, match=said):
            paceline.load(PLAIN, {"flow.own.cc": cc, "flow.own.params": params})


NONSENSE = """
#include <math.h>
#include <paceline.h>
static void on_tcp(void *s, const paceline_tcp_event *e, const paceline_path *p, paceline_window *own) {
    (void)s; (void)e; (void)p;
    own->window = 5; %s
}
static const paceline_controller C[] = {{ .abi = %s, .machine = %s, .name = "bad", %s }};
const paceline_controller *paceline_controllers(uint32_t abi, uint32_t *count) { (void)abi; *count = 1; return C; }
"""


@pytest.mark.parametrize(
    ("decision", "abi", "machine", "more", "said"),
    [
        ("", "7", "PACELINE_TCP", ".on_tcp = on_tcp", "has ABI 7 of paceline.h, and this Paceline has 1"),
        ("", "PACELINE_ABI", "9", ".on_tcp = on_tcp", "machine = 9: PACELINE_TCP"),
        ("", "PACELINE_ABI", "PACELINE_TFRC", ".on_tcp = on_tcp", "on_tfrc is NULL"),
        ("", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp, .recovery = 9", "recovery = 9"),
        ("", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp, .needs = 1", "want recovery = PACELINE_RACK"),
        ("", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp, .needs = 16", "needs = 16"),
        ("", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp, .gauge_count = 2", "where they are is NULL"),
        ("own->window = NAN;", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp", "window = NaN"),
        ("own->window = 1e30;", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp", "window = 1000"),
        ("own->pacing = -1;", "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp", "pacing = -1"),
        ('own->failed = "no more";', "PACELINE_ABI", "PACELINE_TCP", ".on_tcp = on_tcp", "no more"),
    ],
)
def test_libraries_that_do_not_fit(
    tmp_path: Path, decision: str, abi: str, machine: str, more: str, said: str
) -> None:
    require("cc")
    source = tmp_path / "bad.c"
    source.write_text(NONSENSE % (decision, abi, machine, more))
    flags = ["-Wno-unused-function", "-Wno-missing-field-initializers"]
    command = ["cc", *flags, "-shared", "-fPIC", f"-I{own_controllers.include()}", str(source), "-o"]
    subprocess.run([*command, str(tmp_path / "bad.so")], check=True)
    with pytest.raises(ControllerError if decision else ScenarioError, match=said):
        paceline.run(PLAIN, set={"flow.own.cc": f"library:{tmp_path / 'bad.so'}"})


def test_a_library_has_to_be_named_if_it_has_several(libraries: Path) -> None:
    for name in ("", ":cubic"):
        with pytest.raises(ScenarioError, match="has the controllers iiad, sqrt: name one"):
            paceline.load(PLAIN, {"flow.own.cc": f"library:{libraries / 'binomial.so'}{name}"})
    with pytest.raises(ScenarioError, match="does not export paceline_controllers"):
        paceline.load(PLAIN, {"flow.own.cc": "library:libm.so.6"} | {"flow.own.cc": f"library:{_libm()}"})


def _libm() -> str:
    maps = Path("/proc/self/maps").read_text().split()
    return next(word for word in maps if "/libm" in word and ".so" in word)


def test_a_library_that_has_changed_is_not_the_scenarios(libraries: Path, tmp_path: Path) -> None:
    library = tmp_path / "changes.so"
    build(library, TWINS / "reno_twin.c")
    loaded = paceline.load(PLAIN, {"flow.own.cc": f"library:{library}"})
    kept = pickle.dumps(loaded)
    build(library.with_suffix(".new"), TWINS / "binomial.cc", "c++")
    library.with_suffix(".new").rename(library)
    with pytest.raises(ScenarioError, match="is not the library that the scenario was loaded with"):
        pickle.loads(kept)
    with pytest.raises(ScenarioError, match="has changed, but this process has the old version loaded"):
        paceline.load(PLAIN, {"flow.own.cc": f"library:{library}:sqrt"})
