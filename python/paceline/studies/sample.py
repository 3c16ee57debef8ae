"""Our value of a claim: its runs as a sample, with the properties of its metrics."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from paceline import quantities
from paceline.interval import steady
from paceline.results.recordings import SERIES
from paceline.statistics.sample_intervals import Ends, Sample
from paceline.studies.expression import RUNS_ABOVE, Array, Column, Expression
from paceline.studies.metric import Metric

ANYTHING = (-math.inf, math.inf)
AVERAGED = ("first", "mean", "sum", "jain")
"""Reductions of several rows in which rare rows do not dominate."""
INSIDE = ("mean", "least", "most", "mean_known")
"""Functions whose value stays within the range of their argument."""


def sample(
    expression: Expression, metrics: Mapping[str, Metric], names: Mapping[str, Column | Array], runs: int
) -> Sample | None:
    """The runs of an expression; without values if it has none over all runs, and with one if it has no interval.
    Raises LookupError if not all points were run."""
    found = expression.valued(names, runs)
    value, values, each = found.value, found.mean_of, tuple(found.each)
    if not math.isfinite(value):
        return Sample((), own=each)
    minimum, maximum = reach(expression.body, metrics)
    values = None if values is None else _snapped(values, value, found.grain)
    about = None if values is None or math.isclose(math.fsum(values) / runs, value) else value
    steady = all(is_steady(metrics[name], metrics) for name in expression.names if name in metrics)
    if values is None:
        return Sample((value,), steady, minimum, maximum, lacking=runs > 1, own=each)
    yes_no = is_share(expression.body)
    return Sample(tuple(values), steady, minimum, maximum, about, yes_no=yes_no, own=each)


def _snapped(values: list[float], value: float, grain: float) -> list[float]:
    """The values without rounding differences, which in pseudo-values are as large as the value times the runs."""
    grain = len(values) * max(grain, 1e-10 * max(abs(value), *map(abs, values)))
    return [value] * len(values) if max(values) - min(values) <= grain else values


def is_share(node: ast.expr) -> bool:
    """Whether an expression is a share of the runs, perhaps shifted or scaled by a constant."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name == RUNS_ABOVE
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=ast.Constant()):
            return is_share(left)
    return False


def is_steady(metric: Metric, metrics: Mapping[str, Metric]) -> bool:
    """Whether few runs' means of a metric have a t interval: see `interval.steady`. A metric made of others is steady
    if they all are."""
    if metric.expression is not None:
        names = metric.expression.names
        return all(is_steady(metrics[name], metrics) for name in names if name in metrics)
    if metric.during is not None or (metric.table in SERIES and metric.rows not in AVERAGED):
        return False
    return steady(str(metric.field).rpartition(".")[2] if metric.field else "")


def _of_metric(metric: Metric) -> Ends:
    if metric.field is None or metric.table in SERIES:
        return ANYTHING
    if metric.rows == "sum":
        return (0.0, math.inf)
    return (
        0.0,
        metric.scale if metric.field and quantities.is_share(metric.field) and metric.scale > 0 else math.inf,
    )


def reach(node: ast.expr, metrics: Mapping[str, Metric]) -> Ends:
    """The range of an expression, as far as its metrics' ranges determine it."""
    found = ANYTHING
    match node:
        case ast.Constant(value=int() | float() as value):
            found = float(value), float(value)
        case ast.Subscript(value=ast.Name(id=name)) if name in metrics:
            found = _of_metric(metrics[name])
        case ast.UnaryOp(operand=operand):
            low, high = reach(operand, metrics)
            found = -high, -low
        case ast.Call(func=ast.Name(id=name)) if name == RUNS_ABOVE:
            found = 0.0, 1.0
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in INSIDE:
            found = reach(argument, metrics)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            (low, high), (other_low, other_high) = reach(left, metrics), reach(right, metrics)
            found = (
                (low + other_low, high + other_high)
                if isinstance(op, ast.Add)
                else (low - other_high, high - other_low)
            )
        case ast.BinOp(
            left=left, op=ast.Mult() | ast.Div() as op, right=ast.Constant(value=int() | float() as by)
        ):
            low, high = reach(left, metrics)
            if by > 0:
                factor = float(by) if isinstance(op, ast.Mult) else 1 / by
                found = low * factor, high * factor
    return found
