"""A repository as it is searched: code units with path, symbol and lines, their words, names, imports and history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.code.file_shape import describe_paths
from hades.retrieval.code.history import History, PastChanges
from hades.retrieval.code.postings import Postings, build_postings
from hades.retrieval.code.unit_words import Words
from hades.retrieval.code.words import code_terms

if TYPE_CHECKING:
    from hades.retrieval.code.graph import UseGraph


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
    kind: str
    rows: tuple[int, ...]


class CodeIndex:
    """Units, files and symbols by row; postings of each; names to where they are defined."""

    def __init__(self, units: Sequence[CodeUnit], history: History | None = None, words: Words | None = None) -> None:
        self.units = tuple(units)
        self.words = words or Words()
        self.read = [self.words.read(unit.symbol, unit.text) for unit in self.units]
        self.files: list[str] = list(dict.fromkeys(unit.path for unit in self.units))
        self.file_row = {path: row for row, path in enumerate(self.files)}
        self.history = (history or History(())).only(self.file_row)
        self.unit_file = np.array([self.file_row[unit.path] for unit in self.units], np.int64)
        self.symbols = _group_symbols(self.units)
        self.unit_symbol = np.full(len(self.units), -1, np.int64)
        for place, symbol in enumerate(self.symbols):
            self.unit_symbol[list(symbol.rows)] = place
        self.symbol_file = np.array([self.file_row[symbol.path] for symbol in self.symbols], np.int64)

    @cached_property
    def unit_postings(self) -> Postings:
        """Words of units."""
        return self._postings(np.arange(len(self.units)), len(self.units))

    @cached_property
    def file_postings(self) -> Postings:
        """Words of whole files."""
        return self._postings(self.unit_file, len(self.files))

    @cached_property
    def symbol_postings(self) -> Postings:
        """Words of symbols, whose units count together; the last row holds what stands at module level."""
        rows = np.where(self.unit_symbol < 0, len(self.symbols), self.unit_symbol)
        return self._postings(rows, len(self.symbols) + 1)

    @cached_property
    def path_postings(self) -> Postings:
        """Words of paths; those of the file's own name count double."""
        term: list[int] = []
        row: list[int] = []
        for place, path in enumerate(self.files):
            stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
            found = [self.words.terms[word] for word in code_terms(path.rsplit(".", 1)[0]) + code_terms(stem)]
            term += found
            row += [place] * len(found)
        ones = np.ones(len(term))
        return build_postings(
            np.array(term, np.int64), np.array(row, np.int64), ones, len(self.words.terms), len(self.files)
        )

    @cached_property
    def phrase_codes(self) -> NDArray[np.int64]:
        """Runs of three words in string literals, sorted; a term of `phrase_postings` is a place here."""
        return np.unique(np.concatenate([words.phrase for words in self.read])) if self.read else np.empty(0, np.int64)

    @cached_property
    def phrase_postings(self) -> Postings:
        """Runs of three words in string literals, by unit."""
        sizes = [len(words.phrase) for words in self.read]
        codes = np.concatenate([words.phrase for words in self.read]) if self.read else np.empty(0, np.int64)
        term = np.searchsorted(self.phrase_codes, codes)
        row = np.repeat(np.arange(len(self.read)), sizes)
        return build_postings(term, row, np.ones(len(term)), len(self.phrase_codes), len(self.units))

    def phrase_terms(self, texts: Iterable[str]) -> dict[int, float]:
        """The runs of three words of texts that the repository has in string literals, as a query."""
        codes = self.words.known_runs(texts)
        place = np.searchsorted(self.phrase_codes, codes)
        held = place < len(self.phrase_codes)
        held[held] = self.phrase_codes[place[held]] == codes[held]
        return dict.fromkeys(place[held].tolist(), 1.0)

    @cached_property
    def defined(self) -> dict[str, tuple[int, ...]]:
        """Last part of a name, in lower case, to the symbols that are called so."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, symbol in enumerate(self.symbols):
            found[symbol.name.rsplit(".", 1)[-1].lower()].append(place)
        return {name: tuple(places) for name, places in found.items()}

    @cached_property
    def stems(self) -> dict[str, tuple[int, ...]]:
        """Name of a file without its ending, or of a package, to its files."""
        found: dict[str, list[int]] = defaultdict(list)
        for row, path in enumerate(self.files):
            parts = path.split("/")
            stem = parts[-1].rsplit(".", 1)[0]
            found[(parts[-2] if stem in ("__init__", "index", "mod") and len(parts) > 1 else stem).lower()].append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    @cached_property
    def file_uses(self) -> list[set[str]]:
        """The names that each file uses."""
        uses: list[set[str]] = [set() for _ in self.files]
        for file, words in zip(self.unit_file.tolist(), self.read, strict=True):
            uses[file] |= words.uses
        return uses

    @cached_property
    def use_graph(self) -> UseGraph:
        """Which files use which."""
        from hades.retrieval.code.graph import build_use_graph

        return build_use_graph(self)

    @cached_property
    def past_changes(self) -> PastChanges:
        """How often, how lately and with which others each file changed."""
        return self.history.changes_of(self.file_row)

    @cached_property
    def outer(self) -> NDArray[np.int64]:
        """The symbol that each symbol stands in, a method's class; -1 for one that stands in none."""
        heads = {(symbol.path, symbol.name): place for place, symbol in enumerate(self.symbols)}
        found = [heads.get((symbol.path, symbol.name.rpartition(".")[0]), -1) for symbol in self.symbols]
        return np.array(found, np.int64)

    @cached_property
    def file_shape(self) -> dict[str, NDArray[np.float64]]:
        """What each file is, whatever the question: test, aside, text, package, and its size."""
        lines = [unit.last_line - unit.first_line + 1 for unit in self.units]
        sizes = np.bincount(self.unit_file, weights=lines, minlength=len(self.files))
        return {**describe_paths(self.files), "size": np.log1p(sizes)}

    def _postings(self, rows: NDArray[np.int64], count: int) -> Postings:
        sizes = [len(words.term) for words in self.read]
        term = np.concatenate([words.term for words in self.read]) if self.read else np.empty(0, np.int64)
        times = np.concatenate([words.times for words in self.read]) if self.read else np.empty(0)
        return build_postings(term, np.repeat(rows, sizes), times, len(self.words.terms), count)


def _group_symbols(units: Iterable[CodeUnit]) -> tuple[Symbol, ...]:
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    kinds: dict[tuple[str, str], str] = {}
    for row, unit in enumerate(units):
        if unit.symbol:
            rows[unit.path, unit.symbol].append(row)
            kinds.setdefault((unit.path, unit.symbol), unit.kind)
    return tuple(Symbol(path, name, kinds[path, name], tuple(found)) for (path, name), found in rows.items())
