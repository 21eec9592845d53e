"""Chat logs as turns: generic JSON and JSONL, exports of assistants and of Slack, and LoCoMo's form.

Recognised by their content, never by the file's name:

- JSONL, a JSON list, or `{"messages": [...]}` of objects with a speaker (role, speaker, author, from, name, sender), a
  text (content, text, message) and, where known, a time (timestamp, time, created_at, date, date_time) and a session
  (session, conversation_id, conv, thread);
- ChatGPT's `conversations.json`: a tree of messages, of which the branch that was shown last is read;
- Claude's export: conversations with `chat_messages`;
- a Slack export, folder or .zip: a folder a channel, a file a day; one such file alone is read too;
- LoCoMo: `session_1`, `session_2`, ... with `session_1_date_time`.

Exports of Telegram (`result.json`) and of DiscordChatExporter have the generic form. A folder or .zip of files of these
forms is read file by file.
"""

from __future__ import annotations

import gzip
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from hades.memory.history.names import MemoryRefused
from hades.memory.slack_messages import LISTS, is_slack, people_of, plain_message

_SPEAKER = ("role", "speaker", "author", "sender", "from", "name", "user")
_TEXT = ("content", "text", "message", "body")
_TIME = ("timestamp", "time", "created_at", "create_time", "date_time", "date", "ts")
_SESSION = ("session", "session_id", "conversation_id", "conv", "thread", "thread_id", "chat_id")
_ID = ("id", "uuid", "dia_id", "message_id")
_LOCOMO_SESSION = re.compile(r"^session_(\d+)$")
_WRITTEN = ("%I:%M %p on %d %B, %Y", "%d %B %Y", "%d %B, %Y", "%Y/%m/%d %H:%M", "%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S")
_SECONDS = re.compile(r"^\d{9,10}(\.\d+)?$")  # since 1970, as Slack writes them
_SUFFIXES = (".json", ".jsonl")
_MILLISECONDS = 100_000_000_000  # a larger number counts milliseconds


@dataclass(frozen=True)
class Turn:
    """What somebody said: in which session, at which place in it, when, and the id that the log gave it."""

    session: str
    number: int
    speaker: str
    text: str
    at: datetime | None
    id: str


def read_conversation(path: Path) -> list[Turn]:
    """The turns of a chat log in their order; a file of another form is refused with what was expected."""
    try:
        if path.is_dir() or path.suffix == ".zip":
            turns = list(_turns_of_files(_read_files(path)))
        else:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            turns = list(_turns(_parse(data, str(path)), path.name))
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        what = getattr(error, "strerror", None) or error
        raise MemoryRefused(f"{path} cannot be read: {what}; give a chat log: {_FORMS}") from None
    if not any(turn.text for turn in turns):
        raise MemoryRefused(f"{path} holds no turns with text; give {_FORMS}")
    return turns


_FORMS = (
    "JSON or JSONL of messages with a role and a content, an export of ChatGPT, Claude, Slack (folder or .zip), "
    "Telegram or Discord, or LoCoMo's form"
)


def _read_files(path: Path) -> dict[str, bytes]:
    """The JSON files of a folder or archive by their path in it, sorted."""
    if path.is_dir():
        found = {one.relative_to(path).as_posix(): one.read_bytes() for one in path.rglob("*.json*") if one.is_file()}
    else:
        with zipfile.ZipFile(path) as archive:
            found = {name: archive.read(name) for name in archive.namelist() if PurePosixPath(name).suffix in _SUFFIXES}
    return {name: found[name] for name in sorted(found) if PurePosixPath(name).suffix in _SUFFIXES}


def _turns_of_files(files: Mapping[str, bytes]) -> Iterator[Turn]:
    """Each file by itself; the session says which file it was."""
    people = people_of(next((data for name, data in files.items() if PurePosixPath(name).name == "users.json"), None))
    for name, data in files.items():
        place = PurePosixPath(name)
        if place.name in LISTS:
            continue
        inner = " ".join([*place.parts[:-1], place.stem])
        for turn in _turns(_parse(data, name), inner, people):
            yield turn if turn.session.startswith(inner) else replace(turn, session=f"{inner} {turn.session}")


def _parse(data: bytes, where: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise MemoryRefused(f"{where}, line {number} is not JSON: {error}; fix the line or remove it") from None
    return rows


def _turns(data: Any, name: str, people: Mapping[str, str] | None = None) -> Iterator[Turn]:
    if isinstance(data, Mapping):
        yield from _of_conversation(data, _title(data, name))
    elif isinstance(data, list):
        if any(isinstance(one, Mapping) and _is_conversation(one) for one in data):
            yield from _of_conversations([one for one in data if isinstance(one, Mapping)])
        elif data and all(isinstance(one, Mapping) and is_slack(one) for one in data):
            yield from _of_messages([plain_message(one, people or {}) for one in data], name.removesuffix(".json"))
        else:
            yield from _of_messages(data, "")


def _of_conversations(data: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """Each conversation of an export; those of one title are told apart by their ids."""
    titles = [_title(one, f"conversation {number}") for number, one in enumerate(data, 1)]
    often = Counter(titles)
    for number, (one, title) in enumerate(zip(data, titles, strict=True), 1):
        identity = next((str(one[name]) for name in ("conversation_id", *_ID) if one.get(name)), str(number))
        yield from _of_conversation(one, title if often[title] == 1 else f"{title} {identity}")


def _title(data: Mapping[str, Any], fallback: str) -> str:
    return str(data.get("title") or data.get("name") or data.get("sample_id") or data.get("uuid") or fallback)


def _is_conversation(one: Mapping[str, Any]) -> bool:
    if any(name in one for name in ("mapping", "chat_messages", "conversation")) or isinstance(
        one.get("messages"), list
    ):
        return True
    return any(_LOCOMO_SESSION.match(key) for key in one)


def _of_conversation(data: Mapping[str, Any], title: str) -> Iterator[Turn]:
    """One conversation of any form."""
    if isinstance(data.get("mapping"), Mapping):
        yield from _of_messages(_branch(data), title)
    elif isinstance(data.get("chat_messages"), list):
        yield from _of_messages(data["chat_messages"], title)
    elif isinstance(data.get("messages"), list):
        yield from _of_messages(data["messages"], title)
    elif isinstance(data.get("conversation"), Mapping):
        yield from _of_locomo(data["conversation"], title)
    elif any(_LOCOMO_SESSION.match(key) for key in data):
        yield from _of_locomo(data, title)
    else:
        yield from _of_messages([data], "")


def _branch(data: Mapping[str, Any]) -> list[Any]:
    """The messages of a ChatGPT conversation from the root to the one that was shown last."""
    nodes = data["mapping"]
    key = data.get("current_node") or next((one for one, node in nodes.items() if not node.get("children")), None)
    branch, seen = [], set()
    while key in nodes and key not in seen:
        seen.add(key)
        message = nodes[key].get("message")
        if message is not None:
            branch.append({**message, "role": (message.get("author") or {}).get("role")})
        key = nodes[key].get("parent")
    return [one for one in reversed(branch) if one["role"] in ("user", "assistant")]


def _of_locomo(data: Mapping[str, Any], title: str) -> Iterator[Turn]:
    numbers = sorted(int(found[1]) for found in map(_LOCOMO_SESSION.match, data) if found)
    for number in numbers:
        at = data.get(f"session_{number}_date_time")
        turns = data[f"session_{number}"]
        yield from _of_messages([{"date_time": at, **one} for one in turns], f"{title} session {number}")


def _of_messages(messages: Sequence[Any], session: str) -> Iterator[Turn]:
    counts: dict[str, int] = {}
    for message in messages:
        if not isinstance(message, Mapping):
            raise MemoryRefused(f"a message is {str(message)[:60]!r}; expected an object with a role and a content")
        parts = [str(message[name]) for name in _SESSION if isinstance(message.get(name), str | int)]
        place = session or " ".join(dict.fromkeys(parts)) or "1"
        counts[place] = counts.get(place, 0) + 1
        identity = next((str(message[name]) for name in _ID if message.get(name)), str(counts[place]))
        yield Turn(place, counts[place], _speaker(message), _text(message), _time(message), identity)


def _speaker(message: Mapping[str, Any]) -> str:
    for name in _SPEAKER:
        value = message.get(name)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("role")
        if isinstance(value, str) and value.strip():
            return value.strip()
    return "unknown"


def _text(message: Mapping[str, Any]) -> str:
    """The words of a message; an empty text where it only holds pictures or calls of tools."""
    for name in _TEXT:
        words = _words(message.get(name))
        if words:
            return words
    return ""


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _words(value.get("parts") or value.get("text"))
    if isinstance(value, list):
        parts = [part if isinstance(part, str) else _words(part) for part in value if isinstance(part, str | Mapping)]
        return "\n".join(part.strip() for part in parts if part and part.strip())
    return ""


def _time(message: Mapping[str, Any]) -> datetime | None:
    value = next((message[name] for name in _TIME if message.get(name) not in (None, "")), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
    if not isinstance(value, str):
        return None
    if _SECONDS.match(value.strip()):
        return datetime.fromtimestamp(float(value), UTC)
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        moment = next(filter(None, (_write(value.strip(), form) for form in _WRITTEN)), None)  # type: ignore[assignment]
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None
