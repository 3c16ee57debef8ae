"""The base classes of controllers of your own, which the package has too: `paceline.WindowController` and its kin.

What each is told lies in `events.py`, how a class becomes a scheme in `foreign.py`: docs/your-own-controller.md.
"""

from paceline._core import MediaController, Random, RateController, WindowController

__all__ = ["MediaController", "Random", "RateController", "WindowController"]
