"""Evaluates a throughput model for `paceline model`: required arguments, results as rows and as a table."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline import _core
from paceline.cli.model_notation import BITS, MAX_ROWS, OPTIONS, as_option, head_of, text_of
from paceline.errors import PacelineError
from paceline.tables import layout

SEGMENT_BYTES = 1460.0
RATES = ("rate_packets_per_s", "rate_bytes_per_s")


@dataclass(frozen=True)
class Answer:
    """A model evaluated at all combinations of its arguments: columns of equal length."""

    model: dict[str, Any]
    arguments: dict[str, np.ndarray]
    results: dict[str, np.ndarray]

    @staticmethod
    def of(entry: dict[str, Any], given: dict[str, list[float]]) -> Answer:
        """Fills in defaults and evaluates. Raises PacelineError."""
        inverse = "rate_bytes_per_s" in given
        takes = [a["name"] for a in entry["arguments"]]
        if inverse:
            if not entry["inverse"]:
                raise PacelineError(f"{entry['name']} has no inverse: only the tfrc models take --rate")
            if "p" in given:
                raise PacelineError("give --p or --rate, not both: one follows from the other")
            takes[0] = "rate_bytes_per_s"
        factor = "gamma" in takes and "gamma" not in given
        behind = ["base_rtt_s", "w_max_packets", "theta1", "theta2", "beta_packets"] if factor else []
        sized = "segment_bytes" not in takes and (
            entry["results"][0] in RATES or "capacity_packets_per_s" in takes
        )
        allowed = {*takes, *behind, *(["segment_bytes"] if sized else [])}
        for key in given:
            if key not in allowed:
                options = ", ".join(OPTIONS[name].name for name in takes)
                raise PacelineError(f"{entry['name']} does not take {OPTIONS[key].name}; it takes {options}")
        wanted = [a["name"] for a in entry["arguments"] if a["default"] is None]
        wanted = [name for name in takes if name in wanted or name == "rate_bytes_per_s"]
        if factor:
            wanted = [name for name in wanted if name != "gamma"] + behind[:2]
        missing = [OPTIONS[name].name for name in wanted if name not in given]
        if missing:
            hint = " (or --gamma instead of --base-rtt and --w-max)" if factor else ""
            raise PacelineError(f"{entry['name']} needs {' and '.join(missing)}{hint}; see --list")

        order = [key for key in OPTIONS if key in given]
        rows = math.prod(len(given[key]) for key in order)
        if rows > MAX_ROWS:
            raise PacelineError(f"{rows} combinations are too many (at most {MAX_ROWS})")
        grid = zip(*itertools.product(*(given[key] for key in order)), strict=True)
        columns = {key: np.array(column) for key, column in zip(order, grid, strict=True)}
        segment = columns.get("segment_bytes", np.full(rows, SEGMENT_BYTES))
        for key in ("rate_bytes_per_s", "capacity_packets_per_s"):
            if key in columns:
                columns[key] = columns[key] / (BITS * (segment if key.endswith("packets_per_s") else 1))

        results: dict[str, np.ndarray] = {}
        if factor:
            law = next(m for m in json.loads(_core.models()) if m["name"] == "gamma")
            thetas = (
                {} if "theta1" in columns or "tfrc" not in entry["name"] else {"theta1": np.full(rows, 0.95)}
            )
            (results["gamma"],) = _evaluate(law, columns | thetas, rows)
        found = _evaluate(entry, columns | results, rows, takes, inverse=inverse)
        results |= dict(zip(["p"] if inverse else entry["results"], found, strict=True))
        return Answer(entry, columns, with_bits(results, segment))

    def as_json(self) -> dict[str, Any]:
        """Rows of plain numbers; infinite ones are null."""
        columns = with_bits(dict(self.arguments), None) | self.results
        lists = {
            name: [v if math.isfinite(v) else None for v in column.tolist()]
            for name, column in columns.items()
        }
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        return {"model": self.model["name"], "source": self.model["source"], "rows": rows}

    def print(self) -> None:
        """Prints a table of what varies, below a line of what does not."""
        arguments = with_bits(dict(self.arguments), None)
        first = next(iter(arguments))
        varied = {key: column for key, column in arguments.items() if key == first or len(set(column)) > 1}
        fixed = [
            f"{head_of(key)} {text_of(key, column[0])}"
            for key, column in arguments.items()
            if key not in varied
        ]
        console = layout.stdout()
        layout.say(console, f"{self.model['summary']} ({self.model['source']})")
        if fixed:
            layout.say(console, ", ".join(fixed))
        columns = [
            layout.Column(head_of(key), [text_of(key, value) for value in column], repeat=key in varied)
            for key, column in (varied | self.results).items()
        ]
        layout.show(console, [layout.Layout("", columns)])


def _evaluate(
    entry: dict[str, Any],
    columns: dict[str, np.ndarray],
    rows: int,
    takes: list[str] | None = None,
    *,
    inverse: bool = False,
) -> list[np.ndarray]:
    """Evaluates the model on columns; missing ones take their defaults. Raises PacelineError."""
    filled = []
    for argument, name in zip(
        entry["arguments"], takes or [a["name"] for a in entry["arguments"]], strict=True
    ):
        if name in columns:
            filled.append(columns[name])
        elif argument["default"] == "4 rtt_s":
            filled.append(4 * columns["rtt_s"])
        else:
            filled.append(np.full(rows, float(argument["default"])))
    try:
        found = _core.model(entry["name"], [c.astype("<f8").tobytes() for c in filled], inverse=inverse)
    except ValueError as error:
        raise PacelineError(as_option(str(error))) from None
    return [np.frombuffer(column, dtype="<f8") for column in found]


def with_bits(columns: dict[str, np.ndarray], segment: np.ndarray | None) -> dict[str, np.ndarray]:
    """Columns with rates in bit/s, as everywhere else: added for packets, by their size, and replacing bytes."""
    found: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        if name == "rate_bytes_per_s":
            if segment is not None:
                found["rate_packets_per_s"] = column / segment
            found["rate_bps"] = BITS * column
        elif name == "rate_packets_per_s" and segment is not None:
            found |= {name: column, "rate_bps": BITS * segment * column}
        else:
            found[name] = column
    return found
