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

    def frequency(self, file_row: Mapping[str, int]) -> Scores:
        """How often each file changed lately, in log."""
        counts = np.zeros(len(file_row))
        for commit in self.commits[:_RECENT]:
            for path in commit.paths if len(commit.paths) <= _WIDEST else ():
                if path in file_row:
                    counts[file_row[path]] += 1
        return np.log1p(counts)

    def recency(self, file_row: Mapping[str, int]) -> Scores:
        """1 for a file that the newest commit touched, falling with each commit since."""
        scores = np.zeros(len(file_row))
        for place, commit in enumerate(self.commits[:2000]):
            for path in commit.paths if len(commit.paths) <= _WIDEST else ():
                row = file_row.get(path)
                if row is not None and not scores[row]:
                    scores[row] = 1.0 / (1.0 + place / 20.0)
        return scores

    def together(self, weights: Scores, file_row: Mapping[str, int]) -> Scores:
        """What files lend to those that changed in the same commits; each commit shares what it gets."""
        scores = np.zeros(len(file_row))
        total = np.ones(len(file_row))
        for place, commit in enumerate(self.commits[:2000]):
            rows = [file_row[path] for path in commit.paths if path in file_row]
            if 1 < len(rows) <= _WIDEST:
                worth = 0.998**place / (len(rows) - 1)
                lent = float(weights[rows].sum())
                total[rows] += worth
                for row in rows:
                    scores[row] += worth * (lent - weights[row])
        return scores / total**0.5


@lru_cache(1 << 14)
def _message_terms(message: str) -> tuple[str, ...]:
    return tuple(code_terms(message[:_LONGEST_MESSAGE]))
