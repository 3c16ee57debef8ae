"""Headless Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from paceline.calls.server import PORT
from paceline.errors import PacelineError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_NICE = 5
"""The emulator must not wait for browsers: its lateness looks like a queue to them."""

_OFF = (
    "WebRtcHideLocalIpsWithMdns",  # it hides addresses behind names that cannot be resolved here
    "MediaRouter",
    "OptimizationHints",
    "Translate",
)
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the sandbox needs its own namespaces, and refuses root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--no-first-run",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--window-size=400,300",
    f"--disable-features={','.join(_OFF)}",
)


def find() -> str:
    """The path of Chromium or Chrome. Raises PacelineError if there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise PacelineError(
        "a call needs Chromium, and there is none on the PATH: install it (on Debian and Ubuntu the package chromium)"
    )


def version(program: str) -> str:
    """The browser's version string; empty if it gives none."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return said.stdout.strip()


def event_logs(where: Path, end: str) -> Path:
    """The folder of the event logs of one end."""
    return where / f"{end}-events"


def start(program: str, where: Path, end: str) -> subprocess.Popen[bytes]:
    """Starts the browser of one end, which opens the page of that end's server and logs its connections. It ends with
    the path."""
    event_logs(where, end).mkdir(exist_ok=True)
    with (where / f"{end}-chromium.txt").open("wb") as log:
        command = [
            program,
            *_FLAGS,
            f"--user-data-dir={where / f'{end}-profile'}",
            f"--use-file-for-fake-video-capture={where / 'camera.y4m'}",
            f"--webrtc-event-logging={event_logs(where, end)}",
            f"http://127.0.0.1:{PORT}/?end={end}",
        ]
        nice = ["nice", "-n", str(_NICE)] if shutil.which("nice") else []
        return subprocess.Popen(  # noqa: S603 (the browser that was found)
            [*nice, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(where)},
        )
