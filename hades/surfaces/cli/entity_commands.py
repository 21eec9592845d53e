"""`hades entity`: correct an entity, list corrections, agree to one, take one back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

if TYPE_CHECKING:
    from hades.curation.edits import EditReport
    from hades.ports.store import GraphStore
    from hades.ports.text import Embedder

entity_app = typer.Typer(
    help="Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undone."
)

WhoOption = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Who answers for it; default: the user of this session.")
]
WhyOption = Annotated[str, typer.Option(help="Why, for whoever reads the list of edits.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(entity_app, name="entity", no_args_is_help=True)


@entity_app.command("update")
def update(
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY_ID", help="As paths show it: entities/ada_lovelace.")],
    fields: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="name, aliases, summary, type or domain; JSON or plain text; repeat."
        ),
    ],
    why: WhyOption = "",
    who: WhoOption = None,
    confidence: Annotated[float, typer.Option(min=0.0, max=1.0, help="How sure; an unsure edit waits.")] = 1.0,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Correct an entity. A safe change applies at once; one that many relations lean on waits for somebody else."""
    said = dict(_field(pair) for pair in fields)

    def change(store: GraphStore, embedder: Embedder) -> EditReport:
        from hades.curation.apply import update_entity
        from hades.ports.clock import utc_now

        return update_entity(
            store, entity_id, said, who=_party(who), why=why, at=utc_now(), confidence=confidence, embedder=embedder
        )

    answer_with(lambda: _changed("entity update", change), as_json=as_json, debug=debug)


@entity_app.command("edits")
def edits(
    entity_id: Annotated[str | None, typer.Argument(metavar="[ENTITY_ID]", help="Only those of one entity.")] = None,
    state: Annotated[str | None, typer.Option(help="Only those that are pending, applied or undone.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """List corrections, oldest first: who said what, who agreed, what waits."""
    if state not in (None, "pending", "applied", "undone"):
        raise typer.BadParameter(f"{state!r} is no state; use pending, applied or undone")
    answer_with(lambda: _listed(entity_id, state), as_json=as_json, debug=debug)


@entity_app.command("approve")
def approve(
    edit_id: Annotated[str, typer.Argument(metavar="EDIT_ID", help="As `hades entity edits` lists it.")],
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Agree to somebody else's correction; it applies once enough parties do."""

    def change(store: GraphStore, embedder: Embedder) -> EditReport:
        from hades.curation.review import approve as agree
        from hades.ports.clock import utc_now

        return agree(store, edit_id, who=_party(who), at=utc_now(), embedder=embedder)

    answer_with(lambda: _changed("entity approve", change), as_json=as_json, debug=debug)


@entity_app.command("undo")
def undo(
    edit_id: Annotated[str, typer.Argument(metavar="EDIT_ID", help="As `hades entity edits` lists it.")],
    why: WhyOption = "",
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Take a correction back; the entity says again what documents and other corrections say."""

    def change(store: GraphStore, embedder: Embedder) -> EditReport:
        from hades.curation.undo import undo as take_back
        from hades.ports.clock import utc_now

        return take_back(store, edit_id, who=_party(who), why=why, at=utc_now(), embedder=embedder)

    answer_with(lambda: _changed("entity undo", change), as_json=as_json, debug=debug)


def _changed(path: str, change: Callable[[GraphStore, Embedder], EditReport]) -> Answer:
    from rich.text import Text

    from hades.settings import load_settings
    from hades.telemetry.audit import Audit
    from hades.wiring import open_embedder

    settings = load_settings()
    with Audit(settings.home / "logs").call("RW", path), _store() as store:
        report = change(store, open_embedder(settings))
    lines = [f"{report.entity}: {report.state}; {report.note}"]
    lines += [f"  {name}: {report.before[name]!r} -> {value!r}" for name, value in report.fields.items()]
    lines += [f"  waits, because {need}" for need in report.needs if report.state == "pending"]
    lines += [f"  edit {report.edit}"] if report.edit else []
    return Answer(report.as_dict(), tuple(Text(line) for line in lines))


def _listed(entity_id: str | None, state: str | None) -> Answer:
    from rich.table import Table
    from rich.text import Text

    from hades.curation.edits import list_edits
    from schemas.curation import EditState

    with _store(write=False) as store:
        found = list_edits(store, entity_id=entity_id, state=None if state is None else EditState(state))
    table = Table(box=None, pad_edge=False)
    for heading in ("edit", "entity", "state", "who", "agreed", "says", "why"):
        table.add_column(heading, overflow="fold")
    for edit in found:
        says = "; ".join(f"{name}: {value}" for name, value in edit.fields.items())
        table.add_row(edit.key, edit.entity, edit.state, edit.who, ", ".join(edit.approved_by), says, edit.why)
    document = {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in found]}
    return Answer(document, (table if found else Text("no entity was edited"),))


@contextmanager
def _store(*, write: bool = True) -> Iterator[GraphStore]:
    from contextlib import closing

    from hades.ports.store import Mode
    from hades.settings import load_settings
    from hades.wiring import open_store

    with closing(open_store(load_settings(), Mode.READ_WRITE if write else Mode.READ_ONLY)) as store:
        yield store


def _party(who: str | None) -> str:
    import getpass

    return who if who is not None else getpass.getuser()


def _field(pair: str) -> tuple[str, Any]:
    import json

    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{pair!r} is no field; write it as name='Ada King' or aliases='[\"Ada\"]'")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
