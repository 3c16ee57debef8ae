"""`paceline kernel-cc` without a kernel that takes programs: mistakes, what its tools say, and what to do about it.

What the kernel does is in `test_kernel_cc_real.py`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import PacelineError
from paceline.live import kernel_cc

Here = Callable[..., tuple[Any, str, str]]
VERIFIER = """libbpf: prog 'mine_init': BPF program load failed: Permission denied
libbpf: prog 'mine_init': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
; TCP(sk)->snd_nxt = 0;
no write support to tcp_sock at off 1460
processed 3 insns (limit 1000000) max_states_per_insn 0
-- END PROG LOAD LOG --
Error: failed to load object file
"""


class Tools:
    """In the place of clang, bpftool and the kernel: what is loaded, and the answer of a tool that refuses."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, refuses: dict[str, str] | None = None
    ) -> None:
        self.loaded: dict[int, str] = {}
        self.refuses = refuses or {}
        self.status = folder / "status"
        self.status.write_text(f"CapEff:\t{1 << 21:016x}\n")
        self.available = folder / "available"
        monkeypatch.setattr(kernel_cc, "_tools", lambda *names: list(names))
        monkeypatch.setattr(kernel_cc, "_run", self)
        for name, path in {"STATUS": self.status, "AVAILABLE": self.available, "TYPES": self.status}.items():
            monkeypatch.setattr(kernel_cc, name, path)
        self._write()

    def _write(self) -> None:
        self.available.write_text(" ".join(["reno", "cubic", *self.loaded.values()]))

    def __call__(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        match command:
            case ["clang", *_]:
                name = kernel_cc.called(Path(command[command.index("-c") + 1]))
                self.compiled, what, said = name, "clang", ""
            case [_, "struct_ops", "register", _]:
                number = len(self.loaded) + 7
                what, said = "register", f"Registered tcp_congestion_ops mine id {number}\n"
                if what not in self.refuses:
                    self.loaded[number] = self.compiled
            case [_, "struct_ops", "unregister", "id", number]:
                what, said = "unregister", self.loaded.pop(int(number))
            case _:
                what, said = (
                    "dump",
                    json.dumps([part for one in self.loaded.items() for part in dumped(*one)]),
                )
        self._write()
        failed = self.refuses.get(what)
        if failed is not None:
            return subprocess.CompletedProcess(command, 1, "", failed)
        return subprocess.CompletedProcess(command, 0, said, "")


def dumped(number: int, name: str) -> list[dict[str, Any]]:
    """What bpftool says of a congestion control."""
    return [
        {"bpf_map_info": {"id": number, "name": "mine"}},
        {"bpf_struct_ops_tcp_congestion_ops": {"refcnt": {}, "state": "INUSE", "data": {"name": name}}},
    ]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    """The command in this process: its exit code, and what it prints."""

    def call(*words: str) -> tuple[Any, str, str]:
        from paceline.cli import app

        with pytest.raises(SystemExit) as ended:
            app(["kernel-cc", *words], prog_name="paceline")
        return (ended.value.code, *capsys.readouterr())

    return call


def test_each_is_loaded_under_its_name_listed_and_unloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, here: Here
) -> None:
    Tools(monkeypatch, tmp_path)
    for name in kernel_cc.programs():
        assert kernel_cc.load(name).name == kernel_cc.known(name)
    code, said, _ = here("list", "--json")
    assert code == 0
    listed = json.loads(said)
    assert [one["name"] for one in listed["loaded"]] == ["pl_vegas", "pl_veno"]
    assert (listed["kernel"], listed["not_loaded"]) == (["reno", "cubic"], [])
    with pytest.raises(kernel_cc.KernelCcError, match=r"pl_veno is loaded already.*unload veno"):
        kernel_cc.load("veno")
    with pytest.raises(PacelineError, match="reno is not a loaded eBPF program: it is the kernel's own"):
        kernel_cc.unload("reno")
    with pytest.raises(
        PacelineError, match=r"nothing is not a loaded eBPF program: it is not loaded; .*pl_vegas"
    ):
        kernel_cc.unload("nothing")
    mine = tmp_path / "mine.c"
    mine.write_text(kernel_cc.source("vegas").read_text().replace("pl_vegas", "mine"))
    assert kernel_cc.load(str(mine)).name == "mine"
    assert kernel_cc.unload(str(mine)).name == "mine"
    assert [one.name for one in kernel_cc.loaded()] == ["pl_vegas", "pl_veno"]
    assert kernel_cc.unload("veno").name == "pl_veno"
    assert kernel_cc.available() == ["reno", "cubic", "pl_vegas"]


@pytest.mark.parametrize(
    ("tool", "answer", "error", "parts"),
    [
        (
            "clang",
            "mine.c:9: error: expected ';'\n" * 20,
            PacelineError,
            ["clang cannot compile", "expected ';'"],
        ),
        (
            "register",
            VERIFIER,
            kernel_cc.KernelCcError,
            [
                "bpf(BPF_PROG_LOAD) of mine_init: Permission denied; the kernel's verifier says",
                "no write support to tcp_sock",
            ],
        ),
        (
            "register",
            "Error: can't register struct_ops mine: Success\n",
            kernel_cc.KernelCcError,
            ["bpf(BPF_MAP_UPDATE_ELEM) was refused", "EEXIST", "change `.name`"],
        ),
        (
            "dump",
            "Error: Operation not permitted\n",
            kernel_cc.KernelCcError,
            ["namespace's root is not enough"],
        ),
    ],
)
def test_what_is_refused_says_why(
    tool: str,
    answer: str,
    error: type[PacelineError],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    Tools(monkeypatch, tmp_path, {tool: answer})
    with pytest.raises(error) as raised:
        kernel_cc.load("vegas")
    for part in parts:
        assert part in str(raised.value), raised.value
    assert "processed" not in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 8


def test_who_may_load_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = Tools(monkeypatch, tmp_path)
    monkeypatch.setattr(kernel_cc, "TYPES", tmp_path / "vmlinux")
    with pytest.raises(kernel_cc.KernelCcError, match=r"vmlinux: no such file: .* CONFIG_DEBUG_INFO_BTF"):
        kernel_cc.load("vegas")
    tools.status.write_text("CapEff:\t0000000000000000\n")
    with pytest.raises(kernel_cc.KernelCcError, match=r"\(EPERM\): congestion controls are loaded by root"):
        kernel_cc.load("vegas")


def test_without_the_tools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(kernel_cc, "_SYSTEM", "")
    for system, said in {
        "debian": "apt-get install clang bpftool",
        "ubuntu": "apt-get install clang linux-tools-common linux-tools-$(uname -r)",
        "fedora": "dnf install clang bpftool",
        "void": "the packages that have clang and bpftool",
    }.items():
        monkeypatch.setattr("platform.freedesktop_os_release", lambda system=system: {"ID": system})
        with pytest.raises(kernel_cc.KernelCcError) as raised:
            kernel_cc.load("vegas")
        assert str(raised.value) == f"clang and bpftool not found; install: {said}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", "vegas"], '"start" must be load, unload or list'),
        (["load"], "takes a NAME"),
        (["list", "vegas"], "takes no NAME"),
        (["load", "cubic"], "vegas, veno, or an existing FILE.c"),
        (["load", "nowhere.c"], "vegas, veno, or an existing FILE.c"),
    ],
)
def test_mistakes_are_named(words: list[str], said: str, here: Here) -> None:
    code, out, error = here(*words)
    assert (code, out) == (2, "")
    assert said in error


def test_what_bpftool_prints_is_read() -> None:
    listed = [
        {"bpf_map_info": {"id": 7, "name": "mine"}},
        {"bpf_struct_ops_tcp_congestion_ops": {"refcnt": {}, "state": "INUSE", "data": {"name": "mine"}}},
        {"bpf_map_info": {"id": 8, "name": "other"}},
        {"bpf_struct_ops_sched_ext_ops": {"data": {"name": "other"}}},
    ]
    assert kernel_cc.loaded_of(listed) == [kernel_cc.Loaded("mine", 7)]
    assert kernel_cc.loaded_of([]) == []
