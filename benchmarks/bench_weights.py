"""Weighing edges in arrays beside a pandas `apply` of the same formula, row by row.

    python benchmarks/bench_weights.py [--edges 1000000] [--json FILE]

Both start from the same columns (type, similarity, number of places that state it, age in days) and end with the four
components, the weight and the cost. `apply` runs over a sample and is scaled up; the arrays run over all edges. Both
use one thread, so processor seconds are compared: other work on the machine does not count, and each side's fastest
repetition does. The results are compared row by row before anything is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from hades.build.weights.inputs import COEFFICIENTS, SEEDS, TYPES, TypeTable, WeightRules
from models.weights.components import (
    PARTS,
    Coefficients,
    Components,
    Reals,
    bias_for,
    costs,
    freshness,
    logits,
    squash,
    support,
)
from schemas.nodes import RelationType

SAMPLE = 20_000
REPEATS = 15
RULES = WeightRules()
BIAS = -4.0
A, B, G, D = (COEFFICIENTS[name] for name in PARTS)
FULL = math.log2(1 + RULES.evidence_full)


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.edges)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(count: int) -> dict[str, float]:
    """Processor seconds of both ways for this number of edges, and their ratio."""
    edges = made_up_edges(count)
    columns = {name: edges[name].to_numpy() for name in ("code", "sim", "evidence_count", "age_days")}
    table = type_table()
    parts, weights, lengths = in_arrays(columns, table)
    sample = edges.iloc[: min(SAMPLE, count)]
    expected = sample.apply(one_edge, axis=1, result_type="expand").to_numpy()
    found = np.column_stack([*(getattr(parts, name) for name in PARTS), weights, lengths])[: len(sample)]
    np.testing.assert_allclose(found, expected, atol=5e-6)
    by_row = fastest(lambda: sample.apply(one_edge, axis=1), 3) * count / len(sample)
    by_array = fastest(lambda: in_arrays(columns, table), REPEATS)
    sums = logits(parts, columns["code"], table.coefficients)
    return {
        "edges": count,
        "pandas_apply": by_row,
        "arrays": by_array,
        "times_faster": by_row / by_array,
        "calibration_of_the_bias": fastest(lambda: bias_for(sums), REPEATS),
    }


def in_arrays(columns: dict[str, np.ndarray], table: TypeTable) -> tuple[Components, Reals, Reals]:
    """Every edge at once, as the stage `weights` does it."""
    types = columns["code"]
    parts = Components(
        sim=columns["sim"],
        type_prior=table.prior.take(types),
        evidence=support(columns["evidence_count"], np.full(len(types), np.nan, np.float32), RULES.evidence_full),
        freshness=freshness(columns["age_days"], types, table.tau_days),
    )
    weights = squash(logits(parts, types, table.coefficients), BIAS)
    return parts, weights, costs(weights, types, table.boost, RULES.eps)


def one_edge(row: pd.Series) -> tuple[float, ...]:
    """The same formula for one row."""
    seed, sim = SEEDS[row["type"]], row["sim"]
    evidence = min(1.0, math.log2(1 + row["evidence_count"]) / FULL)
    fresh = math.exp(-row["age_days"] / seed.tau_days)
    total = BIAS + A * sim + B * seed.type_prior + G * evidence + D * fresh
    weight = 1.0 / (1.0 + math.exp(-total))
    cost = -math.log(max(weight * RULES.boosts[row["type"]], RULES.eps))
    return sim, seed.type_prior, evidence, fresh, weight, cost


def made_up_edges(count: int) -> pd.DataFrame:
    """Edges of all types and ages."""
    chance = np.random.default_rng(0)
    codes = chance.integers(0, len(TYPES), count).astype(np.uint8)
    return pd.DataFrame(
        {
            "type": np.array(TYPES, dtype=object)[codes],
            "code": codes,
            "sim": np.round(chance.random(count), 6).astype(np.float32),
            "evidence_count": chance.integers(1, 30, count),
            "age_days": chance.integers(0, 5_000, count),
        }
    )


def type_table() -> TypeTable:
    """The seeds of `weight_config` as arrays."""
    kinds = list(RelationType)
    return TypeTable(
        prior=np.array([SEEDS[kind].type_prior for kind in kinds], dtype=np.float32),
        tau_days=np.array([SEEDS[kind].tau_days for kind in kinds]),
        boost=np.array([RULES.boosts[kind] for kind in kinds], dtype=np.float32),
        coefficients=Coefficients(**{name: np.full(len(kinds), COEFFICIENTS[name], np.float32) for name in PARTS}),
    )


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest of several runs."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def show(figures: dict[str, float]) -> None:
    """A table for people."""
    shown = Table(title=f"{figures['edges']:,.0f} edges, {platform.machine()}, Python {platform.python_version()}")
    for heading in ("way", "processor seconds", "times"):
        shown.add_column(heading, justify="left" if heading == "way" else "right")
    shown.add_row("pandas apply, row by row", f"{figures['pandas_apply']:.2f}", f"{figures['times_faster']:,.0f}")
    shown.add_row("arrays", f"{figures['arrays']:.4f}", "1")
    shown.add_row("calibration of the bias, once a build", f"{figures['calibration_of_the_bias']:.4f}", "")
    Console().print(shown)


if __name__ == "__main__":
    main()
