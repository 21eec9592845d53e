"""Messages of a Slack export: people by name, times as numbers, marks of Slack's own as plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import orjson

LISTS = frozenset(  # files beside the channels that hold no messages
    f"{name}.json"
    for name in ("users", "channels", "groups", "dms", "mpims", "org_users", "integration_logs", "canvases", "lists")
)
_NOTICES = ("_join", "_leave", "_topic", "_purpose", "_name", "_archive", "_unarchive", "_convert_to_private")
_PERSON = re.compile(r"<@(\w+)(?:\|([^>]+))?>")
_CHANNEL = re.compile(r"<#\w+\|([^>]+)>")
_LABELLED = re.compile(r"<((?:https?|mailto):[^|>]+)\|([^>]+)>")
_PLAIN_LINK = re.compile(r"<((?:https?|mailto):[^>]+)>")


def is_slack(message: Mapping[str, Any]) -> bool:
    """Whether a message has the fields that Slack gives it."""
    return isinstance(message.get("ts"), str) and ("user" in message or "bot_id" in message or "subtype" in message)


def people_of(users: bytes | None) -> dict[str, str]:
    """Names by id, from the export's `users.json`; none where there is no such file or it has another form."""
    try:
        listed = orjson.loads(users or b"[]")
    except orjson.JSONDecodeError:
        return {}
    rows = [one for one in listed if isinstance(one, Mapping) and "id" in one] if isinstance(listed, list) else []
    return {str(one["id"]): _name(one.get("profile")) or str(one.get("name") or one["id"]) for one in rows}


def plain_message(message: Mapping[str, Any], people: Mapping[str, str]) -> dict[str, Any]:
    """The message with its speaker by name and its text as people read it; a notice, such as a join, has no text."""
    user = str(message.get("user") or "")
    speaker = _name(message.get("user_profile")) or people.get(user) or message.get("username") or user or "unknown"
    is_notice = str(message.get("subtype") or "").endswith(_NOTICES)
    text = "" if is_notice else _plain(str(message.get("text") or ""), people)
    return {"speaker": str(speaker), "text": text, "ts": message["ts"], "id": message["ts"]}


def _name(profile: Any) -> str:
    if not isinstance(profile, Mapping):
        return ""
    return str(profile.get("real_name") or profile.get("display_name") or profile.get("name") or "").strip()


def _plain(text: str, people: Mapping[str, str]) -> str:
    text = _PERSON.sub(lambda found: f"@{people.get(found[1]) or found[2] or found[1]}", text)
    text = _CHANNEL.sub(r"#\1", text)
    text = _PLAIN_LINK.sub(r"\1", _LABELLED.sub(r"\2 (\1)", text))
    return html.unescape(text).strip()
