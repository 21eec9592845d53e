"""Indexes of other libraries, for comparison only: usearch and faiss, each where it is installed.

Every index is built by one thread, as one must be that is the same each time, and keeps 8-bit codes. What it finds is
compared once more in float32, as the search of a snapshot does. The effort of a search is raised until its recall
reaches the wanted one; the figures are those of the first effort that does, or of the last.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

LINKS, BUILD_EFFORT = 16, 64  # of a graph index: edges of a node, and nodes looked at when one is added
COMPARED = 64  # hits of an index that are compared in float32
BLOCK = 16_384


@dataclass(frozen=True)
class OtherIndex:
    """An index that was built: `search` takes a question and the effort, from the least of `efforts` on."""

    name: str
    build_cpu_s: float
    bytes: int
    efforts: tuple[int, ...]
    search: Callable[[Any, int], Any]


def build_others(values: Any, n_cells: int, folder: Path) -> Iterator[OtherIndex]:
    """Each index that can be built here, one after the other, so that memory holds one."""
    if find_spec("faiss"):
        yield _faiss_cells(values, n_cells, folder)
        yield _faiss_graph(values, folder)
    if find_spec("usearch"):
        yield _usearch(values, folder)


def _faiss_cells(values: Any, n_cells: int, folder: Path) -> OtherIndex:
    import faiss

    faiss.omp_set_num_threads(1)
    began = time.process_time()
    dimension = values.shape[1]
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dimension), dimension, n_cells, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    sample = np.sort(np.random.default_rng(7).choice(len(values), min(len(values), 40 * n_cells), replace=False))
    index.train(np.ascontiguousarray(values[sample]))
    _add(index, values)
    spent = time.process_time() - began

    def search(asked: Any, effort: int) -> Any:
        index.nprobe = effort
        return index.search(asked[None], COMPARED)[1][0]

    shares = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
    efforts = tuple(max(1, round(share * n_cells)) for share in shares)
    return OtherIndex("faiss IVF, 8 bits", spent, _size(index, folder), efforts, search)


def _faiss_graph(values: Any, folder: Path) -> OtherIndex:
    import faiss

    faiss.omp_set_num_threads(1)
    began = time.process_time()
    index = faiss.IndexHNSWSQ(values.shape[1], faiss.ScalarQuantizer.QT_8bit, LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD_EFFORT
    index.train(np.ascontiguousarray(values[: 4 * BLOCK]))
    _add(index, values)
    spent = time.process_time() - began

    def search(asked: Any, effort: int) -> Any:
        index.hnsw.efSearch = effort
        return index.search(asked[None], min(COMPARED, effort))[1][0]

    return OtherIndex("faiss HNSW, 8 bits", spent, _size(index, folder), (32, 64, 128, 256, 512, 1024), search)


def _add(index: Any, values: Any) -> None:
    for first in range(0, len(values), BLOCK):
        index.add(np.ascontiguousarray(values[first : first + BLOCK]))


def _size(index: Any, folder: Path) -> int:
    import faiss

    path = folder / "faiss.index"
    faiss.write_index(index, str(path))
    size = path.stat().st_size
    path.unlink()
    return int(size)


def _usearch(values: Any, folder: Path) -> OtherIndex:
    from usearch.index import Index

    began = time.process_time()
    index = Index(
        ndim=values.shape[1],
        metric="cos",
        dtype="i8",
        connectivity=LINKS,
        expansion_add=BUILD_EFFORT,
        expansion_search=64,
    )
    for first in range(0, len(values), BLOCK):
        rows = np.ascontiguousarray(values[first : first + BLOCK])
        index.add(np.arange(first, first + len(rows)), rows, threads=1)
    spent = time.process_time() - began
    path = folder / "usearch.index"
    index.save(str(path))
    size = os.path.getsize(path)
    path.unlink()

    def search(asked: Any, effort: int) -> Any:
        index.expansion_search = effort
        return index.search(asked, min(COMPARED, effort), threads=1).keys.astype(np.int64)

    return OtherIndex("usearch HNSW, 8 bits", spent, int(size), (32, 64, 128, 256, 512, 1024), search)
