"""The picture of a call's camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paceline import files

LASTS_S = 4
"""The length of the video, which Chromium repeats."""
_SEED = 1
_NOISE = 24
"""Grey levels by which noise changes each pixel in each frame. The picture of Chromium's own fake camera is too simple
to fill 1.5 Mbit/s."""


def write(path: Path, width: int, height: int, frame_rate: int) -> None:
    """Writes a raw video (YUV4MPEG2, 4:2:0) of a moving chequered pattern with noise. The bytes are always the same.
    Raises StorageError."""
    draws = np.random.Generator(np.random.PCG64(_SEED))
    x, y = np.meshgrid(np.arange(2 * width), np.arange(2 * height))
    pattern = (98 + 60 * ((x // 16 + y // 16) & 1) + (7 * x + 3 * y) % 40).astype(np.uint8)
    colourless = bytes([128]) * (width * height // 2)
    try:
        with path.open("wb") as file:
            file.write(b"YUV4MPEG2 W%d H%d F%d:1 Ip A1:1 C420jpeg\n" % (width, height, frame_rate))
            for frame in range(LASTS_S * frame_rate):
                right, down = 2 * frame % width, frame % height
                part = pattern[down : down + height, right : right + width]
                noise = draws.integers(_NOISE, size=(height, width), dtype=np.uint8)
                file.write(b"FRAME\n" + (part + noise).tobytes() + colourless)
    except OSError as error:
        raise files.refused(path, error) from error
