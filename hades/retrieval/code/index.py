"""Units, history, use graph, postings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.retrieval.code.words import Vocabulary, Words, code_terms, describe_paths
from models.bm25 import Bm25, Scores, fit_bm25


def fit_lists(rows: Sequence[Sequence[int]], terms: int) -> Bm25:
    """BM25 over rows of term numbers, each as often as it stands there."""
    term = np.array(list(chain.from_iterable(rows)), np.int64)
    place = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return fit_bm25(
        term,
        place,
        np.ones(len(term)),
        terms,
        len(rows),
    )


_WIDEST = 30  # a commit that touches more files says little about any of them
_LIKE = 40  # commits whose messages are most like the question
_LONGEST_MESSAGE = 2_000
_RECENT = 300  # commits that count for frequency of change
_LATEST = 2_000  # commits that count for how lately and with which others
_FADE = 0.998  # what a commit is worth beside the one after it


@dataclass(frozen=True)
class Commit:
    """A commit: its message, when it was made (seconds since 1970), the files that it touched, by
    their paths now.
    """

    id: str
    time: float
    message: str
    paths: tuple[str, ...]


class History:
    """Commits, newest first, in whatever order they are given."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = tuple(sorted(commits, key=lambda commit: (-commit.time, commit.id)))
        self._terms = Vocabulary()

    def only(self, files: Collection[str]) -> History:
        """The commits that touched files which are there, with those files alone; others say
        nothing of them.
        """
        commits = []
        for commit in self.commits:
            paths = {path for path in commit.paths if path in files}
            if paths:
                commits.append(replace(commit, paths=tuple(sorted(paths))))

        return History(commits)

    @cached_property
    def _postings(self) -> Bm25:
        rows = []
        for commit in self.commits:
            rows.append(self._terms.numbers(_message_terms(commit.message)))

        return fit_lists(rows, len(self._terms))

    def similar(self, words: Mapping[str, float], file_row: Mapping[str, int]) -> Scores:
        """What commits with messages like the question give to the files that they touched."""
        scores = np.zeros(len(file_row))
        if not self.commits:
            return scores

        postings = self._postings
        likeness = postings.score(
            {self._terms[word]: weight for word, weight in words.items() if word in self._terms}
        )
        for place in np.argsort(-likeness, kind="stable")[:_LIKE].tolist():
            rows = []
            for path in self.commits[place].paths:
                if path in file_row:
                    rows.append(file_row[path])

            if likeness[place] > 0 and 0 < len(rows) <= _WIDEST:
                scores[rows] += likeness[place] / len(rows) ** 0.5

        return scores

    def changes_of(self, file_row: Mapping[str, int]) -> PastChanges:
        """What the latest commits say of each file, whatever the question."""
        often = np.zeros(len(file_row))
        recent = np.zeros(len(file_row))
        total = np.ones(len(file_row))
        rows: list[int] = []
        sizes: list[int] = []

        worths: list[float] = []
        for place, commit in enumerate(self.commits[:_LATEST]):
            touched = []
            for path in commit.paths:
                if path in file_row:
                    touched.append(file_row[path])

            if len(commit.paths) <= _WIDEST:
                often[touched] += place < _RECENT
                recent[touched] = np.maximum(recent[touched], 1.0 / (1.0 + place / 20.0))

            if 1 < len(touched) <= _WIDEST:
                worth = _FADE**place / (len(touched) - 1)
                total[touched] += worth
                rows += touched
                sizes.append(len(touched))
                worths.append(worth)

        return PastChanges(
            frequency=np.log1p(often),
            recency=recent,
            total=total,
            rows=np.array(rows, np.int64),
            sizes=np.array(sizes, np.int64),
            worth=np.array(worths),
        )


@dataclass(frozen=True, eq=False)
class PastChanges:
    """By file: how often it changed lately, in log; 1 where the newest commit touched it, falling
    with each since.

    Of each commit with several files: their `rows` one after the other, how many, and what the
    commit is worth.
    """

    frequency: Scores
    recency: Scores
    total: Scores
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    worth: Scores

    def together(self, weights: Scores) -> Scores:
        """What files lend to those that changed in the same commits; each commit shares what it
        gets.
        """
        if not len(self.rows):
            return np.zeros(len(self.total))

        file_weights = weights[self.rows]
        lent = np.add.reduceat(file_weights, np.cumsum(self.sizes) - self.sizes)
        shares = np.repeat(self.worth, self.sizes) * (np.repeat(lent, self.sizes) - file_weights)
        return np.bincount(self.rows, weights=shares, minlength=len(self.total)) / self.total**0.5


@lru_cache(1 << 14)
def _message_terms(message: str) -> tuple[str, ...]:
    return tuple(code_terms(message[:_LONGEST_MESSAGE]))


@dataclass(frozen=True)
class CodeUnit:
    """A function, method, class head or region of a file; `symbol` is empty at module level."""

    path: str
    symbol: str
    kind: str
    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True)
class Symbol:
    """A named function, method or class, with the rows of its units. Rows are sorted."""

    path: str
    name: str
    rows: tuple[int, ...]


class CodeIndex:
    """Units, files and symbols by row; postings of each; names to where they are defined."""

    def __init__(
        self,
        units: Sequence[CodeUnit],
        history: History | None = None,
        words: Words | None = None,
    ) -> None:
        self.units = tuple(units)
        self.words = words or Words()
        self.unit_words = [self.words.read(unit.symbol, unit.text) for unit in self.units]
        self.files: list[str] = list(dict.fromkeys(unit.path for unit in self.units))
        self.file_row = {path: row for row, path in enumerate(self.files)}
        self.history = (history or History(())).only(self.file_row)
        self.unit_file = np.array([self.file_row[unit.path] for unit in self.units], np.int64)
        self.symbols = _group_symbols(self.units)
        self.unit_symbol = np.full(len(self.units), -1, np.int64)

        for place, symbol in enumerate(self.symbols):
            self.unit_symbol[list(symbol.rows)] = place

        self.symbol_file = np.array(
            [self.file_row[symbol.path] for symbol in self.symbols], np.int64
        )

    @cached_property
    def unit_postings(self) -> Bm25:
        """Words of units."""
        return self._postings(np.arange(len(self.units)), len(self.units))

    @cached_property
    def file_postings(self) -> Bm25:
        """Words of whole files."""
        return self._postings(self.unit_file, len(self.files))

    @cached_property
    def symbol_postings(self) -> Bm25:
        """Words of symbols, whose units count together; the last row holds what stands at module
        level.
        """
        rows = np.where(
            self.unit_symbol < 0,
            len(self.symbols),
            self.unit_symbol,
        )
        return self._postings(rows, len(self.symbols) + 1)

    @cached_property
    def path_postings(self) -> Bm25:
        """Words of paths; those of the file's own name count double."""
        terms = self.words.terms

        rows = []
        for path in self.files:
            name = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
            words = code_terms(path.rsplit(".", 1)[0]) + code_terms(name)
            rows.append(terms.numbers(words))

        return fit_lists(rows, len(terms))

    @cached_property
    def phrases(self) -> tuple[NDArray[np.int64], Bm25]:
        """Runs of three words in string literals: their codes, sorted, and by their places there
        those of each unit.
        """
        sizes = [len(words.phrase) for words in self.unit_words]
        runs = np.concatenate([np.empty(0, np.int64), *(words.phrase for words in self.unit_words)])
        codes, term = np.unique(runs, return_inverse=True)
        row = np.repeat(np.arange(len(self.unit_words)), sizes)
        return codes, fit_bm25(
            term,
            row,
            np.ones(len(term)),
            len(codes),
            len(self.units),
        )

    def phrase_terms(self, texts: Iterable[str]) -> dict[int, float]:
        """The runs of three words of texts that the repository has in string literals, as a
        query.
        """
        _, place, _ = np.intersect1d(
            self.phrases[0],
            self.words.known_runs(texts),
            return_indices=True,
        )
        return dict.fromkeys(place.tolist(), 1.0)

    @cached_property
    def defined(self) -> dict[str, tuple[int, ...]]:
        """Last part of a name, in lower case, to the symbols that are called so."""
        places_by_name: dict[str, list[int]] = defaultdict(list)
        for place, symbol in enumerate(self.symbols):
            places_by_name[symbol.name.rsplit(".", 1)[-1].lower()].append(place)

        return {name: tuple(places) for name, places in places_by_name.items()}

    @cached_property
    def stems(self) -> dict[str, tuple[int, ...]]:
        """Name of a file without its ending, or of a package, to its files."""
        rows_by_name: dict[str, list[int]] = defaultdict(list)
        for row, path in enumerate(self.files):
            parts = path.split("/")
            stem = parts[-1].rsplit(".", 1)[0]
            if stem in ("__init__", "index", "mod") and len(parts) > 1:
                stem = parts[-2]

            rows_by_name[stem.lower()].append(row)

        return {name: tuple(rows) for name, rows in rows_by_name.items()}

    @cached_property
    def file_uses(self) -> list[set[str]]:
        """The names that each file uses."""
        uses: list[set[str]] = [set() for _ in self.files]
        for file, words in zip(self.unit_file.tolist(), self.unit_words, strict=True):
            uses[file] |= words.uses

        return uses

    @cached_property
    def use_graph(self) -> UseGraph:
        """Which files use which."""
        return build_use_graph(self)

    @cached_property
    def past_changes(self) -> PastChanges:
        """How often, how lately and with which others each file changed."""
        return self.history.changes_of(self.file_row)

    @cached_property
    def outer(self) -> NDArray[np.int64]:
        """The symbol that each symbol stands in, a method's class; -1 for one that stands in
        none.
        """
        heads = {}
        for place, symbol in enumerate(self.symbols):
            heads[(symbol.path, symbol.name)] = place

        outer_names = []
        for symbol in self.symbols:
            outer_names.append((symbol.path, symbol.name.rpartition(".")[0]))

        return np.array([heads.get(name, -1) for name in outer_names], np.int64)

    @cached_property
    def file_shape(self) -> dict[str, NDArray[np.float64]]:
        """What each file is, whatever the question: test, aside, text, package, and its size."""
        lines = []
        for unit in self.units:
            lines.append(unit.last_line - unit.first_line + 1)

        sizes = np.bincount(
            self.unit_file,
            weights=lines,
            minlength=len(self.files),
        )
        return {
            **describe_paths(self.files),
            "size": np.log1p(sizes),
        }

    def _postings(self, rows: NDArray[np.int64], count: int) -> Bm25:
        sizes = [len(words.term) for words in self.unit_words]
        term = np.concatenate([np.empty(0, np.int64), *(words.term for words in self.unit_words)])
        times = np.concatenate([np.empty(0), *(words.times for words in self.unit_words)])
        return fit_bm25(
            term,
            np.repeat(rows, sizes),
            times,
            len(self.words.terms),
            count,
        )


def _group_symbols(units: Iterable[CodeUnit]) -> tuple[Symbol, ...]:
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, unit in enumerate(units):
        if unit.symbol:
            rows[unit.path, unit.symbol].append(row)

    return tuple(Symbol(path, name, tuple(unit_rows)) for (path, name), unit_rows in rows.items())


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
        sums = np.bincount(
            source,
            weights=self.weight,
            minlength=self.files,
        )
        share = self.weight / sums[source]
        base = start / total
        rank = base.copy()

        for _ in range(_STEPS):
            arrived = np.bincount(
                target,
                weights=share * rank[source],
                minlength=self.files,
            )
            rank = (1 - _DAMPING) * base + _DAMPING * arrived

        return np.asarray(rank - (1 - _DAMPING) * base)


def build_use_graph(index: CodeIndex) -> UseGraph:
    """The graph of an index: an edge where a file imports another or uses a name that only few
    files define.
    """
    weights: dict[tuple[int, int], float] = {}
    for edge, worth in (*_edges_by_name(index), *_edges_by_import(index)):
        if edge[0] != edge[1]:
            weights[edge] = weights.get(edge, 0.0) + worth

    edges = np.array(list(weights), np.int64).reshape(-1, 2)
    weight = np.log1p(np.array(list(weights.values())))
    return UseGraph(
        edges[:, 0],
        edges[:, 1],
        weight,
        len(index.files),
    )


def import_targets(
    index: CodeIndex,
    path: str,
    text: str,
) -> set[int]:
    """The files of the repository that the import lines of a text name."""
    targets: set[int] = set()
    package = path.split("/")[:-1]

    for base, names, plain, script in _IMPORT.findall(text):
        if base:
            dots = len(base) - len(base.lstrip("."))
            root = package[: len(package) - dots + 1] if dots else []
            stem = root + [part for part in base.split(".") if part]
            imported = filter(str.isidentifier, map(str.strip, names.split(",")))
            modules = [stem, *([*stem, name] for name in imported)]
        elif plain:
            modules = [name.strip().split(".") for name in plain.split(",")]
        else:
            modules = [[part for part in script.split("/") if part not in (".", "..", "")]]

        for parts in modules:
            file = _file_of(index, parts)
            if file is not None:
                targets.add(file)

    return targets


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


def share_tail(first: list[str], second: list[str]) -> int:
    """How many parts of two paths agree from their end."""
    shared = 0
    while shared < min(len(first), len(second)) and first[-1 - shared] == second[-1 - shared]:
        shared += 1

    return shared


def _file_of(index: CodeIndex, parts: list[str]) -> int | None:
    """The file that a module name means: the one whose path ends with it."""
    best = None

    length = 0
    for row in index.stems.get(parts[-1].lower(), ()) if parts else ():
        module = index.files[row].rsplit(".", 1)[0]
        module = module.removesuffix("/__init__").removesuffix("/index")
        shared = share_tail(module.split("/"), parts)

        if shared > length and (shared == len(parts) or shared >= 2):
            best = row
            length = shared

    return best
