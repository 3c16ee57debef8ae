"""Whether an interval is true of the pool that its sample was drawn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.interval import COARSE, RESOLUTION, Interval, Kind


def holds(found: Interval, measure: str, values: NDArray[np.float64], middle: tuple[float, float]) -> bool:
    """Whether what is said of a sample is true of its pool, whose mean and median are `middle`."""
    if found.kind is Kind.T:
        assert found.low is not None
        assert found.high is not None
        return found.low <= middle[0] <= found.high
    if found.kind is Kind.MEDIAN:
        assert found.median_low is not None
        assert found.median_high is not None
        return found.median_low <= middle[1] <= found.median_high
    assert found.usual is not None
    assert found.others_low is not None
    assert found.others_high is not None
    coarse = measure.startswith(COARSE)
    others = float((np.abs(values - found.usual) > (RESOLUTION * found.usual if coarse else 0)).mean())
    return found.others_low <= others <= found.others_high
