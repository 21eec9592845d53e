"""Chat logs in."""

from __future__ import annotations

import gzip
import html
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from hades.memory.history.edges import NewEdge
from hades.memory.history.rows import NEWEST, MemoryRefused, topic_key
from hades.memory.history.states import NewState, states_at
from hades.memory.memory import Memory
from hades.text.dates import parse_moment
from schemas.ids import Mask
from schemas.memory import MemoryEdgeKind
from schemas.record import JsonObject

Message = Mapping[str, Any]  # or a conversation, as a log has it
# Files beside the channels that hold no messages, without their suffix.
LISTS = frozenset(
    """
    users channels groups dms mpims org_users integration_logs canvases lists
    """.split()  # noqa: SIM905
)
_NOTICES = (
    "_join",
    "_leave",
    "_topic",
    "_purpose",
    "_name",
    "_archive",
    "_unarchive",
    "_convert_to_private",
)
_PERSON = re.compile(r"<@(\w+)(?:\|([^>]+))?>")
_CHANNEL = re.compile(r"<#\w+\|([^>]+)>")
_LABELLED = re.compile(r"<((?:https?|mailto):[^|>]+)\|([^>]+)>")
_PLAIN_LINK = re.compile(r"<((?:https?|mailto):[^>]+)>")


def is_slack(message: Message) -> bool:
    """Whether a message has the fields that Slack gives it."""
    return isinstance(message.get("ts"), str) and (
        "user" in message or "bot_id" in message or "subtype" in message
    )


def people_of(users: bytes | None) -> dict[str, str]:
    """Names by id, from the export's `users.json`; none where there is no such file or it has
    another form.
    """
    try:
        listed = orjson.loads(users or b"[]")
    except orjson.JSONDecodeError:
        return {}

    people = {}
    for row in listed if isinstance(listed, list) else ():
        if isinstance(row, Mapping) and "id" in row:
            name = _profile_name(row.get("profile")) or row.get("name") or row["id"]
            people[str(row["id"])] = str(name)

    return people


def plain_message(message: Message, people: Mapping[str, str]) -> JsonObject:
    """The message with its speaker by name and its text as people read it; a notice, such as a
    join, has no text.
    """
    user = str(message.get("user") or "")
    profile = _profile_name(message.get("user_profile"))
    names = (profile, people.get(user), message.get("username"), user)
    speaker = next(filter(None, names), "unknown")
    is_notice = str(message.get("subtype") or "").endswith(_NOTICES)

    if is_notice:
        text = ""
    else:
        text = _plain_text(str(message.get("text") or ""), people)

    return {
        "speaker": str(speaker),
        "text": text,
        "ts": message["ts"],
        "id": message["ts"],
    }


def _profile_name(profile: Any) -> str:
    names = ("real_name", "display_name", "name")
    if isinstance(profile, Mapping):
        return _first_value(profile, names, "").strip()
    return ""


def _plain_text(text: str, people: Mapping[str, str]) -> str:
    text = _PERSON.sub(
        lambda mention: f"@{people.get(mention[1]) or mention[2] or mention[1]}",
        text,
    )
    text = _CHANNEL.sub(r"#\1", text)
    text = _PLAIN_LINK.sub(r"\1", _LABELLED.sub(r"\2 (\1)", text))
    return html.unescape(text).strip()


# Chat logs as turns, in the forms that docs/memory.md lists: recognised by their content, never by
# the file's name. A folder or .zip is read file by file. The generic form is an object with a
# speaker, a text and perhaps a time and a session, each under one of these names.
_SPEAKER = ("role", "speaker", "author", "sender", "from", "name", "user")
_TEXT = ("content", "text", "message", "body")
_TIME = ("timestamp", "time", "created_at", "create_time", "date_time", "date", "ts")
_SESSION = ("session", "session_id", "conversation_id", "conv", "thread", "thread_id", "chat_id")
_ID = ("id", "uuid", "dia_id", "message_id")
_LOCOMO_SESSION = re.compile(r"^session_(\d+)$")
_TIME_FORMATS = (
    "%I:%M %p on %d %B, %Y",
    "%d %B %Y",
    "%d %B, %Y",
    "%Y/%m/%d %H:%M",
    "%m/%d/%Y %H:%M",
    "%Y-%m-%d %H:%M:%S",
)
_SECONDS = re.compile(r"^\d{9,10}(\.\d+)?$")  # since 1970, as Slack writes them
_SUFFIXES = (".json", ".jsonl")
_MILLISECONDS = 100_000_000_000  # a larger number counts milliseconds


@dataclass(frozen=True)
class Turn:
    """What somebody said: in which session, at which place in it, when, and the id that the log
    gave it.
    """

    session: str
    number: int
    speaker: str
    text: str
    at: datetime | None
    id: str


def read_conversation(path: Path) -> list[Turn]:
    """The turns of a chat log in their order; a file of another form is refused with what was
    expected.
    """
    try:
        if path.is_dir() or path.suffix == ".zip":
            turns = list(_turns_of_files(_read_files(path)))
        else:
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
            turns = list(_parse_turns(_parse(content, str(path)), path.name))
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        problem = getattr(error, "strerror", None) or error
        raise MemoryRefused(
            f"{path} cannot be read: {problem}; give a chat log: {_FORMS}"
        ) from None

    if not any(turn.text for turn in turns):
        raise MemoryRefused(f"{path} holds no turns with text; give {_FORMS}")

    return turns


_FORMS = (
    "JSON or JSONL of messages with a role and a content, an export of ChatGPT, Claude, Slack "
    "(folder or .zip), "
    "Telegram or Discord, or LoCoMo's form"
)


def _read_files(path: Path) -> dict[str, bytes]:
    """The JSON files of a folder or archive by their path in it, sorted."""
    contents: dict[str, bytes] = {}
    if path.is_dir():
        for file in path.rglob("*.json*"):
            if file.suffix in _SUFFIXES and file.is_file():
                contents[file.relative_to(path).as_posix()] = file.read_bytes()
    else:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if PurePosixPath(name).suffix in _SUFFIXES:
                    contents[name] = archive.read(name)

    return dict(sorted(contents.items()))


def _turns_of_files(files: Mapping[str, bytes]) -> Iterator[Turn]:
    """Each file by itself; the session says which file it was."""
    users = [name for name in files if PurePosixPath(name).name == "users.json"]
    people = people_of(files[users[0]] if users else None)

    for name, content in files.items():
        place = PurePosixPath(name)
        if place.suffix == ".json" and place.stem in LISTS:
            continue

        inner = " ".join([*place.parts[:-1], place.stem])
        for turn in _parse_turns(_parse(content, name), inner, people):
            if turn.session.startswith(inner):
                yield turn
            else:
                yield replace(turn, session=f"{inner} {turn.session}")


def _parse(content: bytes, where: str) -> Any:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(content)

    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise MemoryRefused(
                    f"{where}, line {number} is not JSON: {error}; fix the line or remove it"
                ) from None

    return rows


def _parse_turns(
    parsed: Any,
    name: str,
    people: Mapping[str, str] | None = None,
) -> Iterator[Turn]:
    if isinstance(parsed, Mapping):
        yield from _turns_of_conversation(parsed, _title(parsed, name))
    elif isinstance(parsed, list):
        objects = []
        for entry in parsed:
            if isinstance(entry, Mapping):
                objects.append(entry)

        if any(map(_sessions, objects)):
            yield from _turns_of_conversations(objects)
        elif parsed and len(objects) == len(parsed) and all(map(is_slack, objects)):
            messages = []
            for message in objects:
                messages.append(plain_message(message, people or {}))

            yield from _turns_of_messages(messages, name.removesuffix(".json"))
        else:
            yield from _turns_of_messages(parsed, "")


def _turns_of_conversations(conversations: Sequence[Message]) -> Iterator[Turn]:
    """Each conversation of an export; ids distinguish those of one title."""
    titled = []
    for number, conversation in enumerate(conversations, 1):
        title = _title(conversation, f"conversation {number}")
        identity = _first_value(
            conversation,
            ("conversation_id", *_ID),
            number,
        )
        titled.append((title, identity, conversation))

    often = Counter(title for title, _, _ in titled)
    for title, identity, conversation in titled:
        name = title if often[title] == 1 else f"{title} {identity}"
        yield from _turns_of_conversation(conversation, name)


def _title(record: Message, fallback: str) -> str:
    return _first_value(
        record,
        ("title", "name", "sample_id", "uuid"),
        fallback,
    )


def _first_value(
    record: Message,
    names: Sequence[str],
    fallback: object,
) -> str:
    return str(next((record[name] for name in names if record.get(name)), fallback))


def _turns_of_conversation(conversation: Message, title: str) -> Iterator[Turn]:
    """One conversation of any form, or one message."""
    parts = _sessions(conversation)
    if not parts:
        yield from _turns_of_messages([conversation], "")

    for part, messages in parts:
        yield from _turns_of_messages(messages, title + part)


def _sessions(conversation: Message) -> list[tuple[str, Sequence[Any]]]:
    """The messages of a conversation of any form by session; nothing where it has no messages."""
    if isinstance(conversation.get("mapping"), Mapping):
        return [("", _shown_branch(conversation))]

    for name in ("chat_messages", "messages"):
        if isinstance(conversation.get(name), list):
            return [("", conversation[name])]

    inner = conversation.get("conversation")
    inner = inner if isinstance(inner, Mapping) else conversation
    numbers = sorted(int(match[1]) for match in map(_LOCOMO_SESSION.match, inner) if match)

    parts: list[tuple[str, Sequence[Any]]] = []
    for number in numbers:
        at = {"date_time": inner.get(f"session_{number}_date_time")}
        messages = []
        for message in inner[f"session_{number}"]:
            messages.append({**at, **message})

        parts.append((f" session {number}", messages))

    return parts


def _shown_branch(conversation: Message) -> list[Any]:
    """The messages of a ChatGPT conversation from the root to the one that was shown last."""
    nodes = conversation["mapping"]
    if not all(isinstance(node, Mapping) for node in nodes.values()):
        raise MemoryRefused("a node of `mapping` is no object; expected a message with its parent")

    leaves = (key for key, node in nodes.items() if not node.get("children"))
    key = conversation.get("current_node") or next(leaves, None)
    branch = []
    visited = set()

    while key in nodes and key not in visited:
        visited.add(key)
        message = nodes[key].get("message")
        if message is not None:
            branch.append(
                {
                    **message,
                    "role": (message.get("author") or {}).get("role"),
                }
            )

        key = nodes[key].get("parent")

    return [message for message in reversed(branch) if message["role"] in ("user", "assistant")]


def _turns_of_messages(messages: Sequence[Any], session: str) -> Iterator[Turn]:
    counts: dict[str, int] = {}
    for message in messages:
        if not isinstance(message, Mapping):
            raise MemoryRefused(
                f"a message is {str(message)[:60]!r}; expected an object with a role and a content"
            )

        values = (message.get(name) for name in _SESSION)
        parts = dict.fromkeys(str(value) for value in values if isinstance(value, str | int))
        place = session or " ".join(parts) or "1"
        counts[place] = counts.get(place, 0) + 1
        identity = _first_value(message, _ID, counts[place])
        texts = [_text_of(message.get(name)) for name in _TEXT]
        text = next(filter(None, texts), "")  # a picture has none
        yield Turn(
            session=place,
            number=counts[place],
            speaker=_speaker(message),
            text=text,
            at=_parse_time(message),
            id=identity,
        )


def _speaker(message: Message) -> str:
    for name in _SPEAKER:
        value = message.get(name)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("role")
        if isinstance(value, str) and value.strip():
            return value.strip()

    return "unknown"


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _text_of(value.get("parts") or value.get("text"))

    if isinstance(value, list):
        parts = []
        for part in value:
            if isinstance(part, str | Mapping):
                parts.append(_text_of(part))

        return "\n".join(filter(None, parts))

    return ""


def _parse_time(message: Message) -> datetime | None:
    value = next(
        (message[name] for name in _TIME if message.get(name) not in (None, "")),
        None,
    )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
    if not isinstance(value, str):
        return None
    if _SECONDS.match(value.strip()):
        return datetime.fromtimestamp(float(value), UTC)

    for form in _TIME_FORMATS:
        with suppress(ValueError):
            return datetime.strptime(value.strip(), form).replace(tzinfo=UTC)

    return parse_moment(value)


PREFIX = "conversation/"
FOLLOWS = "follows"
_RUN = 1_000  # turns written in one transaction
_LONGEST_PART = 120


def ingest_conversation(
    memory: Memory,
    path: Path,
    name: str | None = None,
    *,
    who: str = "",
) -> JsonObject:
    """Put the turns of a chat log into memory and say what that did; only new and changed turns are
    written.

    One topic a turn, `conversation/NAME/SESSION/NUMBER`, so that each can be cited, corrected and
    erased by itself. A turn holds since it was said, and an edge `follows` leads to the turn
    before.
    """
    turns = read_conversation(path)
    spoken = [turn for turn in turns if turn.text]
    prefix = f"{PREFIX}{_topic_part(name or path.name.split('.')[0])}/"
    topics = [f"{prefix}{_topic_part(turn.session)}/{turn.number:05d}" for turn in spoken]
    # Also what a wrong clock dated.
    known_states = states_at(
        memory.store,
        map(topic_key, topics),
        Mask(as_of=NEWEST),
        NEWEST,
    )

    known = {}
    for state in known_states:
        known[state.topic] = state.content

    fresh = []
    for topic, turn in zip(topics, spoken, strict=True):
        if known.get(topic) != _turn_content(turn):
            fresh.append(_turn_state(topic, turn, path))

    for start in range(0, len(fresh), _RUN):
        memory.add_many(
            fresh[start : start + _RUN],
            who=who,
            why=f"read from {path.name}",
        )

    added = {state.topic for state in fresh}.difference(known)
    _link_turns(memory, topics, added, who)
    return {
        "file": str(path),
        "prefix": prefix,
        "sessions": len({turn.session for turn in turns}),
        "turns": len(turns),
        "added": len(added),
        "changed": len(fresh) - len(added),
        "unchanged": len(spoken) - len(fresh),
        "skipped": len(turns) - len(spoken),  # without text
    }


def _turn_state(topic: str, turn: Turn, path: Path) -> NewState:
    metadata = {
        "speaker": turn.speaker,
        "session": turn.session,
        "turn": turn.id,
        "source": path.name,
    }
    return NewState(
        topic,
        _turn_content(turn),
        ("conversation", turn.speaker),
        metadata=metadata,
        valid_from=turn.at,
    )


def _turn_content(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


def _link_turns(
    memory: Memory,
    topics: Sequence[str],
    added: set[str],
    who: str,
) -> None:
    """Join each new turn to the one before it in its session."""
    edges = []
    for previous, topic in pairwise(topics):
        is_same_session = topic.rpartition("/")[0] == previous.rpartition("/")[0]
        if topic in added and is_same_session:
            edges.append(
                NewEdge(
                    topic,
                    previous,
                    FOLLOWS,
                    MemoryEdgeKind.TEMPORAL,
                )
            )

    for start in range(0, len(edges), _RUN):
        memory.link_many(
            edges[start : start + _RUN],
            who=who,
            why="turns of one session",
        )


def _topic_part(name: str) -> str:
    """A name as one part of a topic."""
    plain = re.sub(r"[\s/\x00-\x1f]+", "_", name.strip()).strip("_")
    return plain[:_LONGEST_PART] or "conversation"
