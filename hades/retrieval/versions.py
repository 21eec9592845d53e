"""A version to ask: the id of a snapshot, which then answers, or a time at which the edges were true."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.pipeline import BadQuestion
from schemas.retrieval import Retrieval

_SNAPSHOT_ID = re.compile(r"g[0-9a-f]+")


def is_snapshot_id(version: str | None) -> bool:
    """Whether a version names a snapshot, which never changes; a time or a live view does not."""
    return version is not None and _SNAPSHOT_ID.fullmatch(version) is not None


def retrieve_version(
    answers: Answers, query: str, version: str | None, *, as_of: datetime | None = None, **options: Any
) -> Retrieval:
    """The answer of the version that was asked for; `options` are those of `Answers.retrieve`."""
    then = None if version is None else _read_time(version)
    if then is not None and as_of is not None and then != as_of:
        raise BadQuestion(f"as_of_version says {version} and as_of {as_of.isoformat()}; give one of them")
    if version is None or then is not None:
        return answers.retrieve(query, as_of=then or as_of, **options)
    with answers.as_published(version) as published:
        return published.retrieve(query, as_of=as_of, **options)


def _read_time(version: str) -> datetime | None:
    """The time that a version spells, in UTC where it names no zone; None for the id of a snapshot."""
    if is_snapshot_id(version):
        return None
    try:
        moment = datetime.fromisoformat(version)
    except ValueError:
        raise BadQuestion(
            f"as_of_version is {version!r}; give the id of a snapshot, which `hades snapshots` lists, or a time such "
            "as 2026-01-31T12:00Z"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
