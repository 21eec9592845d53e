"""The published graph: nodes, topics, overview, comparison, corrections, snapshots, builds, standing questions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AfterValidator, Field, model_validator

from hades import curation
from hades.build.forecast import forecast_build
from hades.build.release import publish
from hades.build.release.compare import compare_snapshots
from hades.build.report import last_runs
from hades.build.standing import (
    add_standing,
    check_standing,
    frequent_questions,
    list_standing,
    read_questions,
    remove_standing,
)
from hades.errors import SnapshotError
from hades.ports.services import utc_now
from hades.ports.store import Direction, scan_rows
from hades.retrieval.answer.overview import describe_corpus
from hades.retrieval.walks.neighbourhood import Reach, node_shown, topics_shown
from hades.retrieval.walks.neighbourhood import subgraph as read_subgraph
from hades.snapshot import open as published
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import (
    AtMoment,
    Cli,
    Id,
    Mcp,
    Question,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    capability,
    check_storable,
    read_pairs,
)
from hades.wiring import hold_build, open_build_context, paid_models
from schemas.builds import EditState, StandingQuestion
from schemas.catalogue import ALL
from schemas.ids import Mask

NodeId = Annotated[
    Id, Field(description="Id of a node, for example entities/event_loop.", examples=["entities/event_loop"])
]
Fanout = Annotated[int, Field(ge=1, le=100, description="Number of edges followed from each node, heaviest first.")]


class Walk(AtMoment):
    """Which edges are followed."""

    direction: Literal["any", "outbound", "inbound"] = Field("any", description="Direction of the edges to follow.")
    types: tuple[Id, ...] = Field((), max_length=32, description="Only edges of these types; by default all.")


@capability("overview", cli=Cli("overview"), rest=Rest("GET", "/overview", "The corpus at a glance", tag="graph"))
def overview(context: CallContext) -> dict[str, Any]:
    """Show the corpus at a glance: what it holds, what it speaks of most, and example questions made from it."""
    return describe_corpus(context.readable)


class ComparisonView(Request):
    """How a comparison is shown."""

    page: str | None = Field(None, description="Also write it as an HTML page with pictures to this file.")


@capability(
    "compare", cli=Cli("compare", options=ComparisonView),
    rest=Rest("GET", "/snapshots/compare", "What changed between two graphs"),
)  # fmt: skip
def compare(
    context: CallContext,
    *,
    before: Annotated[Id | None, Field(description="Snapshot id; by default the one that served before.")] = None,
    after: Annotated[Id | None, Field(description="Snapshot id; by default the one that serves.")] = None,
    standing: Annotated[bool, Field(description="Also ask the standing questions of both.")] = False,
) -> dict[str, Any]:
    """Compare two graphs: which documents, names, edges, weights, topics and answers changed."""
    known = [one.snapshot for one in published.snapshots(context.settings.home) if one.problem is None]
    after = after or next(iter(known), None)
    before = before or next((one for one in known if one != after), None)
    if after is None or before is None:
        raise SnapshotError(
            f"{len(known)} snapshots can be read, expected two to compare; run `hades run nightly` again"
        )
    home = context.settings.home
    questions = list_standing(context.readable) if standing else ()
    tools = context.answers.tools if questions else None
    with closing(published.open_snapshot(home, before)) as old, closing(published.open_snapshot(home, after)) as new:
        return compare_snapshots(old, new, questions, tools)


@capability("graph.node", cli=Cli("graph node", "id"), rest=Rest("GET", "/graph/nodes/{id:path}", "A node"))
def node(context: CallContext, *, id: NodeId) -> dict[str, Any]:
    """Show a node: its facts, degrees and topic; chunks, functions and files with their text."""
    with context.answers.read([id]) as view:
        return node_shown(view, id)


@capability(
    "graph.neighbours", cli=Cli("graph neighbours", "id"),
    rest=Rest("GET", "/graph/neighbours", "The neighbours of a node"), also=Walk,
)  # fmt: skip
def neighbours(context: CallContext, *, id: NodeId, fanout: Fanout = 16, **way: Any) -> dict[str, Any]:
    """Show the edges of a node and the nodes at their other ends."""
    limits = {"hops": 1, "fanout": fanout, "nodes": fanout + 1, "edges": 2 * fanout}
    return _walk(context, (id,), way, **limits)


@capability(
    "graph.subgraph", cli=Cli("graph subgraph", "id"),
    rest=Rest("GET", "/graph/subgraph", "The graph around some nodes"), also=Walk,
)  # fmt: skip
def subgraph(
    context: CallContext,
    *,
    id: Annotated[
        tuple[Id, ...], Shell(metavar="ID..."),
        Field(min_length=1, max_length=32, description="Ids of the nodes to start from."),
    ],
    hops: Annotated[int, Field(ge=0, le=3, description="Maximum number of edges from a start node.")] = 1,
    fanout: Fanout = 8,
    nodes: Annotated[int, Field(ge=1, le=500, description="Maximum number of nodes.")] = 100,
    edges: Annotated[int, Field(ge=0, le=2000, description="Maximum number of edges.")] = 400,
    **way: Any,
) -> dict[str, Any]:  # fmt: skip
    """Show the nodes and edges within a number of hops; `capped` tells whether there are more."""
    return _walk(context, id, way, hops=hops, fanout=fanout, nodes=nodes, edges=edges)


def _walk(context: CallContext, ids: tuple[str, ...], way: dict[str, Any], **limits: int) -> dict[str, Any]:
    reach = Reach(direction=Direction(way["direction"]), types=way["types"] or None, **limits)
    with context.answers.read(ids, reach.hops) as view:
        return read_subgraph(view, ids, reach, Mask(way["as_of"], way["known_at"]))


@capability("graph.topics", cli=Cli("graph topics"), rest=Rest("GET", "/hierarchy", "Topics", tag="graph"))
def topics(
    context: CallContext, *, limit: Annotated[int, Field(ge=1, le=2000, description="Maximum number of topics.")] = 500
) -> dict[str, Any]:
    """List super-topics (level 2) and topics (level 1) of the current snapshot, largest first."""
    with context.answers.lease() as view:
        return topics_shown(context.readable, view, limit)


# Corrections of entities: make one, list them, approve one, undo one.

EditId = Annotated[Id, Shell(metavar="EDIT_ID"), Field(description="Id of the edit, as `hades entity edits` lists it.")]
Why = Annotated[Reason, Field(description="Reason, for whoever reads the list of edits.")]


@capability("entity.edits", cli=Cli("entity edits", "entity"), rest=Rest("GET", "/entities/edits", "Corrections"))
def edits(
    context: CallContext,
    *,
    entity: Annotated[
        Id | None, Shell(metavar="[ENTITY_ID]"), Field(description="Only corrections of this entity.")
    ] = None,
    state: Annotated[
        Literal["pending", "applied", "undone"] | None, Field(description="Only corrections in this state.")
    ] = None,
) -> dict[str, Any]:
    """List corrections, oldest first: who made them, who approved them, and which wait."""
    wanted = None if state is None else EditState(state)
    found = curation.list_edits(context.readable, entity_id=entity, state=wanted)
    return {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in found]}


@capability(
    "entity.approve", "rw", cli=Cli("entity approve", "edit_id", who="--as"),
    rest=Rest("POST", "/entities/edits/{edit_id}/approve", "Approve a correction"),
)  # fmt: skip
def approve(context: CallContext, *, edit_id: EditId) -> dict[str, Any]:
    """Approve another person's correction; it applies once enough people have."""
    return asdict(curation.approve(context.writable, edit_id, who=context.who, at=utc_now(), embedder=context.embedder))


@capability(
    "entity.undo", "rw", cli=Cli("entity undo", "edit_id", who="--as"),
    rest=Rest("POST", "/entities/edits/{edit_id}/undo", "Undo a correction"),
)  # fmt: skip
def undo(context: CallContext, *, edit_id: EditId, why: Why = "") -> dict[str, Any]:
    """Undo a correction; the documents, or an older correction, count again."""
    return asdict(
        curation.undo(context.writable, edit_id, who=context.who, why=why, at=utc_now(), embedder=context.embedder)
    )


@capability(
    "entity.update", "rw", cli=Cli("entity update", "entity_id", who="--as"),
    rest=Rest("POST", "/entities/{entity_id}", "Correct an entity",
              examples=({"fields": {"summary": "runs callbacks, one at a time"}, "why": "was empty"},)),
    mcp=Mcp("graph_entity_update", "Correct an entity", replies.EntityEditReply),
)  # fmt: skip
def update(
    context: CallContext,
    *,
    entity_id: Annotated[
        Id, Shell(metavar="ENTITY_ID"),
        Field(description="Id of the entity, as paths show it.", examples=["entities/ada_lovelace"]),
    ],
    fields: Annotated[
        dict[str, Any], Field(max_length=8), AfterValidator(check_storable),
        Shell(flags=("--set",), metavar="FIELD=VALUE", read=read_pairs, is_list=True,
              help="name, aliases, summary, type or domain; JSON or plain text; may be repeated."),
        Field(description="What to change: name, aliases (replaces the list), summary, type (concept, "
              "method or person), domain.",
              examples=[{"summary": "a British mathematician"}, {"name": "Ada King", "aliases": ["Ada Lovelace"]}]),
    ],
    why: Why = "",
    confidence: Annotated[
        Share, Field(description="Confidence, 0 to 1; an uncertain edit waits for approval.")
    ] = 1.0,
) -> dict[str, Any]:  # fmt: skip
    """Correct what the graph says about an entity. The edit is idempotent, survives rebuilds and can be undone.

    A change of identity of a much connected entity, or against another person's edit, waits for a second approval.
    Questions see it after the next publish.
    """
    edit = curation.update_entity(
        context.writable, entity_id, fields, who=context.who, why=why, at=utc_now(), confidence=confidence,
        embedder=context.embedder,
    )  # fmt: skip
    return asdict(edit)


# Published snapshots: list them, roll back to one, list the builds.


@capability("snapshots", cli=Cli("snapshots"), rest=Rest("GET", "/snapshots", "Published graphs"))
def snapshots(context: CallContext) -> dict[str, Any]:
    """List the published graphs and which one serves, newest first."""
    return {"snapshots": [asdict(one) for one in published.snapshots(context.settings.home)]}


@capability(
    "rollback", "rw", cli=Cli("rollback", "what"),
    rest=Rest("POST", "/snapshots/rollback", "Let an older graph serve", examples=({"what": "graph"},)),
)  # fmt: skip
def rollback(
    context: CallContext,
    *,
    what: Annotated[
        Literal["graph", "weights", "ranker"], Shell(metavar="[weights|ranker|graph]"),
        Field(description="What to roll back."),
    ] = "graph",
    to: Annotated[
        Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None, Shell(metavar="VERSION"),
        Field(description="Snapshot id, or version (of a ranker also `none`); by default the previous one."),
    ] = None,
) -> dict[str, Any]:  # fmt: skip
    """Let an older graph serve again at once, and restore the weights that belong to it."""
    with hold_build("rollback", context.settings, 0), open_build_context(context.settings) as build:
        return asdict(publish.roll_back(build, what, to))


SnapshotId = Annotated[
    Annotated[str, Field(pattern=r"^g[0-9a-f]{24}$")], Shell(metavar="SNAPSHOT"),
    Field(description="Id of the snapshot, as `hades snapshots` lists it."),
]  # fmt: skip


@capability(
    "promote", "rw", cli=Cli("promote", "snapshot"),
    rest=Rest("POST", "/snapshots/{snapshot}/promote", "Let a snapshot serve"),
)  # fmt: skip
def promote(context: CallContext, *, snapshot: SnapshotId) -> dict[str, Any]:
    """Let a snapshot serve that was built and compared, once its files are checked."""
    with hold_build("promote", context.settings, 0), open_build_context(context.settings) as build:
        return asdict(publish.promote_snapshot(build, snapshot))


@capability(
    "discard", "rw", cli=Cli("discard", "snapshot"),
    rest=Rest("POST", "/snapshots/{snapshot}/discard", "Remove a snapshot"),
)  # fmt: skip
def discard(context: CallContext, *, snapshot: SnapshotId) -> dict[str, Any]:
    """Remove a snapshot that does not serve, with its pins."""
    published.discard(context.settings.home, snapshot)
    return {"discarded": snapshot}


@capability("runs", rest=Rest("GET", "/runs", "Nightly builds"))
def runs(
    context: CallContext, *, limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of builds.")] = 20
) -> dict[str, Any]:
    """List the newest builds with their stages and contracts, what each stage last completed, alerts and a forecast."""
    home = context.settings.home
    rows = list(scan_rows(context.readable, "build_stages"))
    is_whole = context.readable.describe().get("holds", ALL) == ALL  # a smaller database is not built
    return {
        "runs": [run.model_dump() for run in last_runs(home, limit)],
        "stages": [{**row, "report": orjson.loads(row["report"])} for row in rows],
        "alerts": publish.last_alerts(home),
        "next": forecast_build(context.readable, home, paid_models(context.settings)).as_dict() if is_whole else {},
    }


# Standing questions: keep them, list them, and ask them of two graphs.


class SomeQuestions(Request):
    """At least one question is named."""

    @model_validator(mode="after")
    def has_a_question(self) -> Self:
        """Refuse a request without a question."""
        given = self.arguments()
        if not (given["question"] or given["questions"] or given["from_log"]):
            raise ValueError("no question was given; give a text, --file or --from-log")
        return self


def _read_files(paths: Sequence[str]) -> list[dict[str, str]]:
    found = [one for path in paths for one in read_questions(Path(path))]
    return [{"question": text, "requires": source} for text, source in found]


def _row(one: StandingQuestion) -> dict[str, Any]:
    return {"id": one.key, **one.model_dump(mode="json", include={"question", "requires", "added"})}


@capability(
    "standing.add", "rw", cli=Cli("standing add", "question"), base=SomeQuestions,
    rest=Rest("POST", "/standing", "Keep standing questions", 201, tag="questions",
              examples=({"question": "who is on call for billing?", "requires": "oncall.md"},)),
)  # fmt: skip
def add(
    context: CallContext,
    *,
    question: Annotated[Question | None, Shell(metavar="TEXT"), Field(description="The question to keep.")] = None,
    requires: Annotated[
        Id | None, Shell(metavar="SOURCE"),
        Field(description="A source that the answer must cite, or a build does not publish."),
    ] = None,
    questions: Annotated[
        tuple[dict[str, str], ...],
        Shell(flags=("--file",), metavar="FILE", read=_read_files,
              help="File with a question a line, as text or as JSON with `question` and `requires`; may be repeated."),
        Field(max_length=1000, description="Several, each with `question` and perhaps `requires`."),
    ] = (),
    from_log: Annotated[bool, Field(description="Keep the questions that the log holds most often.")] = False,
) -> dict[str, Any]:  # fmt: skip
    """Keep questions that each build asks of the former and the next graph before the next one serves."""
    given = [(question, requires or "")] if question else []
    given += [(one.get("question", ""), one.get("requires", "")) for one in questions]
    given += frequent_questions(context.readable) if from_log else []
    return {"added": [_row(one) for one in add_standing(context.writable, given, utc_now())]}


@capability(
    "standing.list", cli=Cli("standing list"), rest=Rest("GET", "/standing", "Standing questions", tag="questions")
)
def show(context: CallContext) -> dict[str, Any]:
    """List the standing questions, with the sources that they require."""
    return {"questions": [_row(one) for one in list_standing(context.readable)]}


@capability(
    "standing.remove", "rw", cli=Cli("standing remove", "id"),
    rest=Rest("POST", "/standing/{id}/remove", "Drop a standing question", tag="questions"),
)  # fmt: skip
def remove(
    context: CallContext, *, id: Annotated[Id, Field(description="Id of the question, as the list shows it.")]
) -> dict[str, Any]:
    """Drop a standing question."""
    return {"removed": _row(remove_standing(context.writable, id))}


Before = Annotated[Id | None, Shell(metavar="SNAPSHOT"), Field(description="Older snapshot; by default the last one.")]


@capability(
    "standing.run", cli=Cli("standing run", succeeds=lambda document: bool(document["is_green"])),
    rest=Rest("GET", "/standing/run", "Ask the standing questions", tag="questions"),
)  # fmt: skip
def run(context: CallContext, *, before: Before = None) -> dict[str, Any]:
    """Ask the standing questions of the graph that serves and of an older one: which answers changed, and why."""
    home = context.settings.home
    known = [one.snapshot for one in published.snapshots(home) if one.problem is None]
    if not known:
        raise SnapshotError("nothing is published that could be asked; run `hades build`")
    older = before or next(iter(known[1:]), known[0])
    with closing(published.open_snapshot(home, older)) as old, closing(published.open_snapshot(home, known[0])) as new:
        report = check_standing(list_standing(context.readable), old, new, context.answers.tools)
    red = [one for one in report["required"] if not one["cites"]]
    return {**report, "before": older, "after": known[0], "is_green": not red, "red": red}
