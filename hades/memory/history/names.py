"""What memory calls things: keys that come from topic and version, and ids as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from hades.errors import HadesError
from schemas.ids import content_key, edge_key, is_legal_key, node_id
from schemas.intervals import iso

STATES, LATEST, TRACES = "memory_states", "memory_latest", "memory_traces"
EDGES, AUDIT = "memory_edges", "memory_audit"
COLLECTIONS = (STATES, LATEST, TRACES, EDGES, AUDIT)

NEWEST = datetime.max.replace(tzinfo=UTC)  # known at the end of time: what is believed now, whatever clocks say
MAX_TOPIC = 500
SUMMARIES = "summary/"  # topics that only consolidation writes
_VERSION_DIGITS = 8


class MemoryRefused(HadesError):
    """A memory that cannot be kept as asked: which one, what was expected, what to do."""


class UnknownMemory(HadesError):
    """A topic, state, edge or record that memory does not hold."""


def check_topic(topic: str) -> str:
    """The topic without blanks around it; refused when nothing is left or a look-up could not hold it."""
    name = check_text("the topic", topic).strip()
    if not name or len(name) > MAX_TOPIC or any(ord(sign) < 32 for sign in name):
        raise MemoryRefused(
            f"{topic[:60]!r} is not a topic; give 1 to {MAX_TOPIC} printable characters, for example design/approach_x"
        )
    return name


def check_text(what: str, text: str) -> str:
    """The text, or a refusal where it came from bytes that are no UTF-8 and no store could write it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MemoryRefused(
            f"{what} is not valid UTF-8 at character {error.start}; convert it first, for example with iconv"
        ) from None
    return text


def check_user_topic(topic: str) -> str:
    """A topic that people and agents may write to; names of summaries belong to consolidation."""
    name = check_topic(topic)
    if name.casefold().startswith(SUMMARIES):
        raise MemoryRefused(
            f"topic {name!r} begins with {SUMMARIES!r}, which is reserved for consolidation; choose another name, "
            f"for example {name.partition('/')[2] or 'notes'!r}"
        )
    return name


def topic_key(topic: str) -> str:
    """The key of a topic in `memory_latest` and `memory_traces`."""
    return content_key("t", topic)


def state_key(topic: str, version: int) -> str:
    """The key of one version; versions of a topic stand side by side, in order."""
    return f"{topic_key(topic)}_{version:0{_VERSION_DIGITS}d}"


def is_state_key(name: str) -> bool:
    """Whether a name is the key of a state rather than a topic."""
    head, _, version = name.rpartition("_")
    return head.startswith("t_") and len(head) == 27 and version.isdigit() and len(version) >= _VERSION_DIGITS


def state_id(key: str) -> str:
    """The `_id` edges point at."""
    return node_id(STATES, key)


def key_of(identifier: str) -> str:
    """The key in an `_id`, or the key itself."""
    return identifier.partition("/")[2] or identifier


def topic_of_key(key: str) -> str:
    """The topic's key inside a state's key."""
    return key.rpartition("_")[0]


def edge_id(source: str, relation: str, target: str, valid_from: datetime) -> str:
    """What an edge is known by: its ends, its relation and when it became true."""
    return edge_key(source, relation, target, iso(valid_from))


def revision_key(edge: str, revision: int) -> str:
    """The key of one belief about an edge."""
    return f"{edge}_{revision:06d}"


def audit_key(at: datetime, step: int, *parts: str) -> str:
    """A key in the order of time and of the steps of an act, so that the newest records stand together."""
    micros = round(at.timestamp() * 1_000_000)
    return f"{micros:017d}_{step:04d}_{content_key('a', *parts)[2:14]}"


def aware(name: str, moment: datetime) -> datetime:
    """The moment in UTC; one without a zone could mean any of twenty-four."""
    if moment.tzinfo is None:
        raise MemoryRefused(f"{name} {moment} has no time zone; give an aware datetime, for example 2026-01-31T12:00Z")
    return moment.astimezone(UTC)


def legal(kind: str, name: str) -> str:
    """A key that the stores take, or a refusal that names it."""
    if not is_legal_key(name):
        raise UnknownMemory(f"{name!r} is not a valid {kind}; copy the id as `--json` prints it")
    return name
