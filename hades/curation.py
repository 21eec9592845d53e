"""Corrections of entities: apply, review, undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from hades import stage_ledger
from hades.entity_edits import CURATED, EDITS, as_derived, refresh_entities
from hades.errors import HadesError, explain_problem
from hades.ports.services import Embedder
from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from schemas.builds import EditState, EntityEdit, EntityFields
from schemas.ids import content_key, is_legal_key, node_id
from schemas.record import canonical_json, from_rows, to_table

COLLECTIONS = ("entities", EDITS, "build_stages")  # what one edit writes
SERVED = "questions see it after the next publish; the nightly build keeps it"
MAX_WORDS = 500  # characters of a name of a party, or of a reason
Row = dict[str, Any]


class BadEdit(HadesError):
    """An edit that cannot be made: which entity or field, what was expected, what to do."""


@dataclass(frozen=True)
class EditReport:
    """What became of an edit. `changed` is whether this call changed anything; `before` is what its
    fields said.
    """

    edit: str
    entity: str
    state: str
    changed: bool
    fields: Mapping[str, Any]
    before: Mapping[str, Any]
    needs: tuple[str, ...]
    approvals_missing: int
    note: str


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are stored; anything else than what may be edited raises `BadEdit`."""
    if not fields:
        raise BadEdit(f"no field was given; edit one of {', '.join(EntityFields.model_fields)}")

    try:
        values = EntityFields.model_validate(dict(fields)).model_dump(
            mode="json",
            exclude_unset=True,
        )
    except ValidationError as error:
        raise BadEdit(
            f"{explain_problem(error.errors()[0])}; an entity has the editable fields "
            f"{', '.join(EntityFields.model_fields)}"
        ) from None

    return dict(values)


def check_words(who: str, why: str) -> None:
    """Every edit has somebody who answers for it."""
    for parameter, text in (("who", who), ("why", why)):
        if len(text) > MAX_WORDS or not text.isprintable():
            raise BadEdit(f"`{parameter}` must be one line of at most {MAX_WORDS} characters")

    if not who.strip():
        raise BadEdit("`who` is empty; name the person responsible for the edit")


def entity_row(store: RowStore, entity_id: str) -> Row:
    """The entity of an id or key, with what edits look at."""
    key = entity_id.removeprefix("entities/")
    if is_legal_key(key):
        rows = store.get(
            "entities",
            [key],
            columns=["_key", *CURATED],
        ).to_pylist()
    else:
        rows = []

    if not rows:
        raise BadEdit(
            f"no entity has the id {entity_id!r}; ids look like entities/ada_lovelace, as paths "
            "show them"
        )

    row: Row = rows[0]
    return row


def differing(row: Row, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that would change the row; a thing's own name is no alias of it."""
    changes = dict(fields)
    if "aliases" in changes:
        changes["aliases"] = [
            alias for alias in changes["aliases"] if alias != fields.get("name", row["name"])
        ]

    return {name: value for name, value in changes.items() if row[name] != value}


def list_edits(
    store: RowStore,
    *,
    entity_id: str | None = None,
    state: EditState | None = None,
) -> list[EntityEdit]:
    """Edits, oldest first: of one entity or of all, in one state or in any."""
    if entity_id is None:
        where = []
    else:
        where = [
            Term(
                "entity",
                "==",
                entity_id.removeprefix("entities/"),
            )
        ]

    if state is not None:
        where.append(Term("state", "==", str(state)))

    rows = from_rows(EntityEdit, scan_rows(store, EDITS, where=where))
    return sorted(rows, key=lambda edit: (edit.at, edit.key))


def edit_named(store: RowStore, edit_id: str) -> EntityEdit:
    """The edit of an id, or `BadEdit`."""
    if is_legal_key(edit_id):
        rows = store.get(EDITS, [edit_id]).to_pylist()
    else:
        rows = []

    if not rows:
        raise BadEdit(f"no edit has the id {edit_id!r}; `hades entity edits` lists them")

    return from_rows(EntityEdit, rows)[0]


def write_edit(store: RowStore, edit: EntityEdit) -> None:
    """Write an edit as it stands now."""
    store.upsert(EDITS, to_table(EntityEdit, [edit]))


def report_of(
    edit: EntityEdit,
    row: Row,
    *,
    changed: bool,
    note: str,
) -> EditReport:
    """What became of an edit of the row that stood before."""
    if edit.state == EditState.PENDING:
        missing = edit.quorum - 1 - len(edit.approved_by)
    else:
        missing = 0

    previous = {}
    for name in edit.fields:
        previous[name] = row.get(name)

    entity = node_id("entities", edit.entity)
    return EditReport(
        edit=edit.key,
        entity=entity,
        state=edit.state,
        changed=changed,
        fields=edit.fields,
        before=previous,
        needs=edit.needs,
        approvals_missing=missing,
        note=note,
    )


@dataclass(frozen=True)
class ReviewRules:
    """Up to `degree` relations and from `confidence` on an edit applies at once; beyond, `quorum`
    parties must agree.

    Twenty relations is where a wrong name starts to be seen in many answers.
    """

    degree: int = 20
    confidence: float = 0.5
    quorum: int = 2


def needs_of(
    store: RowStore,
    row: Row,
    edit: EntityEdit,
    applied: Sequence[EntityEdit],
    rules: ReviewRules,
) -> tuple[str, ...]:
    """Why others must agree on an edit; empty when nobody must."""
    needs = []

    identity: list[str] = []
    for name in ("name", "type"):
        if name in edit.fields:
            identity.append(name)

    if "aliases" in edit.fields and set(row["aliases"]) - set(edit.fields["aliases"]):
        identity.append("aliases")

    degree = degree_of(store, row["_key"]) if identity else 0
    if degree > rules.degree:
        needs.append(
            f"{' and '.join(identity)} of an entity with {degree} relations: more than "
            f"{rules.degree} need a second say"
        )

    if edit.confidence < rules.confidence:
        needs.append(f"made with confidence {edit.confidence:g}, below {rules.confidence:g}")

    overruled = set()
    for earlier in applied:
        if earlier.who != edit.who and set(earlier.fields) & set(edit.fields):
            overruled.add(earlier.who)

    if overruled:
        needs.append(f"overrules what {', '.join(sorted(overruled))} said")

    return tuple(needs)


def degree_of(store: RowStore, key: str) -> int:
    """How many relations an entity has, either way."""
    entity = node_id("entities", key)
    return sum(
        store.count("relations", where=[Term(end, "==", entity)]) for end in ("_from", "_to")
    )


def approve(
    store: GraphStore,
    edit_id: str,
    *,
    who: str,
    at: datetime,
    embedder: Embedder | None = None,
) -> EditReport:
    """Stand behind somebody else's edit; it applies once enough parties do. Twice by the same party
    is once.
    """
    check_words(who, "")
    with store.transaction(COLLECTIONS) as transaction:
        return agree(
            transaction,
            edit_named(transaction, edit_id),
            who,
            at,
            embedder,
        )


def agree(
    store: RowStore,
    edit: EntityEdit,
    who: str,
    at: datetime,
    embedder: Embedder | None,
) -> EditReport:
    """The same inside a transaction."""
    row = entity_row(store, edit.entity)
    if edit.state == EditState.UNDONE:
        raise BadEdit(
            f"edit {edit.key} was undone by {edit.undone_by}; make it again if it is right"
        )

    if edit.state == EditState.APPLIED or who in edit.approved_by:
        return report_of(
            edit,
            row,
            changed=False,
            note="it stood so already",
        )
    if who == edit.who:
        raise BadEdit(f"edit {edit.key} was made by {who}; another person must approve it")

    approved = edit.model_copy(update={"approved_by": (*edit.approved_by, who)})
    if 1 + len(approved.approved_by) < approved.quorum:
        write_edit(store, approved)
        return report_of(
            approved,
            row,
            changed=True,
            note="noted; more parties must agree before it applies",
        )

    return change_state(
        store,
        approved,
        row,
        embedder,
        state=str(EditState.APPLIED),
        applied_at=at,
    )


def change_state(
    store: RowStore, edit: EntityEdit, row: Row, embedder: Embedder | None, **state: Any
) -> EditReport:
    """Let an edit count, or no longer count, from now on."""
    changed = edit.model_copy(update=state)
    write_edit(store, changed)
    refresh_entities(store, [edit.entity], embedder)

    if {"name", "type"} & set(edit.fields):
        # Topics are named after their members, and people are placed otherwise.
        stage_ledger.reopen(store)

    return report_of(
        changed,
        row,
        changed=True,
        note=SERVED,
    )


def update_entity(
    store: GraphStore,
    entity_id: str,
    fields: Mapping[str, Any],
    *,
    who: str,
    why: str,
    at: datetime,
    confidence: float = 1.0,
    embedder: Embedder | None = None,
    rules: ReviewRules = ReviewRules(),
) -> EditReport:
    """Correct an entity. One that waits is agreed to by `approve`, or by a second party that makes
    the same edit.

    With an embedder a new name has its vector at once, else from the next derivation on.
    """
    requested = check_fields(fields)
    check_words(who, why)

    if not 0.0 <= confidence <= 1.0:
        raise BadEdit(f"confidence is {confidence}; give a number from 0 to 1")

    with store.transaction(COLLECTIONS) as transaction:
        row = entity_row(transaction, entity_id)
        nature = as_derived(row)["type"]
        if "type" in requested and nature in ("paper", "code_symbol"):
            raise BadEdit(
                f"{node_id('entities', row['_key'])} is a {nature} by its source; its type cannot "
                "be edited"
            )

        changes = differing(row, requested)
        entity_edits = list_edits(transaction, entity_id=row["_key"])
        if not changes:
            return _report_unchanged(row, requested, entity_edits)

        key = content_key(
            "edit",
            row["_key"],
            canonical_json(changes),
            who,
            at.isoformat(),
        )
        new_edit = EntityEdit(
            key=key,
            entity=row["_key"],
            fields=changes,
            state=EditState.PENDING,
            who=who,
            why=why,
            at=at,
            confidence=confidence,
        )

        waiting = []
        for edit in entity_edits:
            if edit.state == EditState.PENDING:
                waiting.append(edit)

        same = next((edit for edit in waiting if edit.fields == changes), None)
        if same is not None and same.who == who:
            note = "it waits already; somebody else must agree"
            return report_of(
                same,
                row,
                changed=False,
                note=note,
            )

        if same is not None:
            return agree(transaction, same, who, at, embedder)

        applied = []
        for edit in entity_edits:
            if edit.state == EditState.APPLIED:
                applied.append(edit)

        needs = needs_of(transaction, row, new_edit, applied, rules)
        if not needs:
            state = str(EditState.APPLIED)
            return change_state(
                transaction,
                new_edit,
                row,
                embedder,
                state=state,
                applied_at=at,
            )

        new_edit = new_edit.model_copy(
            update={
                "needs": needs,
                "quorum": rules.quorum,
            }
        )
        write_edit(transaction, new_edit)
        note = "it waits: somebody else must agree (`hades entity approve`)"
        return report_of(
            new_edit,
            row,
            changed=True,
            note=note,
        )


def _report_unchanged(
    row: Row,
    requested: Row,
    edits: Sequence[EntityEdit],
) -> EditReport:
    """The edit that made the entity say so, or none where the documents do."""
    matching = [
        edit for edit in edits if edit.state == EditState.APPLIED and edit.fields == requested
    ]
    note = "the entity says so already"

    if matching:
        return report_of(
            matching[-1],
            row,
            changed=False,
            note=note,
        )

    entity = node_id("entities", row["_key"])
    previous = {name: row[name] for name in requested}
    return EditReport(
        edit="",
        entity=entity,
        state=str(EditState.APPLIED),
        changed=False,
        fields=requested,
        before=previous,
        needs=(),
        approvals_missing=0,
        note=note,
    )


def undo(
    store: GraphStore,
    edit_id: str,
    *,
    who: str,
    why: str,
    at: datetime,
    embedder: Embedder | None = None,
) -> EditReport:
    """Take an edit back, applied or waiting: the entity says what documents and the other edits
    say. Idempotent.

    The row of the edit stays and says who did.
    """
    check_words(who, why)
    with store.transaction(COLLECTIONS) as transaction:
        edit = edit_named(transaction, edit_id)
        row = entity_row(transaction, edit.entity)
        if edit.state == EditState.UNDONE:
            return report_of(
                edit,
                row,
                changed=False,
                note=f"{edit.undone_by} undid it already",
            )

        state = {
            "state": str(EditState.UNDONE),
            "undone_by": who,
            "undone_at": at,
            "undone_why": why,
        }
        if edit.state == EditState.APPLIED:
            return change_state(
                transaction,
                edit,
                row,
                embedder,
                **state,
            )

        undone = edit.model_copy(update=state)
        write_edit(transaction, undone)
        return report_of(
            undone,
            row,
            changed=True,
            note="it had not been applied",
        )
