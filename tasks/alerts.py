"""Alerts as a task."""

from __future__ import annotations

from datetime import UTC, datetime

from hades.settings import load_settings
from hades.stages.release.alerts import append_alert
from tasks import artifacts, policies
from tasks.unit import unit


@unit("keep alert", policies.LOCAL)
def keep_alert(what: str, subject: str, detail: str) -> str:
    """One line in the log of alerts, one page in the UI; where the log is."""
    path = append_alert(load_settings().home, datetime.now(UTC), what, subject, detail)
    artifacts.page("alert", f"## {what}\n\n{subject}\n\n{detail}\n", what)
    return str(path)
