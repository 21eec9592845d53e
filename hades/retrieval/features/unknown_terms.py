"""What a question asks about that no passage names: a product or a term from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from hades.ports.graph import Passage
from hades.retrieval.core.words import content_words, passage_body
from hades.text.languages import ENGLISH, detect_language
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, RELATIONAL_WORDS, TERM_BREAKERS

# Values, paths, calls and errors: what somebody has, not what they ask about.
_VALUE = re.compile(
    r"\w+(?:Error|Exception|Warning)\b|\"[^\"]*\"|\S*[/\\_=<>(){}\[\]@|$%\d]\S*|\S+:\S+|-\S+|\.\w+"
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_OPENS = re.compile(r"(?:^|[.?!:;]\s)\W*$")
# What follows says where or with what: the question may go on about something else.
_ASIDE = re.compile(
    r"\b(?:in|on|with|from|under|behind|via|inside|within|using|into|for)\s+"
    r"(?:(?:an?|the|my|our)\s+)?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[\s,/]*(?:(?:and|or)\s+)?")  # within one list or one compound
_GENERAL = CALENDAR | FUNCTION_WORDS | RELATIONAL_WORDS | TERM_BREAKERS
_VERB = re.compile(r"\w+i[sz](?:e[ds]?|ing|ation)")  # made of an ordinary word
_ENDINGS = ("s", "es", "ed", "ing", "er", "ly")
_MOST_MORE = 3  # letters by which a longer form of a name is longer
_SHORTEST_VARIANT = 5  # letters of a word whose misspelling is looked for
# What a word counts that no passage holds: a name fully, another rare word its part of a short
# question, and each less where it is said by the way; and what one of them counts that some holds.
_RARE, _MOST_RARE, _BY_THE_WAY, _KNOWN = 1.2, 0.6, 0.7, 0.5


@dataclass(frozen=True)
class UnknownTerms:
    """The words of a question that the corpus lacks and that are no ordinary words, in order.

    `share`, from 0 to 1, is how far the question is about them.
    """

    words: tuple[str, ...] = ()
    share: float = 0.0


@dataclass(frozen=True)
class _Term:
    """A word that a question may ask about."""

    word: str
    is_name: bool  # written as one
    is_aside: bool


def find_unknown_terms(
    question: str,
    passages: Sequence[Passage],
    holds: Callable[[str], bool],
    is_common: Callable[[str], bool],
) -> UnknownTerms:
    """What of an English question the corpus does not know; of another, nothing is found.

    `holds` says whether a passage of the corpus holds a word, `is_common` whether any text may use
    it. A word that is spelled nearly as one of these passages is a typing error.
    """
    if detect_language(question) != ENGLISH:
        return UnknownTerms()

    unknown_terms: list[_Term] = []
    known = 0
    spellings = _Spellings(passages)
    terms = list(_terms(question))

    compounds = []
    for first, second in pairwise(terms):
        compounds.append(f"{first.word}{second.word}".lower())

    for term in terms:
        word = term.word.lower()
        is_rare = not _VERB.fullmatch(word) and not any(map(is_common, _base_forms(word)))
        if not (term.is_name or is_rare):
            continue

        joined = []
        for compound in compounds:
            if word in compound:
                joined.append(compound)

        if any(map(holds, (word, word.removesuffix("s"), *joined))):
            known += 1
        elif not spellings.hold_like(word, term.is_name, is_rare):
            unknown_terms.append(term)

    rare = min(_MOST_RARE, _RARE / max(1, len(terms)))
    weight = 0.0
    for term in unknown_terms:
        weight += (1.0 if term.is_name else rare) * (_BY_THE_WAY if term.is_aside else 1.0)

    words = tuple(dict.fromkeys(term.word for term in unknown_terms))
    return UnknownTerms(words, weight / (weight + _KNOWN * known + 1.0))


def _terms(question: str) -> Iterator[_Term]:
    """The words of a question that are no values and say something of what it is about."""
    text = _VALUE.sub(lambda value: " " * len(value[0]), question)
    matches = list(_WORD.finditer(text))
    capitals = sum(match[0][0].isupper() for match in matches)
    is_title = len(matches) > 3 and capitals > 0.6 * len(matches)
    is_aside = False

    end = 0
    for match in matches:
        word = match[0]
        text_before = text[: match.start()]
        goes_on = is_aside and _GOES_ON.fullmatch(text_before, end) is not None
        is_aside = goes_on or _ASIDE.search(text_before) is not None
        end = match.end()

        if word.lower() in _GENERAL or not content_words(word):
            continue

        opens = is_title or _OPENS.search(text_before) is not None
        is_name = not word[1:].islower() or (word[0].isupper() and not opens)
        yield _Term(word, is_name, is_aside)


def _base_forms(word: str) -> list[str]:
    """A word, and what it may be a form of."""
    forms = [word]
    for ending in _ENDINGS:
        if word.endswith(ending):
            base = word.removesuffix(ending)
            forms += [base, f"{base}e", base[:-1]]

    return [form for form in forms if len(form) > 2]


class _Spellings:
    """The words of passages, gathered when they are first asked for."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._words: set[str] = set()
        self._joined: set[str] = set()

    def hold_like(
        self,
        word: str,
        is_name: bool,
        is_rare: bool,
    ) -> bool:
        """Whether the passages write a word apart or, where it is rare, longer or nearly the
        same.

        An ordinary word is no typing error of another.
        """
        if not self._words:
            for passage in self._passages:
                words = passage_body(passage.title, passage.text).words
                self._words.update(words)
                self._joined.update(map("".join, pairwise(words)))

        return word in self._joined or (is_rare and _is_variant(word, self._words, is_name))


def _is_variant(
    word: str,
    spellings: AbstractSet[str],
    is_name: bool,
) -> bool:
    """Whether one of these words begins with a word, or differs in a letter or two."""
    is_long = len(word) >= _SHORTEST_VARIANT
    forms = _deletions(word)

    for spelling in spellings:
        more_letters = len(spelling) - len(word)
        is_whole = not is_name or (is_long and more_letters <= _MOST_MORE)
        is_longer = spelling.startswith(word) and is_whole
        is_near = is_long and abs(more_letters) < 2 and spelling[:1] == word[0]

        if is_longer or (is_near and not forms.isdisjoint(_deletions(spelling))):
            return True

    return False


def _deletions(word: str) -> set[str]:
    """A word, and it without each of its letters: two words that share one differ in one letter or
    in the order of two.
    """
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}
