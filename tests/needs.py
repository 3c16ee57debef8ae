"""What a test may need of the machine: probed, and skipped with the reason when absent.

    from needs import require
    require("ns")            # first line of the test

`PACELINE_NO_SKIP=1` (set by `.ci/run`) turns every such skip into a failure, so that a machine that should have
everything cannot pass by having nothing. Rust tests have the same in `needs.rs`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest


def _root() -> str | None:
    return None if os.geteuid() == 0 else "needs root"


def _netns() -> str | None:
    if _root() is not None:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the ip command (package iproute2)"
    name = f"paceline-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"network namespaces are refused here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return None


def _tmpfs() -> str | None:
    if _root() is not None:
        return "mounting a small disk needs root"
    with tempfile.TemporaryDirectory() as where:
        command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", where]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return f"mounting a small disk is refused here: {made.stderr.strip()}"
        subprocess.run(["umount", where], capture_output=True, check=False)
    return None


def _ns() -> str | None:
    return None if shutil.which("ns") else "needs ns-2, the command ns (package ns2)"


def _chromium() -> str | None:
    return None if shutil.which("chromium") else "needs chromium (package chromium)"


def _tcpdump() -> str | None:
    return None if shutil.which("tcpdump") else "needs tcpdump (package tcpdump)"


def _tshark() -> str | None:
    return None if shutil.which("tshark") else "needs tshark (package tshark)"


def _cc() -> str | None:
    lacking = [compiler for compiler in ("cc", "c++") if shutil.which(compiler) is None]
    return f"needs {' and '.join(lacking)} (package g++)" if lacking else None


def _clang() -> str | None:
    return None if shutil.which("clang") else "needs clang (package clang)"


def _jq() -> str | None:
    return None if shutil.which("jq") else "needs jq (package jq)"


def _groff() -> str | None:
    return None if shutil.which("groff") else "needs groff (package groff-base)"


def _maturin() -> str | None:
    return None if importlib.util.find_spec("maturin") else "needs maturin (pip install maturin)"


def _aioquic() -> str | None:
    return None if importlib.util.find_spec("aioquic") else "needs aioquic (pip install aioquic)"


def _node() -> str | None:
    if shutil.which("node") is None:
        return "needs node (package nodejs)"
    found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    version = found.stdout.strip().removeprefix("v").split(".")[0]
    return (
        None if version.isdigit() and int(version) >= 20 else f"needs node 20, and has {found.stdout.strip()}"
    )


def _wasm() -> str | None:
    built = Path(__file__).resolve().parent.parent / "web/pkg/paceline_web_bg.wasm"
    return None if built.exists() else "needs the simulator for browsers (web/build --wasm)"


def _zensical() -> str | None:
    there = all(importlib.util.find_spec(name) for name in ("zensical", "mkdocstrings"))
    return None if there else "needs zensical and mkdocstrings (pip install --group docs)"


def unprivileged(*command: str) -> list[str]:
    """The command as a user without privileges runs it: a name of one's own in a user namespace is enough for root."""
    if os.geteuid() != 0:
        return list(command)
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000", *command]


def _namespaces() -> str | None:
    if shutil.which("unshare") is None:
        return "needs the unshare command (package util-linux)"
    command = unprivileged("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "true")
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if made.returncode == 0 else f"namespaces are refused here: {made.stderr.strip()}"


def _tun() -> str | None:
    if shutil.which("ip") is None:
        return "needs the ip command (package iproute2)"
    inside = ["unshare", "--user", "--map-root-user", "--net", "ip", "tuntap", "add", "probe0", "mode", "tun"]
    made = subprocess.run(unprivileged(*inside), capture_output=True, text=True, check=False)
    return None if made.returncode == 0 else f"a TUN is refused here: {made.stderr.strip()}"


def _ping() -> str | None:
    return None if shutil.which("ping") else "needs ping (package iputils-ping)"


def _iperf3() -> str | None:
    return None if shutil.which("iperf3") else "needs iperf3 (package iperf3)"


def _gstreamer() -> str | None:
    for tool in ("gst-launch-1.0", "gst-inspect-1.0"):
        if shutil.which(tool) is None:
            return f"needs {tool} (package gstreamer1.0-tools)"
    packages = {
        "rtpbin": "gstreamer1.0-plugins-good",
        "udpsrc": "gstreamer1.0-plugins-good",
        "fakesink": "gstreamer1.0-tools",
    }
    for element, package in packages.items():
        found = subprocess.run(
            ["gst-inspect-1.0", element], capture_output=True, text=True, check=False, timeout=60
        )
        if found.returncode != 0:
            return f"needs GStreamer's {element} (package {package})"
    return None


def _shaper() -> str | None:
    if (reason := _netns()) is not None:
        return reason
    if shutil.which("tc") is None:
        return "shaping needs the tc command (package iproute2)"
    name = f"paceline-probe-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    shape = [
        "tc",
        "qdisc",
        "add",
        "dev",
        "lo",
        "root",
        "tbf",
        "rate",
        "10mbit",
        "burst",
        "5kb",
        "limit",
        "50kb",
    ]
    made = subprocess.run(
        ["ip", "netns", "exec", name, *shape], capture_output=True, text=True, check=False, timeout=20
    )
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return None if made.returncode == 0 else f"tc cannot make a token bucket filter: {made.stderr.strip()}"


def _struct_ops() -> str | None:
    from paceline.live import kernel_cc

    return kernel_cc.missing()


def _congestion_control(name: str) -> Callable[[], str | None]:
    def probe() -> str | None:
        # root may have all that the kernel has
        which = "available" if os.geteuid() == 0 else "allowed"
        file = Path(f"/proc/sys/net/ipv4/tcp_{which}_congestion_control")
        there = file.read_text().split() if file.exists() else []
        return None if name in there else f"needs {name} in net.ipv4.tcp_{which}_congestion_control"

    return probe


_PROBES: dict[str, Callable[[], str | None]] = {
    "root": _root,
    "netns": _netns,
    "tmpfs": _tmpfs,
    "ns": _ns,
    "chromium": _chromium,
    "tcpdump": _tcpdump,
    "tshark": _tshark,
    "cc": _cc,
    "clang": _clang,
    "aioquic": _aioquic,
    "maturin": _maturin,
    "zensical": _zensical,
    "jq": _jq,
    "groff": _groff,
    "node": _node,
    "wasm": _wasm,
    "iperf3": _iperf3,
    "shaper": _shaper,
    "namespaces": _namespaces,
    "tun": _tun,
    "ping": _ping,
    "gstreamer": _gstreamer,
    "struct_ops": _struct_ops,
    **{name: _congestion_control(name) for name in ("reno", "cubic", "bbr")},
}


@functools.cache
def missing(need: str) -> str | None:
    """Why `need` (one of `_PROBES`) is not here; None when it is."""
    return _PROBES[need]()


def require(*needs: str) -> None:
    """Skips the running test unless all of `needs` are there; fails it instead where skipping is forbidden."""
    for need in needs:
        reason = missing(need)
        if reason is None:
            continue
        if os.environ.get("PACELINE_NO_SKIP") == "1":
            pytest.fail(f"{reason} (PACELINE_NO_SKIP=1 forbids skipping)", pytrace=False)
        pytest.skip(reason)
