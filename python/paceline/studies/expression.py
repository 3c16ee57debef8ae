"""The expressions of a paper's claims, over the points of its studies.

    late["vegas", "10 ms"]                              the mean over the runs of one point
    throughput["vegas", "4:10"] / throughput["vegas", "1:3"]
    slope(throughput["newreno"], x)                     over all levels of the study; x: their positions on its axis
    queue["vegas", "4:10":"8:20"]                       a range of levels, both ends included
    runs_above(goodput["tcp"] - goodput["tfrc"])        the share of the runs in which it is more than zero

Python's arithmetic without comparisons, the functions in `FUNCTIONS`, and `runs_above`. The 95 % interval of any
expression is the jackknife's over seeds (one seed left out at a time, t distribution): all points of a study share
their seeds, so a difference or ratio of two points is paired. For a mean it is the ordinary t interval.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paceline import models
from paceline.statistics import Estimate

Array = npt.NDArray[np.float64]


class ExpressionError(ValueError):
    """An expression with a syntax error, or with an unknown name; the message quotes it."""


@dataclass(frozen=True)
class Valued:
    """The value of an expression."""

    value: float
    """Over all runs; nan if there is none."""
    each: list[float]
    """Of each run separately; nan if it has none."""
    mean_of: list[float] | None
    """The values whose mean is the value, run by run: `each` if the expression is linear in the runs, else the
    jackknife's pseudo-values (Quenouille 1956). None if leaving a run out leaves no value, and for a single run."""
    grain: float
    """Differences below this are rounding."""


class Column(Protocol):
    """A metric as a name in an expression: `late["vegas", "10 ms"]`."""

    def select(self, series: str, levels: str | tuple[str | None, str | None] | None, seeds: Array) -> Array:
        """Means over the seeds with weight 1 of one level (0-d), a range of levels, or all (1-d)."""


def _slope(y: Array, x: Array) -> Array:
    """Slope of the least-squares line of `y` over `x`."""
    y, x = np.asarray(y, float), np.asarray(x, float)
    if y.shape != x.shape or y.size < 2:
        raise ExpressionError("slope(y, x) needs as many x as y, and at least two")
    centred = x - x.mean()
    return np.asarray((centred * (y - y.mean())).sum() / (centred * centred).sum())


def _crossing(y: Array, x: Array, level: Array) -> Array:
    """The x at which a falling y (isotonic least squares) reaches `level`; nan if it never does."""
    y, x = np.ravel(np.asarray(y, float)), np.ravel(np.asarray(x, float))
    keep = np.isfinite(y) & np.isfinite(x)
    y, x = y[keep], x[keep]
    order = np.argsort(x, kind="stable")
    blocks: list[list[float]] = []  # mean y, weight, mean x
    for yi, xi in zip(y[order], x[order], strict=True):
        blocks.append([yi, 1.0, xi])
        while len(blocks) > 1 and blocks[-2][0] <= blocks[-1][0]:
            y1, w1, x1 = blocks.pop()
            y0, w0, x0 = blocks.pop()
            w = w0 + w1
            blocks.append([(y0 * w0 + y1 * w1) / w, w, (x0 * w0 + x1 * w1) / w])
    if not blocks or blocks[0][0] < level or blocks[-1][0] > level:
        return np.asarray(math.nan)
    falling_x = np.array([b[2] for b in blocks])
    falling_y = np.array([b[0] for b in blocks])
    return np.asarray(np.interp(-float(level), -falling_y, falling_x))


def _coalesce(y: Array, other: Array) -> Array:
    """y where it has a value, else the other."""
    return np.asarray(np.where(np.isfinite(y), y, other), float)


def _between(y: Array, low: Array, high: Array) -> Array:
    """1 where y lies between the bounds, inclusive, else 0; nan if any of the three has no value."""
    inside = (low <= y) & (y <= high)
    return np.asarray(
        np.where(np.isfinite(y) & np.isfinite(low) & np.isfinite(high), inside, math.nan), float
    )


def _mean_known(y: Array) -> Array:
    """The mean of the values that exist; nan if there is none."""
    known = np.ravel(y)[np.isfinite(np.ravel(y))]
    return np.asarray(known.mean() if known.size else math.nan)


def _share_above(runs: Array) -> Array:
    """The share of the runs above zero; nan if any has no value."""
    return np.asarray(np.where(np.isfinite(runs), runs > 0, math.nan).mean())


def _modelled(model: Callable[..., Array]) -> Callable[..., Array]:
    """A throughput model, elementwise: nan where an argument lies outside its domain."""

    def one(*arguments: float) -> float:
        try:
            return float(model(*arguments))
        except ValueError:
            return math.nan

    each = np.vectorize(one, otypes=[float])

    @functools.wraps(model)
    def over(*arguments: Array) -> Array:
        return np.asarray(each(*arguments))

    return over


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "slope": _slope,
    "crossing": _crossing,
    "mean": lambda y: np.asarray(np.mean(y)),
    "least": lambda y: np.asarray(np.min(y)),
    "most": lambda y: np.asarray(np.max(y)),
    "abs": lambda y: np.asarray(np.abs(y)),
    "log2": lambda y: np.asarray(np.log2(y)),
    "coalesce": _coalesce,
    "between": _between,
    "lower": lambda y, other: np.asarray(np.minimum(y, other)),
    "greater": lambda y, other: np.asarray(np.maximum(y, other)),
    "mean_known": _mean_known,
    "veno_gamma": _modelled(models.gamma),
    "veno_rate": _modelled(
        lambda p, rtt, gamma, rto, w_max: models.veno_approximate(
            p, rtt, gamma, rto_s=rto, w_max_packets=w_max
        )
    ),
}
"""Name -> function of the expressions: slope(y, x), crossing(y, x, level), mean, least, most, abs, log2;
coalesce(y, other): other where y has no value; between(y, low, high): 1 where y lies there, else 0; lower(y, other)
and greater(y, other); mean_known(y): over existing values; and, from `paceline.models`,
veno_gamma(rtt, base_rtt, w_max) and veno_rate(p, rtt, gamma, rto, w_max), the paper's equations (20) and (16), in
seconds, packets and packets/s."""

RUNS_ABOVE = "runs_above"
"""The one function that evaluates each run separately: the share of the runs in which its argument is above zero."""


def _arguments(name: str) -> list[str]:
    """The arguments of an expression function."""
    parameters = inspect.signature(_share_above if name == RUNS_ABOVE else FUNCTIONS[name]).parameters
    return [key for key, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]


_OPERATORS: dict[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


ROUNDING = 1e-12
"""A generous bound on a sum's rounding error, as a share of the absolute values of its terms."""


class _Sums(ast.NodeTransformer):
    """Turns subtractions into additions, to get the size of an expression before cancellation."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return ast.BinOp(node.left, ast.Add() if isinstance(node.op, ast.Sub) else node.op, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self.visit(node.operand)  # type: ignore[no-any-return]


class Expression:
    """A parsed expression. Raises `ExpressionError` for anything but arithmetic, names, subscripts and `FUNCTIONS`."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.body = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ExpressionError(f"{text!r}: {error.msg}") from None
        self.names: set[str] = set()
        self.selections: list[tuple[str, str, str | tuple[str | None, str | None] | None]] = []
        self._check(self.body)
        self._sums = _Sums().visit(copy.deepcopy(self.body))

    def _fail(self, what: str) -> ExpressionError:
        return ExpressionError(f"{self.text!r}: {what}")

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
                pass
            case ast.Name(id=name):
                self.names.add(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self._check(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                self._check(left)
                self._check(right)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                if name not in (known := sorted([*FUNCTIONS, RUNS_ABOVE])):
                    raise self._fail(f"no function {name!r}; there are {', '.join(known)}")
                for arg in args:
                    self._check(arg)
                takes = _arguments(name)
                if len(args) != len(takes):
                    many = f"{len(takes)} argument{'' if len(takes) == 1 else 's'}"
                    raise self._fail(f"{name}({', '.join(takes)}) takes {many}, not {len(args)}")
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                self.names.add(name)
                self.selections.append((name, *self._key(key)))
            case _:
                raise self._fail(
                    f"{ast.unparse(node)!r} must be arithmetic, a name, a selection or a function"
                )

    def _key(self, key: ast.expr) -> tuple[str, str | tuple[str | None, str | None] | None]:
        def text(node: ast.expr | None) -> str | None:
            if node is None:
                return None
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                return node.value
            raise self._fail("a selection names a series and a level in quotes")

        match key:
            case ast.Constant(value=str(series)):
                return series, None
            case ast.Tuple(
                elts=[ast.Constant(value=str(series)), ast.Slice(lower=low, upper=high, step=None)]
            ):
                return series, (text(low), text(high))
            case ast.Tuple(elts=[ast.Constant(value=str(series)), ast.Constant(value=str(level))]):
                return series, level
        raise self._fail(
            'a selection is metric["series"], metric["series", "level"] or metric["series", "from":"to"]'
        )

    def value(self, names: Mapping[str, Column | Array], seeds: Array) -> Array:
        """The value over the runs whose seeds have weight 1."""
        return self._value(self.body, names, seeds)

    def _value(self, node: ast.expr, names: Mapping[str, Column | Array], seeds: Array) -> Array:
        match node:
            case ast.Constant(value=value):
                return np.asarray(float(value))  # type: ignore[arg-type]
            case ast.Name(id=name):
                found = names.get(name)
                if not isinstance(found, np.ndarray):
                    raise self._fail(f"no value {name!r} here")
                return found
            case ast.UnaryOp(operand=operand):
                return -self._value(operand, names, seeds)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._value(left, names, seeds), self._value(right, names, seeds)
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.asarray(_OPERATORS[type(op)](a, b))
            case ast.Call(func=ast.Name(id=name), args=args):
                if name == RUNS_ABOVE:
                    of_runs = [self._value(args[0], names, one) for one in np.eye(len(seeds))[seeds > 0]]
                    function, values = _share_above, [np.asarray(of_runs, float)]
                else:
                    function, values = FUNCTIONS[name], [self._value(arg, names, seeds) for arg in args]
                with np.errstate(divide="ignore", invalid="ignore"):
                    return function(*values)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                found = names.get(name)
                if found is None or isinstance(found, np.ndarray):
                    raise self._fail(f"no metric {name!r}; there are {', '.join(sorted(names))}")
                return found.select(*self._key(key), seeds)
        raise self._fail("cannot be evaluated")

    def _single(self, value: Array) -> float:
        if np.size(value) != 1:
            raise self._fail(
                f"has {np.size(value)} values, one for each level: select one, or take their mean"
            )
        return float(np.ravel(value)[0])

    def valued(self, names: Mapping[str, Column | Array], runs: int) -> Valued:
        """The value over `runs` runs, and run by run."""
        everything, ones = np.ones(runs), np.eye(runs)
        added = float(np.max(np.abs(self._value(self._sums, names, everything)), initial=0.0))
        grain = ROUNDING * added if math.isfinite(added) else 0.0

        def at(seeds: Array) -> float:
            value = self._single(self.value(names, seeds))
            return 0.0 if abs(value) <= grain else value

        value, each = at(everything), np.array([at(one) for one in ones])
        if runs < 2 or not math.isfinite(value):
            return Valued(value, each.tolist(), None, grain)
        without = np.array([at(everything - one) for one in ones])
        if not np.isfinite(without).all():
            return Valued(value, each.tolist(), None, grain)
        if np.allclose((each.sum() - each) / (runs - 1), without, rtol=1e-9, atol=grain):
            return Valued(value, each.tolist(), each.tolist(), grain)
        return Valued(value, each.tolist(), (runs * value - (runs - 1) * without).tolist(), grain)

    def estimate(self, names: Mapping[str, Column | Array], runs: int) -> Estimate:
        """The value over all `runs` seeds with its jackknife interval (see the module's docstring); without a value or
        interval below two runs, or if leaving one out leaves no value."""
        found = self.valued(names, runs)
        value, runs_of = found.value if math.isfinite(found.value) else None, found.mean_of
        if runs_of is None:
            return Estimate.of(runs, value, None)
        return Estimate.of(
            runs, value, float(np.std(runs_of, ddof=1)) if min(runs_of) < max(runs_of) else 0.0
        )
