"""Ids and keys that come from content; valid time and known time."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Span = tuple[int, int]  # [start, end) in characters of a text
# ArangoDB also takes ':', but SmartGraphs give it a meaning, so no key of ours holds one.
KEY_PATTERN = r"^[A-Za-z0-9_\-.@()+,=;$!*'%]{1,254}$"
ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_\-]{0,63}/[A-Za-z0-9_\-.@()+,=;$!*'%]{1,254}$"
_KEY = re.compile(KEY_PATTERN)
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 80


def is_legal_key(key: str) -> bool:
    """Whether both stores take this text as a `_key`."""
    return _KEY.fullmatch(key) is not None


def content_key(kind: str, *parts: str) -> str:
    """A key made of what it names: `kind_` and 100 bits of a BLAKE2b hash over the parts, in
    order.
    """
    return f"{kind}_{_digest(parts)}"


def edge_key(source: str, relation: str, target: str, *qualifiers: str) -> str:
    """The key of an edge, the same however often the same edge is found; qualifiers tell parallel
    edges apart.
    """
    return _digest((source, relation, target, *qualifiers))


def entity_key(
    name: str,
    entity_type: str,
    qualifier: str = "",
) -> str:
    """The key of an entity: its name in lower case with underscores, readable where that loses
    nothing.

    Names that fold to the same letters, other types, and homonyms (told apart by `qualifier`) must
    not share a key, so everything but a plain name carries a short hash of the exact name, type and
    qualifier. Whether a text makes a plain name a person does not change its key.
    """
    folded = slug(name)
    loses_nothing = "_" not in name and folded == name.lower().replace(" ", "_")
    is_plain = loses_nothing and 0 < len(folded) <= _SLUG_CHARS

    if is_plain and entity_type in ("concept", "person") and not qualifier:
        return folded

    stem = folded[:_SLUG_CHARS].strip("_") or "e"
    return f"{stem}-{_digest((name.casefold(), entity_type, qualifier))[:10]}"


def slug(name: str) -> str:
    """Lower-case ASCII letters and digits with single underscores between; may be empty."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return _NOT_WORD.sub("_", ascii_name).strip("_")


def node_id(collection: str, key: str) -> str:
    """The `_id` of a document: `collection/key`."""
    return f"{collection}/{key}"


def key_of(identifier: str) -> str:
    """The key of an `_id`; empty where the text has no collection before it."""
    return identifier.partition("/")[2]


def split_id(identifier: str) -> tuple[str, str]:
    """Collection and key of an `_id`; raises ValueError when the text is not one."""
    collection, slash, key = identifier.partition("/")
    if not slash or not collection or not key:
        raise ValueError(f"{identifier!r} is not an id of the form collection/key")

    return collection, key


def sha256_text(text: str) -> str:
    """The hash by which a document's text is known to have changed or not."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _digest(parts: tuple[str, ...]) -> str:
    encoded = "".join([f"{len(part)}:{part}" for part in parts]).encode(
        "utf-8",
        "surrogatepass",
    )
    return hashlib.blake2b(encoded, digest_size=13).hexdigest()[:25]


@dataclass(frozen=True)
class Mask:
    """The point in time a reader stands at: true at `as_of`, known at `known_at`; None leaves that
    axis open.
    """

    as_of: datetime | None = None
    known_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("as_of", "known_at"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} has no time zone; give an aware datetime")

    @property
    def is_open(self) -> bool:
        """Whether nothing is masked."""
        return self.as_of is None and self.known_at is None

    @property
    def moment(self) -> datetime | None:
        """The earlier of both: no text that is later was there to be read; None where neither is
        given.
        """
        return min(filter(None, (self.as_of, self.known_at)), default=None)


def contains(
    start: datetime | None,
    end: datetime | None,
    moment: datetime,
) -> bool:
    """Whether [start, end) holds the moment; an absent bound is open."""
    return (start is None or start <= moment) and (end is None or moment < end)


def overlap(
    first: tuple[datetime | None, datetime | None],
    second: tuple[datetime | None, datetime | None],
) -> bool:
    """Whether two half-open intervals share a moment."""
    return _begins_before_end(first[0], second[1]) and _begins_before_end(second[0], first[1])


def _begins_before_end(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


def is_visible(
    mask: Mask,
    valid_from: datetime | None,
    valid_until: datetime | None,
    recorded_at: datetime | None,
    retracted_at: datetime | None,
) -> bool:
    """Whether a reader standing at the mask sees a fact with these two intervals."""
    return (mask.as_of is None or contains(valid_from, valid_until, mask.as_of)) and (
        mask.known_at is None or contains(recorded_at, retracted_at, mask.known_at)
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def iso(moment: datetime) -> str:
    """UTC text of fixed width, so that text order is time order in every store."""
    return (
        moment.astimezone(UTC)
        .isoformat(timespec="microseconds")
        .replace(
            "+00:00",
            "Z",
        )
    )
