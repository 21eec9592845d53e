"""The log of alerts: one JSON line each, appended, for people and for whatever forwards them."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from schemas.intervals import iso


def last_alerts(home: Path, limit: int = 20) -> list[dict[str, str]]:
    """The newest alerts first; a line that is not JSON is passed over."""
    path = home / "logs" / "alerts.jsonl"
    try:
        lines = path.read_text("utf-8").splitlines()[-limit:]
    except OSError:
        return []
    alerts = []
    for line in reversed(lines):
        with suppress(ValueError):
            alerts.append(json.loads(line))
    return alerts


def append_alert(home: Path, at: datetime, what: str, subject: str, detail: str) -> Path:
    """Keep one alert; the file it stands in."""
    path = home / "logs" / "alerts.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"at": iso(at), "what": what, "subject": subject, "detail": detail}, ensure_ascii=False)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return path
