"""The history of the published graph: the log of nights, and what made an answer what it is."""

from __future__ import annotations

from typing import Any

from hades.ingest.manifest import known as known_sources
from hades.night import blame as blaming
from hades.night.night_log import night_log
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities.capability import Cli, Question, Rest, capability, field


@capability(
    "log",
    Cli(),
    Rest(
        "GET",
        "/log",
        "The log of nights",
        tag="snapshots",
    ),
)
def log(
    context: CallContext,
    *,
    limit: int = field(
        "Maximum number of lines.",
        20,
        "-n",
        "--limit",
        ge=1,
        le=1000,
    ),
) -> dict[str, Any]:
    """List the nights, newest first: what each changed, how long it took, what serves, and which
    failed.
    """
    return {"nights": night_log(context.settings.home, limit)}


@capability(
    "blame",
    Cli("question"),
    Rest(
        "POST",
        "/blame",
        "What made an answer",
        tag="questions",
    ),
)
def blame(
    context: CallContext,
    *,
    question: Question = field("The question.", metavar="TEXT"),
) -> dict[str, Any]:
    """Find since when a question has its answer: by which night, and by which source's which
    change.

    The snapshots that are kept are asked, by bisection. Of older nights the sentences are kept that
    they changed, as far as HADES_HISTORY_MIB allows.
    """
    sources = known_sources(context.readable)
    return blaming.blame(
        context.settings.home,
        question,
        context.answers.tools,
        sources,
    )
