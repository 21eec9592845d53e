"""What every framework's retriever shares: the search, and a passage with what a framework keeps
beside its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from hades.ports.graph import DocumentFilter
from hades.retrieval.core.types import DEFAULT
from hades.settings.load import load_settings
from hades.wiring import open_answers
from schemas.answer import CitedPassage, Retrieval
from schemas.plan import HARD_CAPS, Profile

_LISTS = frozenset(("path", "source", "type", "tag", "author"))
_FILTERS = _LISTS | {"domain", "since", "until"}
MAX_PASSAGES = HARD_CAPS[Profile.LONG].final_context


class Search(Protocol):
    """What answers a question: `open_hades()`, or the read-only answers that `open_search`
    gives.
    """

    def retrieve(
        self,
        text: str,
        *,
        recipe: str = ...,
        plan: Mapping[str, Any] | None = ...,
        only: DocumentFilter | None = ...,
    ) -> Retrieval:
        """Answer a question."""


def open_search(home: str | None = None) -> Search:
    """The published graph under `home`, by default that of the settings; it only reads."""
    settings = load_settings()
    if home is not None:
        settings = settings.model_copy(update={"home": Path(home)})

    return open_answers(settings)


def find_passages(
    search: Search,
    question: str,
    k: int,
    recipe: str = DEFAULT,
    filters: Mapping[str, Any] | None = None,
) -> Sequence[CitedPassage]:
    """The best `k` passages, at most 64; more than 8 are asked for with the profile `long`.

    `filters` are those of a query: path, source, type, tag and author (a text or several), domain,
    since and until.
    """
    if not 1 <= k <= MAX_PASSAGES:
        raise ValueError(f"k is {k}; expected 1 to {MAX_PASSAGES}")

    if k <= HARD_CAPS[Profile.ONLINE].final_context:
        profile = Profile.ONLINE
    else:
        profile = Profile.LONG

    plan = {
        "profile": profile.value,
        "final_context": k,
    }
    only = _document_filter(filters or {})
    return search.retrieve(
        question,
        recipe=recipe,
        plan=plan,
        only=only,
    ).passages[:k]


def _document_filter(filters: Mapping[str, Any]) -> DocumentFilter | None:
    if unknown := set(filters) - _FILTERS:
        raise ValueError(f"{min(unknown)!r} is no filter; use {', '.join(sorted(_FILTERS))}")

    limits: dict[str, Any] = {}
    for name in _LISTS & set(filters):
        value = filters[name]
        limits[f"{name}s"] = (value,) if isinstance(value, str) else tuple(value)

    for name in {"since", "until"} & set(filters):
        moment = datetime.fromisoformat(str(filters[name]))
        limits[name] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    if filters:
        return DocumentFilter(filters.get("domain"), **limits)

    return None


def describe_passage(passage: CitedPassage) -> dict[str, Any]:
    """What a framework keeps beside the text: where it stands, and why it was found."""
    place = {
        "source": passage.path or passage.document,
        "document": passage.document,
        "title": passage.title,
        "span": list(passage.span),
        "headings": list(passage.headings),
        "found_by": list(passage.origins),
        "rank": passage.rank,
        "score": passage.score,
    }
    if passage.lines is not None:
        place |= {
            "path": passage.path,
            "lines": list(passage.lines),
            "symbol": passage.symbol,
        }

    return place
