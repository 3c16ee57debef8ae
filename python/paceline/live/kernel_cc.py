"""Congestion controls for the kernel's TCP as eBPF programs: compiled by clang, loaded by bpftool, kept by the kernel.

The programs are in the folder `kernel-cc`, which has its own licence. A loaded program stays until it is unloaded or
the machine reboots, in all network namespaces; connections that use it when it is unloaded keep it until they end.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineError
from paceline.files import package_data
from paceline.live import linux

PREFIX = "pl_"
"""The prefix of Paceline's own names: a kernel may have its own `vegas`."""

TYPES = Path("/sys/kernel/btf/vmlinux")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
STATUS = Path("/proc/self/status")

_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"
"""The folders of bpftool, which are not on every user's PATH."""
_PATIENCE_S = 60
_ADMIN = 21
"""CAP_SYS_ADMIN, capability.h."""
_MAX_LINES = 6

_INSTALL = {
    "debian": ("apt-get install", {}),
    "ubuntu": ("apt-get install", {"bpftool": "linux-tools-common linux-tools-$(uname -r)"}),
    "fedora": ("dnf install", {}),
}
"""Each distribution's install command, and packages whose name differs from the tool's."""

_HINTS = (
    (
        "Operation not permitted",
        "run it as root of the host; a container's or a user namespace's root is not enough",
    ),
    (
        "can't register",
        "EEXIST: the kernel already has a congestion control of this name, change `.name` in the program; "
        "EINVAL: it has no ssthresh, undo_cwnd or cong_avoid",
    ),
    (
        "not found in kernel",
        "this kernel is too old, or was built without it: it needs Linux 5.13 with CONFIG_BPF_JIT",
    ),
    ("not found for kernel", "install the linux-tools of the running kernel (uname -r)"),
)
"""The meaning of messages of libbpf and bpftool for the user."""


class KernelCcError(PacelineError):
    """A tool is missing, or the system refused."""

    exit_code = 1


@dataclass(frozen=True)
class Loaded:
    """A congestion control of an eBPF program."""

    name: str
    """The name for `TCP_CONGESTION`."""
    map_id: int
    """bpftool's ID."""


def folder() -> Path:
    """The folder of the programs. Raises StorageError."""
    return package_data.folder("kernel-cc")


def programs() -> list[str]:
    """The programs that come with Paceline."""
    return sorted(path.stem for path in folder().glob("*.c"))


def source(what: str) -> Path:
    """The file of a program: one of `programs`, or the user's own. Raises PacelineError."""
    if what in programs():
        return folder() / f"{what}.c"
    path = Path(what)
    if path.suffix == ".c" and path.is_file():
        return path
    raise PacelineError(
        f'no program "{what}": give {", ".join(programs())}, or an existing FILE.c of your own'
    )


def called(path: Path) -> str:
    """The name of the congestion control in a user's file: its `.name`. Raises PacelineError."""
    text = files.read_bytes(path).decode(errors="replace")
    found = re.search(r'^\s*\.name\s*=\s*"([^"]+)"', text, flags=re.MULTILINE)
    if found is None:
        raise PacelineError(
            f'{path} has no `.name = "..."`: unload by the name that paceline kernel-cc list shows'
        )
    return found[1]


def known(name: str) -> str:
    """The kernel's name for the user's: "vegas" is pl_vegas."""
    return f"{PREFIX}{name}" if name in programs() else name


def available() -> list[str]:
    """The congestion controls that the kernel has now. Raises KernelCcError."""
    linux.needed("a congestion control of the kernel")
    try:
        return AVAILABLE.read_text().split()
    except OSError as error:
        raise KernelCcError(f"{AVAILABLE}: {error.strerror}: this needs Linux with IPv4") from None


def load(what: str) -> Loaded:
    """Compiles a program and loads it into the kernel. Raises PacelineError, KernelCcError."""
    path = source(what)
    clang, bpftool = _tools("clang", "bpftool")
    _permitted()
    if not TYPES.is_file():
        raise KernelCcError(
            f"{TYPES}: no such file: this kernel ({platform.release()}) does not export its types; it needs "
            "CONFIG_DEBUG_INFO_BTF, which distributions have enabled since 2021"
        )
    if what in programs() and known(what) in available():
        raise KernelCcError(
            f"{known(what)} is loaded already; to replace it, first run paceline kernel-cc unload {what}"
        )
    with tempfile.TemporaryDirectory(prefix="paceline-") as where:
        compiled = Path(where) / "program.o"
        flags = ["-target", "bpf", "-O2", "-g", "-Wall", "-Werror=implicit", f"-I{folder()}"]
        made = _run([clang, *flags, "-c", str(path), "-o", str(compiled)])
        if made.returncode != 0:
            said = "\n".join(made.stderr.splitlines()[:_MAX_LINES])
            raise PacelineError(f"clang cannot compile {path}:\n{said}")
        done = _run([bpftool, "struct_ops", "register", str(compiled)])
    said = done.stdout + done.stderr
    found = re.search(r"Registered tcp_congestion_ops \S+ id (\d+)", said)
    if done.returncode != 0 or found is None:
        raise _refused(f"bpftool cannot load {path.name}", said)
    number = int(found[1])
    return next((one for one in _dumped(bpftool) if one.map_id == number), Loaded(known(what), number))


def unload(what: str) -> Loaded:
    """Unloads a program from the kernel: one of `programs`, or the name of a congestion control. Connections that use
    it keep it until they end. Raises PacelineError, KernelCcError."""
    name = called(Path(what)) if what.endswith(".c") and Path(what).is_file() else known(what)
    (bpftool,) = _tools("bpftool")
    _permitted()
    there = _dumped(bpftool)
    found = next((one for one in there if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in there) or "none"
        own = "it is the kernel's own" if name in available() else "it is not loaded"
        raise PacelineError(f"{name} is not a loaded eBPF program: {own}; loaded are: {names}")
    done = _run([bpftool, "struct_ops", "unregister", "id", str(found.map_id)])
    if done.returncode != 0:
        raise _refused(f"bpftool cannot unload {name}", done.stdout + done.stderr)
    return found


def loaded() -> list[Loaded]:
    """The congestion controls of eBPF programs, Paceline's or not. Raises KernelCcError."""
    (bpftool,) = _tools("bpftool")
    _permitted()
    return _dumped(bpftool)


def missing() -> str | None:
    """Why nothing can be loaded here; None if it can. Only checks what needs no attempt."""
    try:
        _tools("clang", "bpftool")
        _permitted()
    except (KernelCcError, linux.NeedsLinux) as error:
        return str(error)
    return None if TYPES.is_file() else f"there is no {TYPES}"


def _tools(*names: str) -> list[str]:
    """The paths of programs. Raises NeedsLinux, and KernelCcError, which says what to install."""
    linux.needed("a congestion control of the kernel")
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}"
    found = {name: shutil.which(name, path=path) for name in names}
    lacking = [name for name, where in found.items() if where is None]
    if lacking:
        raise KernelCcError(f"{' and '.join(lacking)} not found; install: {_install(lacking)}")
    return [where for where in found.values() if where is not None]


def _install(lacking: list[str]) -> str:
    """The command that installs missing tools."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    for key in (system.get("ID", ""), *system.get("ID_LIKE", "").split()):
        if key in _INSTALL:
            command, called = _INSTALL[key]
            return f"{command} {' '.join(called.get(name, name) for name in lacking)}"
    return f"the packages that have {' and '.join(lacking)}"


def _permitted() -> None:
    """Raises KernelCcError if this process knows that it may not load programs."""
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)$", STATUS.read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    if found is None or not int(found[1], 16) >> _ADMIN & 1:
        raise KernelCcError(
            "bpf(2) would refuse this user (EPERM): congestion controls are loaded by root (sudo)"
        )


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        # clang and bpftool by their paths, without a shell
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise KernelCcError(f"{Path(command[0]).name} has not ended within {_PATIENCE_S} s") from None


def _dumped(bpftool: str) -> list[Loaded]:
    done = _run([bpftool, "-j", "struct_ops", "dump"])
    try:
        maps = json.loads(done.stdout or "[]")
    except json.JSONDecodeError:
        maps = {"error": done.stdout}
    if done.returncode != 0 or not isinstance(maps, list):
        raise _refused("bpftool struct_ops dump", done.stdout + done.stderr)
    return loaded_of(maps)


def loaded_of(maps: list[Any]) -> list[Loaded]:
    """The congestion controls in the output of `bpftool -j struct_ops dump`: pairs of a map and its value."""
    found = []
    for info, value in zip(maps[::2], maps[1::2], strict=False):
        operations = value.get("bpf_struct_ops_tcp_congestion_ops")
        if operations is not None:
            found.append(Loaded(operations["data"]["name"], info["bpf_map_info"]["id"]))
    return found


def _refused(what: str, said: str) -> KernelCcError:
    """The last lines of a tool's message, and what to do."""
    verifier = re.search(
        r"prog '(\w+)': BPF program load failed: (.*)\n.*BEGIN PROG LOAD LOG --\n(.*?)\n-- END PROG LOAD LOG",
        said,
        flags=re.DOTALL,
    )
    if verifier is not None:
        words = [line for line in verifier[3].splitlines() if not line.startswith("processed ")]
        text = f"bpf(BPF_PROG_LOAD) of {verifier[1]}: {verifier[2]}; the kernel's verifier says:"
        return KernelCcError("\n".join([f"{what}: {text}", *words[-_MAX_LINES:]]))
    # bpftool 7.1 drops the error number of a registration.
    said = said.replace(": Success", ": bpf(BPF_MAP_UPDATE_ELEM) was refused")
    hint = next((hint for part, hint in _HINTS if part in said), None)
    lines = [line for line in said.splitlines() if line.strip()][-_MAX_LINES:] or ["no reason given"]
    return KernelCcError("\n".join([f"{what}: {lines[0]}", *lines[1:], *([hint] if hint else [])]))
