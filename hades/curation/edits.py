"""What an edit may say, how it is kept, and what is reported of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from hades.build_state.entity_edits import CURATED, EDITS, as_derived, read_edit
from hades.errors import HadesError
from hades.ports.store import RowStore, Term
from schemas.columns import to_table
from schemas.curation import EditState, EntityEdit, EntityFields
from schemas.ids import content_key, is_legal_key, node_id
from schemas.record import canonical_json

COLLECTIONS = ("entities", EDITS, "build_stages")  # what one edit writes
SERVED = "questions see it after the next publish; the nightly build keeps it"
SAID_MOST = 500  # characters of a name of a party, or of a reason

Row = dict[str, Any]


class BadEdit(HadesError):
    """An edit that cannot be made: which entity or field, what was expected, what to do."""


@dataclass(frozen=True)
class EditReport:
    """What became of an edit. `changed` is whether this call changed anything; `before` is what its fields said."""

    edit: str
    entity: str
    state: str
    changed: bool
    fields: Mapping[str, Any]
    before: Mapping[str, Any]
    needs: tuple[str, ...]
    approvals_missing: int
    note: str

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {**asdict(self), "needs": list(self.needs)}


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are stored; anything else than what may be edited raises `BadEdit`."""
    if not fields:
        raise BadEdit(f"no field was given; edit one of {', '.join(EntityFields.model_fields)}")
    try:
        said = EntityFields.model_validate(dict(fields)).model_dump(mode="json", exclude_unset=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadEdit(
            f"{where}: {first['msg']}; an entity has the editable fields {', '.join(EntityFields.model_fields)}"
        ) from None
    return dict(said)


def check_words(who: str, why: str) -> None:
    """Every edit has somebody who answers for it."""
    for what, text in (("who", who), ("why", why)):
        if len(text) > SAID_MOST or not all(character.isprintable() for character in text):
            raise BadEdit(f"`{what}` must be one line of at most {SAID_MOST} characters")
    if not who.strip():
        raise BadEdit("`who` is empty; name the person responsible for the edit")


def entity_row(store: RowStore, entity_id: str) -> Row:
    """The entity of an id or key, with what edits look at."""
    key = entity_id.removeprefix("entities/")
    rows = store.get("entities", [key], columns=["_key", *CURATED]).to_pylist() if is_legal_key(key) else []
    if not rows:
        raise BadEdit(f"no entity has the id {entity_id!r}; ids look like entities/ada_lovelace, as paths show them")
    row: Row = rows[0]
    return row


def differing(row: Row, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that would change the row; a thing's own name is no alias of it."""
    wanted = dict(fields)
    if "aliases" in wanted:
        wanted["aliases"] = [alias for alias in wanted["aliases"] if alias != fields.get("name", row["name"])]
    return {name: value for name, value in wanted.items() if row[name] != value}


def refuse_other_nature(row: Row, fields: Mapping[str, Any]) -> None:
    """A paper or a code symbol is one because its source says so."""
    now = as_derived(row)["type"]
    if "type" in fields and now in ("paper", "code_symbol"):
        raise BadEdit(f"{node_id('entities', row['_key'])} is a {now} by its source; its type cannot be edited")


def new_edit(row: Row, fields: Mapping[str, Any], who: str, why: str, at: datetime, confidence: float) -> EntityEdit:
    """An edit that nobody has agreed on yet."""
    key = content_key("edit", row["_key"], canonical_json(dict(fields)), who, at.isoformat())
    return EntityEdit(
        key=key,
        entity=row["_key"],
        fields=dict(fields),
        state=EditState.PENDING,
        who=who,
        why=why,
        at=at,
        confidence=confidence,
    )


def edits_of(store: RowStore, entity: str) -> list[EntityEdit]:
    """Every edit of an entity (key), oldest first."""
    return _list(store, [Term("entity", "==", entity)])


def list_edits(store: RowStore, *, entity_id: str | None = None, state: EditState | None = None) -> list[EntityEdit]:
    """Edits, oldest first: of one entity or of all, in one state or in any."""
    where = [] if entity_id is None else [Term("entity", "==", entity_id.removeprefix("entities/"))]
    if state is not None:
        where.append(Term("state", "==", str(state)))
    return _list(store, where)


def edit_named(store: RowStore, edit_id: str) -> EntityEdit:
    """The edit of an id, or `BadEdit`."""
    rows = store.get(EDITS, [edit_id]).to_pylist() if is_legal_key(edit_id) else []
    if not rows:
        raise BadEdit(f"no edit has the id {edit_id!r}; `hades entity edits` lists them")
    return read_edit(rows[0])


def keep(store: RowStore, edit: EntityEdit) -> None:
    """Write an edit as it stands now."""
    store.upsert(EDITS, to_table(EntityEdit, [edit]))


def report_of(edit: EntityEdit, before: Row, *, changed: bool, note: str) -> EditReport:
    """What became of an edit of the row that stood before."""
    missing = edit.quorum - 1 - len(edit.approved_by) if edit.state == EditState.PENDING else 0
    held = {name: before.get(name) for name in edit.fields}
    entity = node_id("entities", edit.entity)
    return EditReport(edit.key, entity, edit.state, changed, edit.fields, held, edit.needs, missing, note)


def _list(store: RowStore, where: Sequence[Term]) -> list[EntityEdit]:
    rows = [read_edit(row) for batch in store.scan(EDITS, where=list(where)) for row in batch.to_pylist()]
    return sorted(rows, key=lambda edit: (edit.at, edit.key))
