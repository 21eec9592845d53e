"""Entities that a text names, by the view over their names: case and accents do not count, aliases do."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aql import load
from hades.snapshot.names import normalise, runs_of_words
from hades.stores.arango.store import ArangoStore
from schemas.catalogue import NAME_ANALYZER

_UNBOUNDED = 2**31 - 1


@dataclass(frozen=True)
class NameMatches:
    """Who is named and where, as (start, end, `_id`) in the order of ids; `fetched` rows came for it."""

    places: list[tuple[int, int, str]]
    fetched: int


def find_named(store: ArangoStore, text: str, limit: int | None) -> NameMatches:
    """Every entity with a name that stands in the text, in one query.

    The server finds names by their letters, so one is found only with the signs it is stored with or with blanks for
    them; whether it is the same name, and where, is then judged here word by word, as a snapshot does.
    """
    names = names_in(text)
    binds = {
        "names": names,
        "analyzer": NAME_ANALYZER,
        "wait": store.wait_for_view,
        "limit": _UNBOUNDED if limit is None else limit,
    }
    found = store.session.query(load("view/list_named"), binds, action="looking for names") if names else []
    return NameMatches(place_names(text, found), len(found))


def names_in(text: str) -> list[str]:
    """Every name that the text may spell, as the server stores names."""
    runs = runs_of_words(text)
    return sorted({one for start, end, form in runs for one in (form, *_spellings(text, start, end))})


def place_names(text: str, found: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, int, str]]:
    """Where the text spells the entities, given as id and names; in the order of ids."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end, form in runs_of_words(text):
        spans.setdefault(form, []).append((start, end))
    places = {
        (start, end, identifier)
        for identifier, spelled in found
        for form in map(normalise, spelled)
        for start, end in spans.get(form, ())
    }
    return sorted(places, key=lambda place: place[::-1])


def _spellings(text: str, start: int, end: int) -> Iterator[str]:
    """A run of words as a name would be stored: as written, and with the sign beside it on either side."""
    before = start - 1 if start and not text[start - 1].isspace() else start
    after = end + 1 if end < len(text) and not text[end].isspace() else end
    for first in {before, start}:
        for last in {end, after}:
            yield _analyse(text[first:last])


def _analyse(text: str) -> str:
    """What `NAME_ANALYZER` makes of a text: lower case, accents taken off, the rest composed as it was."""
    letters = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(one for one in letters if unicodedata.category(one) != "Mn"))
