"""What earlier commits say: messages like the question, and which files change often, lately and together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.code.postings import Postings, Scores, build_postings, count_terms
from hades.retrieval.code.words import code_terms

_WIDEST = 30  # a commit that touches more files says little about any of them
_LIKE = 40  # commits whose messages are most like the question
_LONGEST_MESSAGE = 2_000
_RECENT = 300  # commits that count for frequency of change
_LATEST = 2_000  # commits that count for how lately and with which others
_FADE = 0.998  # what a commit is worth beside the one after it


@dataclass(frozen=True)
class Commit:
    """A commit: its message, when it was made (seconds since 1970), the files that it touched, by their paths now."""

    id: str
    time: float
    message: str
    paths: tuple[str, ...]


class History:
    """Commits, newest first, in whatever order they are given."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = tuple(sorted(commits, key=lambda one: (-one.time, one.id)))
        self._terms: dict[str, int] = {}

    def only(self, files: Collection[str]) -> History:
        """The commits that touched files which are there, with those files alone; others say nothing of them."""
        kept = ((one, tuple(sorted({path for path in one.paths if path in files}))) for one in self.commits)
        return History([replace(one, paths=paths) for one, paths in kept if paths])

    @cached_property
    def _postings(self) -> Postings:
        term: list[NDArray[np.int64]] = []
        times: list[NDArray[np.float64]] = []
        for commit in self.commits:
            words = _message_terms(commit.message)
            numbers = [self._terms.setdefault(word, len(self._terms)) for word in words]
            found, count = count_terms(numbers)
            term.append(found)
            times.append(count)
        row = np.repeat(np.arange(len(term)), [len(found) for found in term])
        nothing = np.empty(0)
        every = np.concatenate(term) if term else nothing.astype(np.int64)
        return build_postings(every, row, np.concatenate(times) if times else nothing, len(self._terms), len(term))

    def similar(self, words: Mapping[str, float], file_row: Mapping[str, int]) -> Scores:
        """What commits with messages like the question give to the files that they touched."""
        scores = np.zeros(len(file_row))
        if not self.commits:
            return scores
        postings = self._postings
        likeness = postings.score({self._terms[word]: weight for word, weight in words.items() if word in self._terms})
        for place in np.argsort(-likeness, kind="stable")[:_LIKE].tolist():
            rows = [file_row[path] for path in self.commits[place].paths if path in file_row]
            if likeness[place] > 0 and 0 < len(rows) <= _WIDEST:
                scores[rows] += likeness[place] / len(rows) ** 0.5
        return scores

    def changes_of(self, file_row: Mapping[str, int]) -> PastChanges:
        """What the latest commits say of each file, whatever the question."""
        often, recent, total = np.zeros(len(file_row)), np.zeros(len(file_row)), np.ones(len(file_row))
        rows: list[int] = []
        sizes: list[int] = []
        worths: list[float] = []
        for place, commit in enumerate(self.commits[:_LATEST]):
            own = [file_row[path] for path in commit.paths if path in file_row]
            if len(commit.paths) <= _WIDEST:
                often[own] += place < _RECENT
                recent[own] = np.maximum(recent[own], 1.0 / (1.0 + place / 20.0))
            if 1 < len(own) <= _WIDEST:
                worth = _FADE**place / (len(own) - 1)
                total[own] += worth
                rows += own
                sizes.append(len(own))
                worths.append(worth)
        return PastChanges(
            np.log1p(often), recent, total, np.array(rows, np.int64), np.array(sizes, np.int64), np.array(worths)
        )


@dataclass(frozen=True, eq=False)
class PastChanges:
    """By file: how often it changed lately, in log; 1 where the newest commit touched it, falling with each since.

    Of each commit with several files: their `rows` one after the other, how many, and what the commit is worth.
    """

    frequency: Scores
    recency: Scores
    total: Scores
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    worth: Scores

    def together(self, weights: Scores) -> Scores:
        """What files lend to those that changed in the same commits; each commit shares what it gets."""
        if not len(self.rows):
            return np.zeros(len(self.total))
        own = weights[self.rows]
        lent = np.add.reduceat(own, np.cumsum(self.sizes) - self.sizes)
        shares = np.repeat(self.worth, self.sizes) * (np.repeat(lent, self.sizes) - own)
        return np.bincount(self.rows, weights=shares, minlength=len(self.total)) / self.total**0.5


@lru_cache(1 << 14)
def _message_terms(message: str) -> tuple[str, ...]:
    return tuple(code_terms(message[:_LONGEST_MESSAGE]))
