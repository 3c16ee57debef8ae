"""The base classes of controllers of your own, which the package has too: `paceline.WindowController` and its kin.

`events.py` has what each is given, `own_controllers.py` makes a scheme of a class: docs/your-own-controller.md.
"""

from paceline._core import MediaController, Random, RateController, WindowController

__all__ = ["MediaController", "Random", "RateController", "WindowController"]
