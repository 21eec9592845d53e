"""What a run leaves in the Prefect UI: progress while it works, tables and pages when it is
done.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.events import emit_event
from prefect.exceptions import FlowPauseTimeout
from prefect.flow_runs import pause_flow_run
from prefect.input import RunInput

from hades.errors import CallsAboveCap, SettingsError
from hades.ports.services import ProgressReport as Progress
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from tasks.unit import let_others_build, progress_here, say

R = TypeVar("R")
SECONDS_BETWEEN = 5.0
_NOT_A_KEY = re.compile(r"[^a-z0-9]+")


def progress_of(unit_name: str) -> Progress:
    """Progress of one unit: a bar in the UI and a line in the log for each stage that takes longer
    than a few seconds, renewed every few seconds, or what `hades run` shows.
    """
    bars: dict[str, UUID] = {}
    shown_at: dict[str, float] = {}  # when each stage began, or was last shown

    def show(stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        is_recent = now - shown_at.setdefault(stage, now) < SECONDS_BETWEEN
        is_finished = stage in bars and done == total

        if is_recent and not is_finished:
            return

        shown_at[stage] = now
        if unit_name == stage:
            about = unit_name
        else:
            about = f"{unit_name}: {stage}"

        share = min(100.0, 100.0 * done / total) if total else 0.0
        say(
            "%s: %s of %s",
            about,
            f"{done:,}",
            f"{total:,}" if total else "an unknown number",
        )
        if stage in bars:
            update_progress_artifact(bars[stage], share)
        else:
            artifact = create_progress_artifact(
                share,
                key=_key(about),
                description=about,
            )
            bars[stage] = cast(UUID, artifact)

    return progress_here() or show


def table(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    about: str,
) -> None:
    """Rows under a key, so that the UI shows how they changed from run to run."""
    if progress_here() is None and rows:
        create_table_artifact(
            table=[dict(row) for row in rows],
            key=_key(key),
            description=about,
        )


def page(key: str, markdown: str, about: str) -> None:
    """A page of Markdown under a key."""
    if progress_here() is None:
        create_markdown_artifact(
            markdown=markdown,
            key=_key(key),
            description=about,
        )


def event(name: str, source: str, **payload: str) -> None:
    """An event that automations of the server can act on; the payload is also in the labels
    `hades.NAME`.
    """
    if progress_here() is None:
        labels = {}
        for label, value in payload.items():
            labels[f"hades.{label}"] = value[:200]

        resource = {
            "prefect.resource.id": f"hades.{source}",
            **labels,
        }
        emit_event(
            name,
            resource=resource,
            payload=payload,
        )


class Approval(RunInput):
    """What a person says to a question of a flow."""

    approve: bool = False


def ask_person(question: str, figures: str) -> bool:
    """Whether a person approves in the UI, shown the figures; silence is a refusal.

    The flow pauses for as long as the settings say, and others may build meanwhile. Without a
    server there is nobody to ask.
    """
    settings = load_settings()
    if progress_here() is not None:
        raise SettingsError(
            f"{question} HADES_APPROVAL_MINUTES asks a person in the Prefect UI, and "
            "PREFECT_API_URL names no server: "
            "nobody can be asked and nothing was changed. Set it, or HADES_APPROVAL_MINUTES=0"
        )

    page(
        "decision",
        f"## {question}\n\n{figures}\n",
        question,
    )
    form = Approval.with_initial_data(
        description=f"## {question}\n\n{figures}",
        approve=False,
    )
    approved = False

    with let_others_build(), suppress(FlowPauseTimeout):
        approved = pause_flow_run(
            form,
            timeout=round(60 * settings.approval_minutes),
            poll_interval=2,
        ).approve

    return approved


def accept_or_raise(
    question: str,
    refused: Exception,
    figures: str = "",
) -> None:
    """Raise unless a person accepts; an error of its own says the figures. A plain rollback needs
    nobody's approval.
    """
    asks = load_settings().approval_minutes > 0
    if asks and ask_person(question, figures or str(refused)):
        return
    if asks or not figures:
        raise refused


def is_accepted(
    question: str,
    refused: Exception,
    figures: str,
) -> bool:
    """Whether a person accepts, raising where nobody does in time; False where the settings let
    nobody be asked.
    """
    if load_settings().approval_minutes <= 0:
        return False

    accept_or_raise(question, refused, figures)
    return True


def settings_after(pays: bool | None) -> Settings:
    """The settings; once a person was asked, with every call of the language model or with none
    above its cap.
    """
    changes: dict[bool | None, dict[str, Any]] = {
        True: {"llm_max_calls": None},
        False: {"approval_minutes": 0.0},
    }
    return load_settings().model_copy(update=changes.get(pays))


def pay_or_ask(run: Callable[..., R], *arguments: Any) -> R:
    """Run a stage; where the settings say so a person may allow calls of a language model above the
    cap.
    """
    try:
        return run(*arguments)
    except CallsAboveCap as above:
        pays = ask_person("Pay for these calls of the language model?", str(above))

    return run(*arguments, pays=pays)


def _key(text: str) -> str:
    """Artifact keys hold lower-case letters, digits and dashes."""
    return _NOT_A_KEY.sub("-", text.lower()).strip("-")
