"""Puts the package of this clone, around the simulator that `./check` has built, before one that is installed: for the
tests and for the processes that they start. Not in an environment other than the clone's own, whose Paceline was
installed there to be tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
"""Cargo's target folder."""

_PACKAGE = TARGET / "dev-python"

PROGRAM = Path(sys.executable).with_name("paceline")
"""The command `paceline`, around the same simulator."""

if Path(sys.prefix) == ROOT / ".venv":
    if not (_PACKAGE / "paceline/_core.abi3.so").exists():
        raise SystemExit(f"{_PACKAGE} holds no simulator: ./check builds it")
    sys.path.insert(0, str(_PACKAGE))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([str(_PACKAGE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )
    PROGRAM = _PACKAGE / "bin/paceline"
