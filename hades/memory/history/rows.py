"""Keys, checks, rows, transactions, acts."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from hashlib import blake2b
from io import StringIO
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from hades.errors import HadesError, StoreBusy, StoreDamaged
from hades.ports.store import GraphStore, Predicate, RowStore
from schemas.ids import content_key, edge_key, is_legal_key, iso, node_id
from schemas.memory import (
    RELATION_PATTERN,
    LatestState,
    MemoryAudit,
    MemoryEdge,
    MemoryState,
    MemoryTrace,
)
from schemas.record import JsonObject, Keyed, from_rows, to_table

STATES, LATEST, TRACES = "memory_states", "memory_latest", "memory_traces"
EDGES, AUDIT = "memory_edges", "memory_audit"
_COLLECTION: Mapping[type[Keyed], str] = {
    MemoryState: STATES,
    LatestState: LATEST,
    MemoryTrace: TRACES,
    MemoryEdge: EDGES,
    MemoryAudit: AUDIT,
}
COLLECTIONS = tuple(_COLLECTION.values())
# Known at the end of time: what is believed now, whatever clocks say.
NEWEST = datetime.max.replace(tzinfo=UTC)
MAX_TOPIC = 500
SUMMARIES = "summary/"  # topics that only consolidation writes
_VERSION_DIGITS = 8


class MemoryRefused(HadesError):
    """A memory that cannot be kept as asked: which one, what was expected, what to do."""


class UnknownMemory(HadesError):
    """A topic, state, edge or record that memory does not hold."""


def check_topic(topic: str) -> str:
    """The topic without blanks around it; refused when nothing is left or a look-up could not hold
    it.
    """
    name = check_text("the topic", topic).strip()
    if not name or len(name) > MAX_TOPIC or any(ord(sign) < 32 for sign in name):
        raise MemoryRefused(
            f"{topic[:60]!r} is not a topic; give 1 to {MAX_TOPIC} printable characters, for "
            "example design/approach_x"
        )

    return name


def check_text(subject: str, text: str) -> str:
    """The text, or a refusal where it came from bytes that are no UTF-8 and no store could write
    it.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MemoryRefused(
            f"{subject} is not valid UTF-8 at character {error.start}; convert it first, for "
            "example with iconv"
        ) from None

    return text


def check_share(name: str, value: float, of: str = "") -> float:
    """A number between 0 and 1."""
    if not 0.0 <= value <= 1.0:
        raise MemoryRefused(f"{name} {value}{of} is not between 0 and 1; give a share")
    return float(value)


def check_relation(relation: str) -> str:
    """A relation's name in the form that the stores keep."""
    if not re.fullmatch(RELATION_PATTERN, relation):
        raise MemoryRefused(
            f"{relation!r} is not a relation; use small letters, digits and _, for example "
            "blocked_by"
        )

    return relation


def check_user_topic(topic: str) -> str:
    """A topic that people and agents may write to; names of summaries belong to consolidation."""
    name = check_topic(topic)
    if name.casefold().startswith(SUMMARIES):
        raise MemoryRefused(
            f"topic {name!r} begins with {SUMMARIES!r}, which is reserved for consolidation; "
            "choose another name, "
            f"for example {name.partition('/')[2] or 'notes'!r}"
        )

    return name


def topic_key(topic: str) -> str:
    """The key of a topic in `memory_latest` and `memory_traces`."""
    return content_key("t", topic)


def state_key(topic: str, version: int) -> str:
    """The key of one version; versions of a topic stand side by side, in order."""
    return f"{topic_key(topic)}_{version:0{_VERSION_DIGITS}d}"


def version_keys(
    topic: str,
    last: int,
    first: int = 1,
) -> list[str]:
    """The keys of the versions of a topic up to the last, in order; there is none before 1."""
    return [state_key(topic, version) for version in range(max(1, first), last + 1)]


def is_state_key(name: str) -> bool:
    """Whether a name is the key of a state rather than a topic."""
    head, _, version = name.rpartition("_")
    return (
        head.startswith("t_")
        and len(head) == 27
        and version.isdigit()
        and len(version) >= _VERSION_DIGITS
    )


def state_id(key: str) -> str:
    """The `_id` edges point at."""
    return node_id(STATES, key)


def key_of(identifier: str) -> str:
    """The key in an `_id`, or the key itself."""
    return identifier.partition("/")[2] or identifier


def topic_of_key(identifier: str) -> str:
    """The topic's key inside a state's key or `_id`."""
    return key_of(identifier).rpartition("_")[0]


def edge_id(
    source: str,
    relation: str,
    target: str,
    valid_from: datetime,
) -> str:
    """What an edge is known by: its ends, its relation and when it became true."""
    return edge_key(source, relation, target, iso(valid_from))


def revision_key(edge: str, revision: int) -> str:
    """The key of one belief about an edge."""
    return f"{edge}_{revision:06d}"


def aware(name: str, moment: datetime) -> datetime:
    """The moment in UTC; one without a zone could mean any of twenty-four."""
    if moment.tzinfo is None:
        raise MemoryRefused(
            f"{name} {moment} has no time zone; give an aware datetime, for example "
            "2026-01-31T12:00Z"
        )

    return moment.astimezone(UTC)


def legal(kind: str, name: str) -> str:
    """A key that the stores take, or a refusal that names it."""
    if not is_legal_key(name):
        raise UnknownMemory(f"{name!r} is not a valid {kind}; copy the id as `--json` prints it")
    return name


Row = TypeVar("Row", bound=Keyed)


def read(table: pa.Table | pa.RecordBatch, record: type[Row]) -> list[Row]:
    """The rows as records, in their order."""
    return from_rows(record, table.to_pylist())


def collection_of(record: type[Keyed]) -> str:
    """The collection of a kind of record."""
    return _COLLECTION[record]


def fetch(
    rows: RowStore,
    record: type[Row],
    keys: Sequence[str],
) -> dict[str, Row]:
    """The records that exist among these keys, by key."""
    if not keys:
        return {}

    table = rows.get(_COLLECTION[record], keys)
    return {instance.key: instance for instance in read(table, record)}


def scan(
    rows: RowStore,
    record: type[Row],
    where: Predicate = (),
) -> Iterator[Row]:
    """The records that satisfy the terms, in key order."""
    for batch in rows.scan(_COLLECTION[record], where=where):
        yield from read(batch, record)


def put(rows: RowStore, records: Iterable[Keyed]) -> None:
    """Write records of one kind, one batch."""
    batch = list(records)
    if batch:
        record = type(batch[0])
        rows.upsert(_COLLECTION[record], to_table(record, batch))


def plain(value: Any) -> Any:
    """A record or report as JSON values, without vectors; an edge also by the names that edges of
    paths have.
    """
    return orjson.loads(orjson.dumps(value, default=_fields_of))


def _fields_of(record: Keyed) -> JsonObject:
    names = {"id": getattr(record, "id", record.key)}
    if isinstance(record, MemoryEdge):
        names |= {
            "from": record.source,
            "to": record.target,
            "type": record.relationship_type,
        }
    return {
        **names,
        **record.model_dump(mode="json", exclude={"embedding", "key"}),
    }


Span = tuple[datetime, datetime | None]  # an absent end is open


def without(span: Span, covered: Iterable[Span]) -> list[Span]:
    """The parts of a span that none of the others covers, in order; a span without a moment covers
    nothing.
    """
    remaining = [span]
    for start, end in covered:
        remaining = list(chain.from_iterable(_subtract(span, start, end) for span in remaining))

    return remaining


def _subtract(
    span: Span,
    start: datetime,
    end: datetime | None,
) -> list[Span]:
    first, last = span
    if (end is not None and end <= max(first, start)) or (last is not None and last <= start):
        return [span]

    head = [(first, start)] if first < start else []
    if end is not None and (last is None or end < last):
        tail = [(end, last)]
    else:
        tail = []

    return [*head, *tail]


Result = TypeVar("Result")
ATTEMPTS = 40
_FIRST_S, _LONGEST_S = 0.005, 0.5


def in_unit(store: GraphStore, work: Callable[[RowStore], Result]) -> Result:
    """What `work` returns, all of it kept or nothing; it must be as good twice as once.

    Pauses grow and are random, so that writers that met once do not meet again.
    """
    longest = _FIRST_S
    attempts_left = ATTEMPTS

    while True:
        attempts_left -= 1
        try:
            with store.transaction(COLLECTIONS) as rows:
                return work(rows)
        except StoreBusy:
            if not attempts_left:
                raise

        time.sleep(random.uniform(0, longest))
        longest = min(longest * 2, _LONGEST_S)


WHOLE = "* "  # stands before the recipe of a row whose content is still whole
_LINE = re.compile(r".*\n|.+")
# A blank belongs to its word: alone it would match everywhere.
_TOKEN = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_FINE_TOKENS = 1_500  # beyond it, words are not compared one by one: the search is quadratic
_BETWEEN = "\n"


def delta_between(parent: str, content: str) -> tuple[str, str]:
    """Recipe and pieces that make the content from its parent: lines are compared, then the words
    of changed lines.

    The recipe `digest =12 -3 +5` keeps twelve characters of the parent, leaves out three, takes
    five of the pieces. These stand one to a line in the row's `content`, where full-text search
    finds the words that a version brought. The digest is of the whole content, so a chain that does
    not rebuild it is noticed.
    """
    recipe = [digest_of(content)]
    for sign, group in groupby(_text_changes(parent, content), key=itemgetter(0)):
        recipe.append(f"{sign}{sum(len(text) for _, text in group)}")

    recipe_text = " ".join(recipe)
    return recipe_text, pieces_of(content, recipe_text)


def rebuild(
    parent: str,
    recipe: str,
    pieces: str,
    label: str = "a delta",
) -> str:
    """The content the recipe was made of, or `StoreDamaged` when parent, recipe or pieces are not
    what they were.
    """
    expected, *steps = recipe.split(" ")
    old = StringIO(parent)
    new = StringIO(pieces)

    parts: list[str] = []
    for step in steps:
        text = (new if step[0] == "+" else old).read(int(step[1:]))
        if step[0] != "-":
            parts.append(text)
        if step[0] == "+":
            new.read(len(_BETWEEN))

    content = "".join(parts)
    if digest_of(content) != expected:
        raise StoreDamaged(f"{label} does not rebuild its content; restore a backup of the store")

    return content


def pieces_of(content: str, recipe: str) -> str:
    """The pieces a recipe takes, cut out of the whole content it makes."""
    pieces: list[str] = []

    at = 0
    for step in recipe.split(" ")[1:]:
        count = int(step[1:])
        if step[0] == "+":
            pieces.append(content[at : at + count])
        if step[0] != "-":
            at += count

    return _BETWEEN.join(pieces)


def digest_of(content: str) -> str:
    """A short hash of the content."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _text_changes(
    parent: str,
    content: str,
    unit: re.Pattern[str] = _LINE,
) -> Iterator[tuple[str, str]]:
    """Texts kept (=), left out (-) and added (+), in order."""
    old = unit.findall(parent)
    new = unit.findall(content)

    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        old_text = "".join(old[a:b])
        new_text = "".join(new[c:d])
        if tag == "equal":
            yield "=", old_text
            continue

        if tag == "replace" and unit is _LINE:
            sizes = []
            for text in (old_text, new_text):
                sizes.append(len(_TOKEN.findall(text)))

            if max(sizes) <= _FINE_TOKENS:
                yield from _text_changes(old_text, new_text, _TOKEN)
                continue

        if old_text:
            yield "-", old_text
        if new_text:
            yield "+", new_text
