"""A question that goes on from an earlier one: the words and the filters that it carries."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from hades.ports.graph import DocumentFilter
from hades.retrieval.answer.absence import written_filters
from hades.retrieval.core.words import content_words, stem
from hades.retrieval.necessity import read_filters
from hades.text.word_lists import FUNCTION_WORDS
from schemas.answer import Carried
from schemas.telemetry import QueryLog, ShownResults

_MOST_WORDS = 12  # the newest stand first, so that a long conversation forgets its beginning
_ENOUGH = 3  # content words of a question that stands by itself
_GOES_ON = re.compile(r"\s*(?:and|or|but|what about|how about|what if|also|same|und|oder|et|ou|y|e|и|а)\b", re.I)
_REFERS = re.compile(r"\b(?:it|its|they|them|their|this|that|these|those|there|one|ones|he|she|him|her)\b", re.I)
_WORD = re.compile(r"[\w-](?:[\w./:'-]*\w)?")
_FIELDS = {"paths": "path", "sources": "source", "types": "type", "tags": "tag", "authors": "author"}


def follow_up(
    text: str, last: QueryLog, only: DocumentFilter | None, drop: Collection[str] = ()
) -> tuple[str, DocumentFilter | None, Carried]:
    """The question as it is asked, what it is limited to, and what both have from the last one.

    Words are carried where the question leans on the last one: it goes on, refers to something, or is short. Filters
    that it does not set are carried too. What `drop` names, a word or a filter, is left out.
    """
    left_out = {one.casefold() for one in drop}
    words = [word for word in _words_of(last.query, text) if word.casefold() not in left_out] if _leans(text) else []
    shown = {name: one for name, one in ShownResults.model_validate(last.results).filters.items() if name != "within"}
    before = written_filters(read_filters(shown)[0])
    given = written_filters(only)
    kept = {name: value for name, value in before.items() if name not in given and _said(name) not in left_out}
    earlier = read_filters(kept)[0]
    if earlier is not None and only is not None:
        earlier = replace(earlier, **{name: getattr(only, name) for name in given})
    filters = {_said(name): value for name, value in kept.items()}
    carried = Carried(follows=last.key, words=tuple(words), filters=filters)
    return " ".join([text, *words]), earlier or only, carried


def _words_of(last: str, text: str) -> list[str]:
    """The words of the last question that carry meaning and that the new one does not say, as written."""
    said = {stem(word) for word in content_words(text)}
    found: dict[str, str] = {}
    for word in _WORD.findall(last):
        own = [one for one in content_words(word) if one not in FUNCTION_WORDS]
        if own and not said.issuperset(map(stem, own)):
            found.setdefault(word.casefold(), word)
    return list(found.values())[:_MOST_WORDS]


def _leans(text: str) -> bool:
    return bool(_GOES_ON.match(text) or _REFERS.search(text)) or len(content_words(text)) < _ENOUGH


def _said(name: str) -> str:
    """A filter as people name it."""
    return _FIELDS.get(name, name)
