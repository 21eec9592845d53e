"""Look at the corpus as a whole, and at what changed between two published graphs."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Nothing, OmittedSurface, Request, Rest
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import Id


class OverviewRequest(Nothing):
    """Show the corpus at a glance: what it holds, what it speaks of most, and example questions made from it."""


class CompareRequest(Request):
    """Compare two published graphs: which documents, names and topics came and went."""

    before: Id | None = Field(None, description="Snapshot id; by default the one that served before.")
    after: Id | None = Field(None, description="Snapshot id; by default the one that serves.")


def describe(request: OverviewRequest, context: CallContext) -> dict[str, Any]:
    """Read the store and the snapshot that serves."""
    from hades.retrieval.answer.corpus_overview import describe_corpus

    return describe_corpus(context.readable)


def compare(request: CompareRequest, context: CallContext) -> dict[str, Any]:
    """Open both snapshots and compare them."""
    from hades.errors import SnapshotError
    from hades.retrieval.walks.compare_views import compare_views
    from hades.snapshot.retention import snapshots
    from hades.wiring import open_view

    known = [one.snapshot for one in snapshots(context.settings.home) if one.problem is None]
    after = request.after or next(iter(known), None)
    before = request.before or next((one for one in known if one != after), None)
    if after is None or before is None:
        raise SnapshotError(
            f"{len(known)} snapshots can be read, expected two to compare; run `hades run nightly` again"
        )
    with (
        closing(open_view(context.settings, before)) as older,
        closing(open_view(context.settings, after)) as newer,
    ):
        return compare_views(older, newer)


OVERVIEW = Capability(
    name="overview",
    mode="ro",
    request=OverviewRequest,
    call=describe,
    cli=Cli(("overview",)),
    rest=Rest("GET", "/overview", "graph", "The corpus at a glance"),
    mcp=OmittedSurface("agents ask questions; the resource of the graph already states its counts"),
    task=OmittedSurface("a look at the corpus for people; flows read the store"),
)
COMPARE = Capability(
    name="compare",
    mode="ro",
    request=CompareRequest,
    call=compare,
    cli=Cli(("compare",), view="hades.surfaces.cli.corpus_views:show_comparison"),
    rest=Rest("GET", "/snapshots/compare", "snapshots", "What changed between two graphs"),
    mcp=OmittedSurface("a question of whoever runs the builds, not of agents"),
    task=OmittedSurface("the report of a build already says what it changed"),
)
