"""Files that use each other: a weighted graph by imports and by names, and PageRank that starts from the hits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import Numbers
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.postings import Scores

_IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+import\s+([\w, ]+|\()|import\s+([\w.]+(?:\s*,\s*[\w.]+)*))"
    r"|(?:require|from)\s*\(?[\"']([^\"'\n]+)[\"']",
    re.M,
)
_WIDEST_NAME = 8  # a name that more files define tells them apart no more
_SHORTEST_NAME = 4
_IMPORT_WEIGHT = 2.0
_STEPS = 12
_DAMPING = 0.5


@dataclass(frozen=True, eq=False)
class UseGraph:
    """Edge i says that file `user[i]` uses file `used[i]`, `weight[i]` much."""

    user: Numbers
    used: Numbers
    weight: Scores
    files: int

    def spread(self, start: Scores, *, to_users: bool) -> Scores:
        """What the start lends to others by personalized PageRank, along uses or against them."""
        total = float(start.sum())
        if not total or not len(self.user):
            return np.zeros(self.files)
        source, target = (self.used, self.user) if to_users else (self.user, self.used)
        sums = np.bincount(source, weights=self.weight, minlength=self.files)
        share = self.weight / sums[source]
        base = start / total
        rank = base.copy()
        for _ in range(_STEPS):
            arrived = np.bincount(target, weights=share * rank[source], minlength=self.files)
            rank = (1 - _DAMPING) * base + _DAMPING * arrived
        return np.asarray(rank - (1 - _DAMPING) * base)


def build_use_graph(index: CodeIndex) -> UseGraph:
    """The graph of an index: an edge where a file imports another or uses a name that only few files define."""
    weights: dict[tuple[int, int], float] = {}
    for edge, worth in (*_edges_by_name(index), *_edges_by_import(index)):
        if edge[0] != edge[1]:
            weights[edge] = weights.get(edge, 0.0) + worth
    where = np.array(list(weights), np.int64).reshape(-1, 2)
    return UseGraph(where[:, 0], where[:, 1], np.log1p(np.array(list(weights.values()))), len(index.files))


def import_targets(index: CodeIndex, path: str, text: str) -> set[int]:
    """The files of the repository that the import lines of a text name."""
    found: set[int] = set()
    package = path.split("/")[:-1]
    for base, names, plain, script in _IMPORT.findall(text):
        if base:
            dots = len(base) - len(base.lstrip("."))
            root = package[: len(package) - dots + 1] if dots else []
            stem = root + [part for part in base.split(".") if part]
            wanted = [stem, *([*stem, name.strip()] for name in names.split(",") if name.strip().isidentifier())]
        elif plain:
            wanted = [name.strip().split(".") for name in plain.split(",")]
        else:
            wanted = [[part for part in script.split("/") if part not in (".", "..", "")]]
        found.update(row for row in (_file_of(index, parts) for parts in wanted) if row is not None)
    return found


def _edges_by_name(index: CodeIndex) -> Iterator[tuple[tuple[int, int], float]]:
    owners: dict[str, set[int]] = {}
    for place, symbol in enumerate(index.symbols):
        name = symbol.name.rsplit(".", 1)[-1]
        if len(name) >= _SHORTEST_NAME and not name.startswith("__"):
            owners.setdefault(name, set()).add(int(index.symbol_file[place]))
    telling = {name: files for name, files in owners.items() if len(files) <= _WIDEST_NAME}
    for file, uses in enumerate(index.file_uses):
        for name in uses & telling.keys():
            for owner in telling[name]:
                yield (file, owner), 1.0 / len(telling[name])


def _edges_by_import(index: CodeIndex) -> Iterator[tuple[tuple[int, int], float]]:
    for file, unit in zip(index.unit_file.tolist(), index.units, strict=True):
        if "import" in unit.text or "require" in unit.text:
            for target in import_targets(index, unit.path, unit.text):
                yield (file, target), _IMPORT_WEIGHT


def _file_of(index: CodeIndex, parts: list[str]) -> int | None:
    """The file that a module name means: the one whose path ends with it."""
    best, length = None, 0
    for row in index.stems.get(parts[-1].lower(), ()) if parts else ():
        own = index.files[row].rsplit(".", 1)[0].removesuffix("/__init__").removesuffix("/index").split("/")
        shared = 0
        while shared < min(len(own), len(parts)) and own[-1 - shared] == parts[-1 - shared]:
            shared += 1
        if shared > length and (shared == len(parts) or shared >= 2):
            best, length = row, shared
    return best
