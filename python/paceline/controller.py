"""The base classes of your own controllers, re-exported by the package: `paceline.WindowController` and its kin.

`events.py` lists what each receives; `own_controllers.py` makes a scheme of a class: docs/your-own-controller.md.
"""

from paceline._core import MediaController, Random, RateController, WindowController

__all__ = ["MediaController", "Random", "RateController", "WindowController"]
