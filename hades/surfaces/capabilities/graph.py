"""The published graph: nodes, topics, overview, comparison, corrections, snapshots, builds,
standing questions.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import Field, model_validator

from hades import curation
from hades.errors import HadesError, SnapshotError
from hades.ingest.manifest import known as known_sources
from hades.ingest.sources.confined import ConfinedPool, ParserStopped
from hades.night.forecast import forecast_build
from hades.night.history import resolve_snapshot
from hades.night.release import publish, said
from hades.night.release.compare import compare_snapshots
from hades.night.report import last_runs, snapshot_of_night
from hades.night.standing import (
    add_standing,
    check_standing,
    frequent_questions,
    list_standing,
    read_questions,
    remove_standing,
)
from hades.ports.services import utc_now
from hades.ports.store import Direction, RowStore, scan_rows
from hades.retrieval.answer.overview import describe_corpus
from hades.retrieval.walks.neighbourhood import Reach, node_shown, topics_shown
from hades.retrieval.walks.neighbourhood import subgraph as read_subgraph
from hades.snapshot import open as published
from hades.snapshot import pointer
from hades.snapshot.publish import WORDS
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import (
    AtMoment,
    Cli,
    FreeForm,
    Id,
    Mcp,
    Question,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    capability,
    field,
    read_pairs,
)
from hades.wiring import hold_build, open_build_context, paid_models
from schemas.builds import EditState, StandingQuestion
from schemas.catalogue import ALL
from schemas.ids import Mask, content_key

NodeId = Annotated[
    Id,
    Field(
        description="Id of a node, for example entities/event_loop.",
        examples=["entities/event_loop"],
    ),
]
Fanout = Annotated[
    int,
    Field(
        ge=1,
        le=100,
        description="Number of edges followed from each node, heaviest first.",
    ),
]
AROUND_CHARS = 3_000
_PDF = "application/pdf"
_PAGE = re.compile(r"page (\d+)$")
_DRAWING_SECONDS = 10.0


class Walk(AtMoment):
    """Which edges are followed."""

    direction: Literal["any", "outbound", "inbound"] = Field(
        "any", description="Direction of the edges to follow."
    )
    types: tuple[Id, ...] = Field(
        (),
        max_length=32,
        description="Only edges of these types; by default all.",
    )


@capability(
    "overview",
    Cli(),
    Rest(
        "GET",
        "/overview",
        "The corpus at a glance",
        tag="graph",
    ),
)
def overview(context: CallContext) -> dict[str, Any]:
    """Show the corpus at a glance: what it holds, what it speaks of most, and example questions
    made from it.
    """
    return describe_corpus(context.readable)


class ComparisonView(Request):
    """How a comparison is shown."""

    page: str | None = Field(
        None,
        description="Also write it as an HTML page with pictures to this file.",
    )


By = Annotated[
    said.By,
    Field(description="What is said now and no longer is listed by these."),
]
Only = Annotated[str, Field(description="Only documents, entities or topics with this name.")]
Asked = Annotated[
    tuple[Question, ...],
    Field(
        description="Questions that both graphs are asked.",
        max_length=500,
    ),
]


def read_asked(files: Sequence[str]) -> list[str]:
    """The questions of files: one a line, as text or as JSON."""
    return [text for file in files for text, _ in read_questions(Path(file))]


@capability(
    "diff",
    Cli("before after", options=ComparisonView),
    Rest(
        "POST",
        "/snapshots/diff",
        "What a graph says that another did not",
    ),
)
def diff(
    context: CallContext,
    *,
    before: Id | None = field("Snapshot id, tag, night or day; by default the one before.", None),
    after: Id | None = field("The same of the later one; by default the one that serves.", None),
    by: By = "document",
    only: Only = "",
    questions: Asked = field(
        None,
        (),
        metavar="FILE",
        read=read_asked,
        is_list=True,
    ),
    standing: bool = field("Also ask the standing questions of both.", False),
) -> dict[str, Any]:
    """Show what a graph says that another did not, and what it says no longer.

    A day means the graph that served at its end.
    """
    at = utc_now()

    asked = []
    for text in questions:
        asked.append(
            StandingQuestion(
                key=content_key("sq", text),
                question=text,
                added=at,
            )
        )

    return compare_named(
        context,
        before,
        after,
        asked,
        standing=standing,
        by=by,
        only=only,
        shows_all=True,
    )


@capability(
    "compare",
    Cli(options=ComparisonView),
    Rest(
        "GET",
        "/snapshots/compare",
        "What changed between two graphs",
    ),
)
def compare(
    context: CallContext,
    *,
    before: Id | None = field(
        "Snapshot id, tag or day; by default the one that served before.",
        None,
    ),
    after: Id | None = field("Snapshot id, tag or day; by default the one that serves.", None),
    standing: bool = field("Also ask the standing questions of both.", False),
) -> dict[str, Any]:
    """Compare two graphs: which documents, names, edges, weights, topics and answers changed."""
    return compare_named(
        context,
        before,
        after,
        [],
        standing=standing,
    )


def compare_named(
    context: CallContext,
    before: str | None,
    after: str | None,
    asked: Sequence[StandingQuestion],
    *,
    standing: bool = False,
    by: said.By = "document",
    only: str = "",
    shows_all: bool = False,
) -> dict[str, Any]:
    """Compare the snapshots that these names mean, by default the one that served before and the
    one that serves.
    """
    home = context.settings.home
    if before is None:
        old_id = None
    else:
        old_id = _snapshot_named(home, before)

    if after is None:
        new_id = None
    else:
        new_id = _snapshot_named(home, after)

    readable = _readable_snapshots(home)
    new_id = new_id or next(iter(readable), None)
    old_id = old_id or next((snapshot for snapshot in readable if snapshot != new_id), None)

    if new_id is None or old_id is None:
        raise SnapshotError(
            f"{len(readable)} snapshots can be read, expected two to compare; run `hades run "
            "nightly` again"
        )

    questions = [*asked, *(list_standing(context.readable) if standing else ())]
    tools = context.answers.tools if questions else None
    with (
        closing(published.open_snapshot(home, old_id)) as old,
        closing(published.open_snapshot(home, new_id)) as new,
    ):
        return compare_snapshots(
            old,
            new,
            questions,
            tools,
            by,
            only,
            shows_all=shows_all,
        )


def _snapshot_named(home: Path, name: str) -> str:
    return resolve_snapshot(home, snapshot_of_night(home, name) or name)


def _readable_snapshots(home: Path) -> list[str]:
    """Ids of the snapshots that can be opened, newest first."""
    return [entry.snapshot for entry in pointer.snapshots(home) if entry.problem is None]


@capability(
    "graph.node",
    Cli("id"),
    Rest("GET", "/graph/nodes/{id:path}", "A node"),
)
def node(context: CallContext, *, id: NodeId) -> dict[str, Any]:
    """Show a node: its facts, degrees and topic; chunks, functions and files with their text."""
    with context.answers.read([id]) as view:
        return node_shown(view, id)


@capability(
    "graph.source",
    Cli("id"),
    Rest(
        "GET",
        "/graph/source/{id:path}",
        "A passage at its place",
    ),
)
def source(
    context: CallContext,
    *,
    id: NodeId,
    picture: Annotated[
        bool, Field(description="With the page of a PDF as a picture, the passage marked.")
    ] = False,
) -> dict[str, Any]:
    """Show a passage at its place in its document: what stands around it, its lines and its
    page.
    """
    with context.answers.read([id]) as view:
        node_shown(view, id)  # what the caller may not see is refused here

    return show_source(context.readable, id, picture=picture)


def show_source(
    store: RowStore,
    passage: str,
    *,
    picture: bool,
) -> dict[str, Any]:
    """The text before and after a passage, its lines, and its page in a PDF."""
    chunk = _stored_row(store, passage)
    document = _stored_row(store, chunk["document"])
    text = document["text"]
    start, end = chunk["span"]
    page = None

    if document["mime"] == _PDF and chunk["headings"]:
        page = _PAGE.match(chunk["headings"][0])

    line_start = text.rfind("\n", 0, max(0, start - AROUND_CHARS)) + 1
    source = {
        "id": passage,
        "document": document["origin"],
        "title": document["title"],
        "mime": document["mime"],
        "headings": chunk["headings"],
        "before": text[line_start:start],
        "text": text[start:end],
        "after": text[end : end + AROUND_CHARS],
        "lines": [text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1],
        "page": int(page[1]) if page else None,
    }
    if picture and source["page"] is not None:
        try:
            source["picture"] = _draw_page(
                _file_of(store, document),
                source["page"],
                source["text"],
            )
        except HadesError as problem:
            source["problem"] = str(problem)

    return source


def _stored_row(store: RowStore, identifier: str) -> dict[str, Any]:
    collection, _, key = identifier.partition("/")
    rows = []
    if collection in ("doc_chunks", "documents"):
        rows = store.get(collection, [key]).to_pylist()

    if not rows:
        raise HadesError(
            f"{identifier} is no passage of a document, expected an id as answers name it; ask "
            "again"
        )

    return dict(rows[0])


def _file_of(store: RowStore, document: dict[str, Any]) -> Path:
    """The file that a document was read from; never one outside the folder that was read."""
    for spec in known_sources(store):
        root = Path(spec.path).resolve()
        folder = root.parent if root.is_file() else root
        path = folder.joinpath(str(document["origin"])).resolve()

        if spec.source == document["source"] and path.is_file() and path.is_relative_to(folder):
            return path

    raise HadesError(
        f"{document['origin']} is no longer where it was read; its text is still there, without "
        "the page"
    )


def _draw_page(path: Path, page: int, text: str) -> str:
    """The page as a `data:` address, drawn in a confined process: a file may be hostile."""
    with ConfinedPool("hades.ingest.formats.pdf:draw_page") as pool:
        try:
            png = pool.call(
                path.read_bytes(),
                page,
                text,
                cpu_seconds=_DRAWING_SECONDS,
            )
        except ParserStopped as stopped:
            raise HadesError(f"page {page} of {path.name} cannot be drawn: {stopped}") from None

    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


@capability(
    "graph.neighbours",
    Cli("id"),
    Rest(
        "GET",
        "/graph/neighbours",
        "The neighbours of a node",
    ),
    also=Walk,
)
def neighbours(
    context: CallContext, *, id: NodeId, fanout: Fanout = 16, **walk: Any
) -> dict[str, Any]:
    """Show the edges of a node and the nodes at their other ends."""
    limits = {
        "hops": 1,
        "fanout": fanout,
        "nodes": fanout + 1,
        "edges": 2 * fanout,
    }
    return _walk(context, (id,), walk, **limits)


@capability(
    "graph.subgraph",
    Cli("id"),
    Rest(
        "GET",
        "/graph/subgraph",
        "The graph around some nodes",
    ),
    also=Walk,
)
def subgraph(
    context: CallContext,
    *,
    id: tuple[Id, ...] = field(
        "Ids of the nodes to start from.",
        metavar="ID...",
        min_length=1,
        max_length=32,
    ),
    hops: int = field(
        "Maximum number of edges from a start node.",
        1,
        ge=0,
        le=3,
    ),
    fanout: Fanout = 8,
    nodes: int = field(
        "Maximum number of nodes.",
        100,
        ge=1,
        le=500,
    ),
    edges: int = field(
        "Maximum number of edges.",
        400,
        ge=0,
        le=2000,
    ),
    **walk: Any,
) -> dict[str, Any]:
    """Show the nodes and edges within a number of hops; `capped` tells whether there are more."""
    return _walk(
        context,
        id,
        walk,
        hops=hops,
        fanout=fanout,
        nodes=nodes,
        edges=edges,
    )


def _walk(
    context: CallContext, ids: tuple[str, ...], walk: dict[str, Any], **limits: int
) -> dict[str, Any]:
    reach = Reach(
        direction=Direction(walk["direction"]),
        types=walk["types"] or None,
        **limits,
    )
    with context.answers.read(ids, reach.hops) as view:
        return read_subgraph(
            view,
            ids,
            reach,
            Mask(walk["as_of"], walk["known_at"]),
        )


@capability(
    "graph.topics",
    Cli(),
    Rest("GET", "/hierarchy", "Topics", tag="graph"),
)
def topics(
    context: CallContext,
    *,
    limit: int = field(
        "Maximum number of topics.",
        500,
        ge=1,
        le=2000,
    ),
) -> dict[str, Any]:
    """List super-topics (level 2) and topics (level 1) of the current snapshot, largest first."""
    with context.answers.lease() as view:
        return topics_shown(context.readable, view, limit)


EditId = Annotated[
    Id,
    Shell(metavar="EDIT_ID"),
    Field(description="Id of the edit, as `hades entity edits` lists it."),
]
Why = Annotated[Reason, Field(description="Reason, for whoever reads the list of edits.")]


@capability(
    "entity.edits",
    Cli("entity"),
    Rest("GET", "/entities/edits", "Corrections"),
)
def edits(
    context: CallContext,
    *,
    entity: Id | None = field(
        "Only corrections of this entity.",
        None,
        metavar="[ENTITY_ID]",
    ),
    state: Literal["pending", "applied", "undone"] | None = field(
        "Only corrections in this state.", None
    ),
) -> dict[str, Any]:
    """List corrections, oldest first: who made them, who approved them, and which wait."""
    wanted_state = None if state is None else EditState(state)
    corrections = curation.list_edits(
        context.readable,
        entity_id=entity,
        state=wanted_state,
    )
    return {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in corrections]}


@capability(
    "entity.approve",
    "rw",
    Cli("edit_id", who="--as"),
    Rest(
        "POST",
        "/entities/edits/{edit_id}/approve",
        "Approve a correction",
    ),
)
def approve(context: CallContext, *, edit_id: EditId) -> dict[str, Any]:
    """Approve another person's correction; it applies once enough people have."""
    return asdict(
        curation.approve(
            context.writable,
            edit_id,
            who=context.who,
            at=utc_now(),
            embedder=context.embedder,
        )
    )


@capability(
    "entity.undo",
    "rw",
    Cli("edit_id", who="--as"),
    Rest(
        "POST",
        "/entities/edits/{edit_id}/undo",
        "Undo a correction",
    ),
)
def undo(
    context: CallContext,
    *,
    edit_id: EditId,
    why: Why = "",
) -> dict[str, Any]:
    """Undo a correction; the documents, or an older correction, count again."""
    return asdict(
        curation.undo(
            context.writable,
            edit_id,
            who=context.who,
            why=why,
            at=utc_now(),
            embedder=context.embedder,
        )
    )


@capability(
    "entity.update",
    "rw",
    Cli("entity_id", who="--as"),
    Rest(
        "POST",
        "/entities/{entity_id}",
        "Correct an entity",
        examples=(
            {
                "fields": {"summary": "runs callbacks, one at a time"},
                "why": "was empty",
            },
        ),
    ),
    Mcp(
        "graph_entity_update",
        "Correct an entity",
        replies.EntityEditReply,
    ),
)
def update(
    context: CallContext,
    *,
    entity_id: Id = field(
        "Id of the entity, as paths show it.",
        metavar="ENTITY_ID",
        examples=["entities/ada_lovelace"],
    ),
    fields: FreeForm = field(
        "What to change: name, aliases (replaces the list), summary, type (concept, method or "
        "person), domain.",
        ...,
        "--set",
        max_length=8,
        metavar="FIELD=VALUE",
        read=read_pairs,
        is_list=True,
        help="name, aliases, summary, type or domain; JSON or plain text; may be repeated.",
        examples=[
            {"summary": "a British mathematician"},
            {
                "name": "Ada King",
                "aliases": ["Ada Lovelace"],
            },
        ],
    ),
    why: Why = "",
    confidence: Share = field("Confidence, 0 to 1; an uncertain edit waits for approval.", 1.0),
) -> dict[str, Any]:
    """Correct what the graph says about an entity. The edit is idempotent, survives rebuilds and
    can be undone.

    A change of identity of a much connected entity, or against another person's edit, waits for a
    second approval. Questions see it after the next publish.
    """
    edit = curation.update_entity(
        context.writable,
        entity_id,
        fields,
        who=context.who,
        why=why,
        at=utc_now(),
        confidence=confidence,
        embedder=context.embedder,
    )
    return asdict(edit)


@capability(
    "snapshots",
    Cli(),
    Rest("GET", "/snapshots", "Published graphs"),
)
def snapshots(context: CallContext) -> dict[str, Any]:
    """List the published graphs and which one serves, newest first."""
    entries = pointer.snapshots(context.settings.home)
    return {"snapshots": [asdict(entry) for entry in entries]}


@capability(
    "rollback",
    "rw",
    Cli("what"),
    Rest(
        "POST",
        "/snapshots/rollback",
        "Let an older graph serve",
        examples=({"what": "graph"},),
    ),
)
def rollback(
    context: CallContext,
    *,
    what: Literal["graph", "weights", "ranker"] = field(
        "What to roll back.",
        "graph",
        metavar="[weights|ranker|graph]",
    ),
    to: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None = field(
        "Snapshot id, tag or day, or version (of a ranker also `none`); by default the previous "
        "one.",
        None,
        metavar="VERSION",
    ),
) -> dict[str, Any]:
    """Let an older graph serve again at once, and restore the weights that belong to it."""
    with hold_build("rollback", context.settings, 0), open_build_context(context.settings) as build:
        return asdict(publish.roll_back(build, what, to))


SnapshotId = Annotated[
    Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")],
    Shell(metavar="SNAPSHOT"),
    Field(description="Id of the snapshot, as `hades snapshots` lists it, or its tag."),
]


@capability(
    "promote",
    "rw",
    Cli("snapshot"),
    Rest(
        "POST",
        "/snapshots/{snapshot}/promote",
        "Let a snapshot serve",
    ),
)
def promote(context: CallContext, *, snapshot: SnapshotId) -> dict[str, Any]:
    """Let a snapshot serve that was built and compared, once its files are checked."""
    with hold_build("promote", context.settings, 0), open_build_context(context.settings) as build:
        return asdict(publish.promote_snapshot(build, snapshot))


@capability(
    "discard",
    "rw",
    Cli("snapshot"),
    Rest(
        "POST",
        "/snapshots/{snapshot}/discard",
        "Remove a snapshot",
    ),
)
def discard(context: CallContext, *, snapshot: SnapshotId) -> dict[str, Any]:
    """Remove a snapshot that does not serve, with its pins."""
    home = context.settings.home
    snapshot = resolve_snapshot(home, snapshot)
    pointer.discard(home, snapshot)
    return {"discarded": snapshot}


@capability("runs", Rest("GET", "/runs", "Nightly builds"))
def runs(
    context: CallContext,
    *,
    limit: int = field(
        "Maximum number of builds.",
        20,
        ge=1,
        le=100,
    ),
) -> dict[str, Any]:
    """List the newest builds with their stages and contracts, what each stage last completed,
    alerts and a forecast.
    """
    home = context.settings.home

    rows = []
    for row in scan_rows(context.readable, "build_stages"):
        if row["stage"] != WORDS:
            rows.append(row)

    forecast: dict[str, Any] = {}
    if context.readable.describe().get("holds", ALL) == ALL:  # a smaller database is not built
        forecast = forecast_build(
            context.readable,
            home,
            paid_models(context.settings),
        )

    return {
        "runs": last_runs(home, limit),
        "stages": [
            {
                **row,
                "report": orjson.loads(row["report"]),
            }
            for row in rows
        ],
        "alerts": publish.last_alerts(home),
        "next": forecast,
    }


class SomeQuestions(Request):
    """At least one question is named."""

    @model_validator(mode="after")
    def has_a_question(self) -> Self:
        """Refuse a request without a question."""
        values = dict(self)
        if not (values["question"] or values["questions"] or values["from_log"]):
            raise ValueError("no question was given; give a text, --file or --from-log")

        return self


def _read_question_files(paths: Sequence[str]) -> list[dict[str, str]]:
    rows = []
    for path in paths:
        for text, source in read_questions(Path(path)):
            rows.append({"question": text, "requires": source})

    return rows


def _question_row(question: StandingQuestion) -> dict[str, Any]:
    return {
        "id": question.key,
        **question.model_dump(
            mode="json",
            include={"question", "requires", "added"},
        ),
    }


@capability(
    "standing.add",
    "rw",
    Cli("question"),
    Rest(
        "POST",
        "/standing",
        "Keep standing questions",
        201,
        tag="questions",
        examples=(
            {
                "question": "who is on call for billing?",
                "requires": "oncall.md",
            },
        ),
    ),
    base=SomeQuestions,
)
def add(
    context: CallContext,
    *,
    question: Question | None = field("The question to keep.", None, metavar="TEXT"),
    requires: Id | None = field(
        "A source that the answer must cite, or a build does not publish.",
        None,
        metavar="SOURCE",
    ),
    questions: tuple[dict[str, str], ...] = field(
        "Several, each with `question` and perhaps `requires`.",
        (),
        "--file",
        metavar="FILE",
        read=_read_question_files,
        help="File with a question a line, as text or as JSON with `question` and `requires`; may "
        "be repeated.",
        max_length=1000,
    ),
    from_log: bool = field("Keep the questions that the log holds most often.", False),
) -> dict[str, Any]:
    """Keep questions that each build asks of the former and the next graph before the next one
    serves.
    """
    pairs = [(question, requires or "")] if question else []
    pairs += [(row.get("question", ""), row.get("requires", "")) for row in questions]
    pairs += frequent_questions(context.readable) if from_log else []
    return {
        "added": [
            _question_row(added) for added in add_standing(context.writable, pairs, utc_now())
        ]
    }


@capability(
    "standing.list",
    Cli(),
    Rest(
        "GET",
        "/standing",
        "Standing questions",
        tag="questions",
    ),
)
def show(context: CallContext) -> dict[str, Any]:
    """List the standing questions, with the sources that they require."""
    return {"questions": [_question_row(question) for question in list_standing(context.readable)]}


@capability(
    "standing.remove",
    "rw",
    Cli("id"),
    Rest(
        "POST",
        "/standing/{id}/remove",
        "Drop a standing question",
        tag="questions",
    ),
)
def remove(
    context: CallContext,
    *,
    id: Id = field("Id of the question, as the list shows it."),
) -> dict[str, Any]:
    """Drop a standing question."""
    return {"removed": _question_row(remove_standing(context.writable, id))}


Before = Annotated[
    Id | None,
    Shell(metavar="SNAPSHOT"),
    Field(description="Older snapshot; by default the last one."),
]


@capability(
    "standing.run",
    Cli(succeeds=lambda document: bool(document["is_green"])),
    Rest(
        "GET",
        "/standing/run",
        "Ask the standing questions",
        tag="questions",
    ),
)
def run(context: CallContext, *, before: Before = None) -> dict[str, Any]:
    """Ask the standing questions of the graph that serves and of an older one: which answers
    changed, and why.
    """
    home = context.settings.home
    readable = _readable_snapshots(home)

    if not readable:
        raise SnapshotError("nothing is published that could be asked; run `hades build`")

    newest = readable[0]
    older = next(iter(readable[1:]), newest)
    if before:
        older = resolve_snapshot(home, before)

    with (
        closing(published.open_snapshot(home, older)) as old,
        closing(published.open_snapshot(home, newest)) as new,
    ):
        report = check_standing(
            list_standing(context.readable),
            old,
            new,
            context.answers.tools,
        )

    red = []
    for requirement in report["required"]:
        if not requirement["cites"]:
            red.append(requirement)

    return {
        **report,
        "before": older,
        "after": newest,
        "is_green": not red,
        "red": red,
    }
