"""An answer without a language model: the sentences of the found passages that fit the question best, quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.services import Embedder
from hades.retrieval.core.words import content_words, short_title, words
from hades.retrieval.features.sentences import root
from hades.text.sentences import keep_prose, row_words, sentences, strip_markup, table_rows
from schemas.answer import AnswerSentence, AnswerSource

Floats = NDArray[np.float64]
MAX_SENTENCES = 3
_READ = 60  # sentences that are embedded; each costs about 8 ms on one core
_LONGEST, _SHORTEST = 400, 12  # characters of a sentence that can stand alone
_SAME = 0.7  # share of words above which two sentences say the same
_PLACE = 0.15  # what the rank of its source is worth beside the fit of a sentence
_RELATIVE = 0.7  # a further sentence fits at least this well, compared with the first
_FIRST = 0.1  # what it is worth that a sentence begins its source: there texts say what they are about
_NEXT = 0.3  # what it is worth that a sentence chosen before names the title of its source
_ROW = 0.9  # a row of a table beside a sentence that fits as well: the sentence reads better
_NEAR = 0.4  # cosine from which a sentence may answer without a word of the question
_CODE = re.compile(
    r"\s*(?:@\w|(?:async )?def |class |import |from \w[\w.]* import |(?:public|private|static|func|fn|function) )"
)
_DOCSTRING = re.compile(r"(\"\"\"|\'\'\')(.*?)\1", re.DOTALL)


@dataclass(frozen=True)
class _Candidate:
    number: int
    text: str
    quote: str  # the same words as they stand in the source
    own: frozenset[str]  # roots of its words
    title: frozenset[str]  # of the words of its source's title, without what stands in brackets
    roots: frozenset[str]  # of its words and all words of the title
    worth: float  # 1 for a sentence, less for a row of a table
    is_first: bool
    place: int  # in reading order


def extract_sentences(
    question: str, sources: Sequence[AnswerSource], embedder: Embedder | None
) -> tuple[AnswerSentence, ...]:
    """At most three quotations in reading order; each cites its source. Empty when nothing can be quoted."""
    candidates = _candidates(sources)
    if not candidates:
        return ()
    chosen = [candidates[index] for index in _choose(_Fit(question, candidates, embedder))]
    picked = sorted(chosen, key=lambda one: one.place)
    return tuple(AnswerSentence(text=one.text, citations=(one.number,), quote=one.quote) for one in picked)


def _choose(fit: _Fit) -> list[int]:
    """The best sentence, then those that say what is left to say: words of the question that no other has, and what a
    chosen one leads to.

    So both halves of a question that is answered in two steps find their sentence.
    """
    chosen: list[int] = []
    enough = 0.0
    while len(chosen) < MAX_SENTENCES:
        scores = fit.scores([fit.candidates[index] for index in chosen])
        best = int(np.argmax(scores))
        if scores[best] <= enough:
            break
        if not chosen:
            enough = _RELATIVE * float(scores[best])
        chosen.append(best)
    return chosen


def _candidates(sources: Sequence[AnswerSource]) -> list[_Candidate]:
    found: list[_Candidate] = []
    for source in sources:
        if source.kind != "passage":
            continue
        title = _roots(short_title(source.title))
        is_first = True
        for quote, text in _statements(source):
            is_row = quote.startswith("|")
            if _can_stand_alone(text):
                own = _roots(text)
                roots, worth = own | _roots(source.title), _ROW if is_row else 1.0
                begins = is_first and not is_row
                found.append(_Candidate(source.number, text, quote, own, title, roots, worth, begins, len(found)))
                is_first = is_row
        if len(found) >= _READ:
            break
    return found[:_READ]


def _can_stand_alone(text: str) -> bool:
    """Whether a text is neither a scrap nor a page, holds words, and does not announce what follows it."""
    return _SHORTEST <= len(text) <= _LONGEST and not text.endswith(":") and any(map(str.isalpha, text))


def _statements(source: AnswerSource) -> list[tuple[str, str]]:
    """Sentences and rows of tables, each as it stands in the source and in plain words."""
    about, prose = _readable(source)
    quotes = [" ".join(prose[start:end].split()) for start, end in sentences(prose)]
    rows = [] if about else [(row, row_words(row)) for row in table_rows(source.text)]
    return [(quote, about + strip_markup(quote)) for quote in quotes] + rows


def _readable(source: AnswerSource) -> tuple[str, str]:
    """The sentences of a source and what they are about: of code its docstrings, of text neither heading nor table."""
    if not _CODE.match(source.text):
        return "", keep_prose(_drop_headings(source))
    docstrings = "\n\n".join(found.group(2) for found in _DOCSTRING.finditer(source.text))
    name = source.where.rpartition(", ")[2]
    return (f"{name}: " if name else ""), docstrings


def _drop_headings(source: AnswerSource) -> str:
    """Text of a word processor has no mark on its headings; they stand in the title and in `where`."""
    named = {source.title, *source.where.split(", ")} - {""}
    return "\n".join("\n" if " ".join(line.split()) in named else line for line in source.text.split("\n"))


class _Fit:
    """How well each candidate fits the question, beside those that were chosen already."""

    def __init__(self, question: str, candidates: Sequence[_Candidate], embedder: Embedder | None) -> None:
        self.candidates = candidates
        asked = list(dict.fromkeys(map(root, content_words(question)))) or list(map(root, words(question)))
        self._rarity = {
            word: float(np.log((len(candidates) + 1) / (0.5 + sum(word in one.roots for one in candidates))))
            for word in asked
        }
        self._worth = np.array([one.worth for one in candidates])
        self._place = np.array([_PLACE / one.number + _FIRST * one.is_first for one in candidates])
        self._near: Floats | None = None
        if embedder is not None:
            vectors = embedder.embed([question, *(one.text for one in candidates)])
            self._near = (vectors[1:] @ vectors[0]).astype(np.float64)

    def scores(self, chosen: Sequence[_Candidate]) -> Floats:
        """The fit of each candidate; -1 for one that does not answer or says what a chosen one says."""
        said = frozenset[str]().union(*(one.roots for one in chosen))
        own = frozenset[str]().union(*(one.own for one in chosen))
        numbers = {one.number for one in chosen}
        leads = np.array([one.number not in numbers and self._is_named(one, own) for one in self.candidates])
        lexical = self._lexical(frozenset(self._rarity) - said)
        if self._near is None:
            fit, is_fit = self._worth * (lexical + self._place), lexical > 0.0
        else:
            fit = self._worth * (0.5 * lexical + 0.5 * self._near + self._place)
            is_fit = (self._lexical(frozenset(self._rarity)) > 0.0) | (self._near >= _NEAR)
        is_new = np.array([all(_overlap(one, other) < _SAME for other in chosen) for one in self.candidates])
        return np.where((is_fit | leads) & is_new, fit + _NEXT * leads, -1.0)

    def _lexical(self, wanted: frozenset[str]) -> Floats:
        """The share of the wanted words that each candidate holds, rare ones counting more."""
        total = sum(self._rarity[word] for word in wanted) or 1.0
        return np.array([sum(self._rarity[word] for word in wanted & one.roots) / total for one in self.candidates])

    def _is_named(self, candidate: _Candidate, said: frozenset[str]) -> bool:
        """Whether what was said names the title of a candidate, and the question did not."""
        title = candidate.title
        return bool(title) and title <= said and not title <= self._rarity.keys()


def _roots(text: str) -> frozenset[str]:
    return frozenset(map(root, words(text)))


def _overlap(one: _Candidate, other: _Candidate) -> float:
    return len(one.roots & other.roots) / max(1, min(len(one.roots), len(other.roots)))
