"""Reno's window (RFC 5681) in Python: under profile `rfc` it gives the same bits as the built-in `sack`.

cc = "python:examples/controllers/reno_twin.py:RenoTwin"
"""

import math

import paceline
from paceline import events


class RenoTwin(paceline.WindowController):
    """Reno's window with selective acknowledgements"""

    source = "RFC 5681"
    recovery = "sack"

    def on_feedback(self, event, path):
        match event:
            case events.Acked(segments, in_flight):
                # a window that is not used says nothing about the path (RFC 7661, 4.3)
                if in_flight + 1 > self.window:
                    if self.window < self.threshold:
                        self.window += 1.0  # RFC 5681 equation (2)
                    else:
                        self.window += min(
                            segments / self.window, 1.0
                        )  # section 3.1, by what is acknowledged
            case events.Established(window):
                self.window, self.threshold = max(window, 1.0), math.inf
            case events.Lost():
                self.window = self.threshold = self.half(path, 2.0)
            case events.EcnEcho():
                # a mark may take the window down to one segment (RFC 3168, 6.1.2)
                self.threshold, self.window = self.half(path, 2.0), self.half(path, 1.0)
            case events.Deflate(segments):
                self.window = max(self.window - segments, 1.0)
            case events.Recovered(at_most):
                self.window = max(min(self.threshold, at_most), 1.0)
            case events.Timeout(cut):
                if cut:
                    self.threshold = self.half(path, 2.0)
                self.window = 1.0
            case events.Undo(window, threshold):
                self.window = max(self.window, window)
                self.threshold = max(self.threshold, threshold)
            case events.Idle(window):
                self.window = max(min(self.window, window), 1.0)

    def half(self, path, minimum):
        """Half of what is in flight, of which in a long recovery more is unacknowledged than the window ever let in."""
        return max(min(path.in_flight, self.window) * 0.5, minimum)
