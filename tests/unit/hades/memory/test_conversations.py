"""Chat logs of several forms become turns in memory: each with speaker, time and session, each
written once.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.memory.conversations import ingest_conversation, read_conversation
from hades.memory.history.rows import MemoryRefused
from hades.memory.memory import Memory
from tests.unit.hades.memory.kept import Clock

LATER = datetime(2026, 1, 1, tzinfo=UTC)
MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def message(role: str, parts: list[str], at: float) -> dict[str, object]:
    """A message as ChatGPT exports it."""
    return {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": parts},
        "create_time": at,
    }


def chatgpt() -> object:
    asked = {
        "message": message("user", ["Where to go?"], 1683554160),
        "parent": "r",
        "children": ["b", "c"],
    }
    dropped = {
        "message": message("assistant", ["Rome."], 1683554161),
        "parent": "a",
        "children": [],
    }
    shown = {"message": message("assistant", ["Lyon."], 1683554162), "parent": "a", "children": []}
    root = {"message": None, "parent": None, "children": ["a"]}
    return [
        {
            "title": "Trip",
            "current_node": "c",
            "mapping": {"r": root, "a": asked, "b": dropped, "c": shown},
        }
    ]


def claude() -> object:
    said = {
        "uuid": "m1",
        "sender": "human",
        "created_at": "2023-05-08T13:56:00Z",
        "text": "",
        "content": [],
    }
    first = {**said, "content": [{"type": "text", "text": "Where to go?"}]}
    second = {**said, "uuid": "m2", "sender": "assistant", "text": "Lyon."}
    return [{"uuid": "u", "name": "Trip", "chat_messages": [first, second]}]


def locomo() -> object:
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "Where to go?"},
        {"speaker": "Ben", "text": "Lyon."},
    ]
    return {"speaker_a": "Ana", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}


@pytest.mark.parametrize(
    ("data", "speakers"),
    [
        (chatgpt(), ["user", "assistant"]),
        (claude(), ["human", "assistant"]),
        (locomo(), ["Ana", "Ben"]),
        (
            [
                {"role": "user", "content": "Where to go?", "timestamp": 1683554160},
                {"role": "assistant", "content": "Lyon.", "timestamp": "2023-05-08T13:57:00"},
            ],
            ["user", "assistant"],
        ),
    ],
)
def test_each_form_gives_the_turns_that_were_said(
    tmp_path: Path, data: object, speakers: list[str]
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(data))
    turns = read_conversation(path)
    assert [(turn.speaker, turn.text) for turn in turns] == list(
        zip(speakers, ["Where to go?", "Lyon."], strict=True)
    )
    assert turns[0].at == MAY


def test_a_log_is_read_once_and_grows(memory: Memory, clock: Clock, tmp_path: Path) -> None:
    clock.at = LATER
    rows = [
        {
            "conv": "c1",
            "session": 1,
            "dia_id": "D1:1",
            "speaker": "Ana",
            "text": "I moved to Lyon.",
            "date": "8 May 2023",
        },
        {"conv": "c1", "session": 1, "dia_id": "D1:2", "speaker": "Ben", "text": "When?"},
        {"conv": "c1", "session": 2, "dia_id": "D2:1", "speaker": "Ana", "text": ""},
    ]
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    first = ingest_conversation(memory, path)
    assert (first["turns"], first["added"], first["skipped"], first["sessions"]) == (3, 2, 1, 2)
    again = ingest_conversation(memory, path)
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 0, 2)
    rows[1]["text"] = "Since when?"
    rows.append({"conv": "c1", "session": 1, "speaker": "Ana", "text": "Since May."})
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    grown = ingest_conversation(memory, path)
    assert (grown["added"], grown["changed"], grown["unchanged"]) == (1, 1, 1)
    found = memory.search("who moved to Lyon?")[0].state
    assert found.content == "Ana: I moved to Lyon."
    assert found.metadata == {
        "speaker": "Ana",
        "session": "1 c1",
        "turn": "D1:1",
        "source": "chat.jsonl.gz",
    }
    assert found.valid_from == datetime(2023, 5, 8, tzinfo=UTC)
    assert [edge.relationship_type for edge in memory.edges(found.topic)] == ["follows"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no turns.*Slack.*LoCoMo"),
        ('{"a"', "line 1 is not JSON"),
        ("[3]", "a message"),
        ('{"foo": 1}', "holds no turns with text.*ChatGPT.*Claude"),
        ('{"mapping": {"a": null}}', "a node of `mapping` is no object"),
    ],
)
def test_another_file_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(MemoryRefused, match=said):
        read_conversation(path)


def slack(folder: Path) -> Path:
    """An export with two channels, as Slack writes it."""
    said = [
        {
            "type": "message",
            "user": "U1",
            "ts": "1709287200.000100",
            "text": "We use <https://pg.org|Postgres>, <@U2>",
        },
        {
            "type": "message",
            "subtype": "channel_join",
            "user": "U2",
            "ts": "1709287201.0",
            "text": "<@U2> has joined",
        },
        {
            "type": "message",
            "user": "U2",
            "ts": "1709287260.000200",
            "text": "Good &amp; fast",
            "thread_ts": "170928",
        },
    ]
    lunch = [
        {
            "user": "U9",
            "user_profile": {"real_name": "Cy"},
            "ts": "1709373600.0001",
            "text": "Lunch at noon",
        }
    ]
    users = [
        {"id": "U1", "name": "ana", "profile": {"real_name": "Ana Silva"}},
        {"id": "U2", "name": "ben"},
    ]
    files = {"users.json": users, "channels.json": [{"id": "C1", "name": "general"}]}
    files |= {"general/2024-03-01.json": said, "random/2024-03-02.json": lunch}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(data))
    return folder


def test_a_slack_export_is_read_with_channels_names_and_times(
    tmp_path: Path, memory: Memory
) -> None:
    folder = slack(tmp_path / "team")
    turns = read_conversation(folder)
    assert [(turn.session, turn.speaker, turn.text) for turn in turns] == [
        ("general 2024-03-01", "Ana Silva", "We use Postgres (https://pg.org), @ben"),
        ("general 2024-03-01", "ben", ""),
        ("general 2024-03-01", "ben", "Good & fast"),
        ("random 2024-03-02", "Cy", "Lunch at noon"),
    ]
    assert turns[0].at == datetime(2024, 3, 1, 10, tzinfo=UTC) + timedelta(microseconds=100)
    with zipfile.ZipFile(tmp_path / "team.zip", "w") as archive:
        for path in folder.rglob("*.json"):
            archive.write(path, path.relative_to(folder))
    assert read_conversation(tmp_path / "team.zip") == turns
    report = ingest_conversation(memory, folder)
    assert (report["added"], report["skipped"], report["sessions"]) == (3, 1, 2)
    assert ingest_conversation(memory, tmp_path / "team.zip")["unchanged"] == 3
    one_day = read_conversation(folder / "general" / "2024-03-01.json")
    assert [turn.speaker for turn in one_day] == ["U1", "U2", "U2"]


def test_a_folder_of_logs_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"role": "user", "content": f"I am {name}"}) + "\n"
        )
    assert [(turn.session, turn.text) for turn in read_conversation(tmp_path)] == [
        ("a 1", "I am a"),
        ("b 1", "I am b"),
    ]


def test_conversations_of_one_title_stay_apart(tmp_path: Path, memory: Memory) -> None:
    export = [
        {
            "uuid": f"u{number}",
            "name": "New chat",
            "chat_messages": [{"sender": "human", "text": f"I have {number} cats"}],
        }
        for number in (3, 4)
    ]
    (tmp_path / "claude.json").write_text(json.dumps(export))
    assert ingest_conversation(memory, tmp_path / "claude.json")["added"] == 2
    assert len(memory.topics("conversation/claude/")) == 2
    found = [one.state.content for one in memory.search("cats")]
    assert sorted(found) == ["human: I have 3 cats", "human: I have 4 cats"]


def test_common_exports_of_messengers_have_the_generic_form(tmp_path: Path) -> None:
    telegram = {
        "name": "Team",
        "messages": [
            {
                "id": 1,
                "date": "2024-03-01T10:00:00",
                "from": "Ana",
                "text": ["Hi ", {"type": "bold", "text": "Ben"}],
            },
        ],
    }
    discord = {
        "guild": {"name": "G"},
        "channel": {"name": "general"},
        "messages": [
            {
                "id": "7",
                "timestamp": "2024-03-01T10:00:00+00:00",
                "content": "Hi Ben",
                "author": {"name": "Ana"},
            },
        ],
    }
    for data in (telegram, discord):
        (tmp_path / "x.json").write_text(json.dumps(data))
        (turn,) = read_conversation(tmp_path / "x.json")
        assert (turn.speaker, turn.text.replace("\n", " "), turn.at) == (
            "Ana",
            "Hi Ben",
            datetime(2024, 3, 1, 10, tzinfo=UTC),
        )
