"""Reno's window with a known fault, for `paceline hunt` to find: see examples/stuck.toml.

The growth of the window begins anew where nothing is in flight, as after an application's pause. With a window of one
segment each acknowledgement leaves nothing in flight: after a timeout that finds one or two segments in flight, the
window never grows again. QUIC's CUBIC has had faults of this kind.
"""

import math

import paceline
from paceline import events


class RenoStuck(paceline.WindowController):
    """Reno's window that takes an empty flight for a pause"""

    source = "RFC 5681, with a fault"
    recovery = "sack"

    def __init__(self):
        self.grown = 0

    def on_feedback(self, event, path):
        match event:
            case events.Acked(segments, in_flight):
                if self.window < self.threshold:
                    self.window += 1.0
                    return
                self.grown += segments
                if in_flight <= segments:  # the fault: an application's pause is not told from a small window
                    self.grown = 0
                if self.grown >= self.window:
                    self.grown = 0
                    self.window += 1.0
            case events.Established(window):
                self.window, self.threshold = max(window, 1.0), math.inf
            case events.Lost():
                self.window = self.threshold = self.half(path)
            case events.Deflate(segments):
                self.window = max(self.window - segments, 1.0)
            case events.Recovered(at_most):
                self.window = max(min(self.threshold, at_most), 1.0)
            case events.Timeout(cut):
                if cut:
                    self.threshold = self.half(path)
                self.window = 1.0
            case events.Undo(window, threshold):
                self.window = max(self.window, window)
                self.threshold = max(self.threshold, threshold)
            case events.Idle(window):
                self.window = max(min(self.window, window), 1.0)

    def half(self, path):
        """Half of what is in flight; RFC 5681 has two segments at least."""
        return max(min(path.in_flight, self.window) // 2, 1.0)
