"""Search by vector in a large collection: signs in cells beside an exact scan of the same vectors.

    python benchmarks/bench_vectors.py [--vectors 1000000] [--dimension 384] [--questions 200] [--json FILE]
    python benchmarks/bench_vectors.py --homes HOME [HOME ...] --others

With `--homes` the vectors of the current snapshots there (texts and names) are repeated with noise of length .5 until
there are enough; questions are vectors that are left out. Without, vectors are drawn around centres that are drawn
around other centres, with a fixed seed. Recall is the share of the exact first ten that the search finds. "Exact" scans
every vector in float32, "codes" every 8-bit code with the same result, "cells" the signs of the nearest cells, as a
snapshot does from `APPROXIMATE_FROM` vectors on. `--others` builds indexes of usearch and faiss over the same vectors,
where they are installed. Processor time stands beside wall time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.vector_indexes import build_others
from hades.snapshot.vectors import CodedVectors, VectorsInCells, cosines_with
from models.kernels import unit_rows
from models.vector_codes import Cells, CodedRows, SignedRows, cells_for, code_rows, fit_cells, sign_rows

SEED, BLOCK, TOP = 7, 16_384, 10
SUBJECTS, THEMES = 400, 40  # centres, and centres of those
WANTED = 0.98  # recall
NOISE = 0.5  # length of what is added to a vector that is repeated
SPREAD = 0.6  # length of what tells a vector from its centre


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--homes", type=Path, nargs="*", default=[], help="homes with a published snapshot")
    parser.add_argument("--others", action="store_true", help="build the indexes of other libraries too")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        drawn = (
            repeat(Path(folder), chosen.homes, chosen.vectors, chosen.questions)
            if chosen.homes
            else draw(Path(folder), chosen.vectors, chosen.dimension, chosen.questions)
        )
        figures = measure(*drawn, Path(folder) if chosen.others else None)
    show(figures)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def measure(values: Any, questions: Any, folder: Path | None = None) -> dict[str, Any]:
    """Build time, milliseconds and recall; with a `folder` of other indexes too, which are written there."""
    count, dimension = values.shape
    norms = np.ones(count, np.float32)
    began = time.process_time()
    cells = fit_cells(lambda places: values[places], count, cells_for(count))
    fitted = time.process_time()
    in_cells = sign(values, cells)
    signed = time.process_time()
    in_order = code(values, norms)
    exact = [best(cosines_with(values, norms, one), np.arange(count)) for one in questions[:20]]
    all_codes, few_cells = CodedVectors(in_order), VectorsInCells(in_cells, cells)  # once, as an open snapshot has them
    ways: dict[str, Callable[[Any], Any]] = {
        "exact": lambda one: best(cosines_with(values, norms, one), np.arange(count)),
        "codes": lambda one: compare(values, norms, all_codes.candidates([one], TOP)[0], one),
        "cells": lambda one: compare(values, norms, few_cells.candidates([one], TOP)[0], one),
    }
    figures: dict[str, Any] = {
        "vectors": count,
        "dimension": dimension,
        "n_cells": len(cells.centres),
        "fit_cpu_s": fitted - began,
        "code_cpu_s": signed - fitted,
        "code_bytes": in_cells.signs.nbytes
        + in_cells.reaches.nbytes
        + cells.centres.nbytes
        + cells.places.nbytes
        + cells.starts.nbytes,
    }
    truth = exact + [ways["codes"](one) for one in questions[20:]]  # codes are exact; the first twenty prove it
    for name, search in ways.items():
        figures[name] = timed(search, questions if name != "exact" else questions[:20], truth)
        print(name, figures[name], flush=True)
    assert figures["codes"]["recall"] == 1.0, "a scan of codes must be exact"
    if folder is not None:
        figures["others"] = compare_others(values, questions, truth, folder)
    return figures


def compare_others(values: Any, questions: Any, truth: list[list[int]], folder: Path) -> dict[str, Any]:
    """The figures of each other index at the first effort whose recall is the wanted one."""
    norms, found = np.ones(len(values), np.float32), {}
    for index in build_others(values, cells_for(len(values)), folder):
        for effort in index.efforts:
            search = partial(_ask, index.search, effort, values, norms)
            measured = timed(search, questions, truth)
            found[index.name] = {**measured, "effort": effort, "build_cpu_s": index.build_cpu_s, "bytes": index.bytes}
            print(index.name, found[index.name], flush=True)
            if measured["recall"] >= WANTED:
                break
    return found


def _ask(search: Any, effort: int, values: Any, norms: Any, asked: Any) -> list[int]:
    places = np.sort(search(asked, effort))
    return compare(values, norms, places[places >= 0], asked)


def repeat(folder: Path, homes: Sequence[Path], count: int, n_questions: int) -> tuple[Any, Any]:
    """(count, dimension) unit rows on the disk: vectors of published texts and names, again and again with noise."""
    chance = np.random.default_rng(SEED)
    held = np.concatenate([vectors for home in homes for vectors in published(home)])
    base = unit_rows(held[chance.permutation(len(held))])
    questions, base = base[:n_questions].copy(), base[n_questions:]
    print(f"{len(base):,} vectors of {len(homes)} homes", flush=True)
    values = np.memmap(folder / "values", np.float32, "w+", shape=(count, base.shape[1]))
    for first in range(0, count, BLOCK):
        places = np.arange(first, min(first + BLOCK, count))
        rows = base[places % len(base)]
        noise = chance.standard_normal(rows.shape, dtype=np.float32) * (NOISE / np.sqrt(base.shape[1]))
        values[first : first + BLOCK] = unit_rows(np.where((places >= len(base))[:, None], rows + noise, rows))
    return values, questions


def published(home: Path) -> Iterator[Any]:
    """The vectors of texts and names in the current snapshot of a home; equal rows once."""
    folder = home / "snapshots" / json.loads((home / "snapshots" / "current").read_text(encoding="utf-8"))["snapshot"]
    for path in sorted(folder.glob("vector.*.0.value")):
        norms = np.fromfile(path.with_suffix(".norm"), np.float32)
        rows = np.fromfile(path, np.float32).reshape(len(norms), -1)
        yield np.unique(rows[norms > 0], axis=0)


def draw(folder: Path, count: int, dimension: int, n_questions: int) -> tuple[Any, Any]:
    """(count, dimension) unit rows on the disk, and questions."""
    chance = np.random.default_rng(SEED)
    themes = unit_rows(chance.standard_normal((THEMES, dimension)))
    subjects = unit_rows(themes[chance.integers(THEMES, size=SUBJECTS)] + _noise(chance, SUBJECTS, dimension))
    values = np.memmap(folder / "values", np.float32, "w+", shape=(count, dimension))
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        values[first : first + size] = _around(chance, subjects, size)
    return values, _around(chance, subjects, n_questions)


def _around(chance: np.random.Generator, subjects: Any, count: int) -> Any:
    chosen = subjects[chance.integers(len(subjects), size=count)]
    return unit_rows(chosen + SPREAD * _noise(chance, count, subjects.shape[1]))


def _noise(chance: np.random.Generator, count: int, dimension: int) -> Any:
    """Rows of length about 1 that mostly lie in a few directions, as vectors of texts do."""
    scale = 1.0 / np.sqrt(1.0 + np.arange(dimension))
    return (chance.standard_normal((count, dimension), dtype=np.float32) * scale / np.linalg.norm(scale)).astype("f4")


def code(values: Any, norms: Any) -> CodedRows:
    """The codes of the rows."""
    blocks = [code_rows(values[at : at + BLOCK], norms[at : at + BLOCK]) for at in range(0, len(values), BLOCK)]
    return CodedRows(*(np.concatenate([getattr(one, part) for one in blocks]) for part in ("codes", "steps", "slacks")))


def sign(values: Any, cells: Cells) -> SignedRows:
    """The signs of the rows in the order of their cells."""
    own = np.repeat(np.arange(len(cells.centres)), np.diff(cells.starts))
    parts = [slice(at, at + BLOCK) for at in range(0, len(values), BLOCK)]
    blocks = [sign_rows(values[cells.places[part]], cells.centres[own[part]]) for part in parts]
    return SignedRows(*(np.concatenate([getattr(one, name) for one in blocks]) for name in ("signs", "reaches")))


def compare(values: Any, norms: Any, places: Any, asked: Any) -> list[int]:
    """The best of these places by exact cosine."""
    return best(cosines_with(values[places], norms[places], asked), places)


def best(scores: Any, places: Any) -> list[int]:
    """The first ten."""
    order = np.lexsort((places, -scores))[:TOP] if len(scores) < BLOCK else np.argsort(-scores, kind="stable")[:TOP]
    found: list[int] = places[order].tolist()
    return found


def timed(search: Callable[[Any], list[int]], questions: Any, truth: list[list[int]]) -> dict[str, float]:
    """Milliseconds of each question and the share of the truth that was found."""
    search(questions[0])
    wall, cpu, held = [], [], 0
    for one, wanted in zip(questions, truth, strict=False):
        began, spent = time.perf_counter(), time.process_time()
        found = search(one)
        wall.append((time.perf_counter() - began) * 1e3)
        cpu.append((time.process_time() - spent) * 1e3)
        held += len({*found} & {*wanted})
    cuts: dict[str, float] = {}
    for name, took in (("wall_ms_p", wall), ("cpu_ms_p", cpu)):
        cuts |= {f"{name}{share}": float(np.percentile(took, share)) for share in (50, 95)}
    return {**cuts, "recall": held / (TOP * len(questions))}


def show(figures: dict[str, Any]) -> None:
    """One table."""
    table = Table(title=f"{figures['vectors']:,} vectors of {figures['dimension']}, {figures['n_cells']:,} cells")
    for heading in ("search", "recall@10", "cpu p50 ms", "cpu p95 ms", "wall p95 ms"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for name, one in [
        *((name, figures[name]) for name in ("exact", "codes", "cells")),
        *figures.get("others", {}).items(),
    ]:
        cuts = (f"{one[key]:.2f}" for key in ("cpu_ms_p50", "cpu_ms_p95", "wall_ms_p95"))
        table.add_row(name, f"{one['recall']:.3f}", *cuts)
    console = Console()
    console.print(table)
    console.print(
        f"cells fitted in {figures['fit_cpu_s']:.1f} s of cpu, signs written in {figures['code_cpu_s']:.1f} s, "
        f"{figures['code_bytes'] / 1e6:.0f} MB"
    )
    for name, one in figures.get("others", {}).items():
        console.print(f"{name}: built in {one['build_cpu_s']:.1f} s of cpu, {one['bytes'] / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
