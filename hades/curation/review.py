"""Which edits others must agree on, and the agreement itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hades.build_state import ledger
from hades.build_state.entity_edits import refresh_entities
from hades.curation.edits import (
    COLLECTIONS,
    SERVED,
    BadEdit,
    EditReport,
    check_words,
    edit_named,
    entity_row,
    keep,
    report_of,
)
from hades.ports.store import GraphStore, RowStore, Term
from hades.ports.text import Embedder
from schemas.curation import EditState, EntityEdit
from schemas.ids import node_id

Row = dict[str, Any]


@dataclass(frozen=True)
class ReviewRules:
    """Up to `degree` relations and from `confidence` on an edit applies at once; beyond, `quorum` parties must agree.

    Twenty relations is where a wrong name starts to be seen in many answers.
    """

    degree: int = 20
    confidence: float = 0.5
    quorum: int = 2


RULES = ReviewRules()


def needs_of(
    store: RowStore,
    row: Row,
    fields: Mapping[str, Any],
    standing: Sequence[EntityEdit],
    who: str,
    confidence: float,
    rules: ReviewRules = RULES,
) -> tuple[str, ...]:
    """Why others must agree on these fields; empty when nobody must."""
    needs = []
    identity = [name for name in ("name", "type") if name in fields]
    if set(row["aliases"]) - set(fields.get("aliases", row["aliases"])):
        identity.append("aliases")
    degree = degree_of(store, row["_key"]) if identity else 0
    if degree > rules.degree:
        needs.append(
            f"{' and '.join(identity)} of an entity with {degree} relations: more than {rules.degree} need a second say"
        )
    if confidence < rules.confidence:
        needs.append(f"made with confidence {confidence:g}, below {rules.confidence:g}")
    others = sorted({edit.who for edit in standing if edit.who != who and set(edit.fields) & set(fields)})
    if others:
        needs.append(f"overrules what {', '.join(others)} said")
    return tuple(needs)


def degree_of(store: RowStore, key: str) -> int:
    """How many relations an entity has, either way."""
    entity = node_id("entities", key)
    return sum(store.count("relations", where=[Term(end, "==", entity)]) for end in ("_from", "_to"))


def approve(store: GraphStore, edit_id: str, *, who: str, at: datetime, embedder: Embedder | None = None) -> EditReport:
    """Stand behind somebody else's edit; it applies once enough parties do. Twice by the same party is once."""
    check_words(who, "")
    with store.transaction(COLLECTIONS) as inside:
        return agree(inside, edit_named(inside, edit_id), who, at, embedder)


def agree(store: RowStore, edit: EntityEdit, who: str, at: datetime, embedder: Embedder | None) -> EditReport:
    """The same inside a transaction."""
    row = entity_row(store, edit.entity)
    if edit.state == EditState.UNDONE:
        raise BadEdit(f"edit {edit.key} was undone by {edit.undone_by}; make it again if it is right")
    if edit.state == EditState.APPLIED or who in edit.approved_by:
        return report_of(edit, row, changed=False, note="it stood so already")
    if who == edit.who:
        raise BadEdit(f"edit {edit.key} was made by {who}; another person must approve it")
    approved = edit.model_copy(update={"approved_by": (*edit.approved_by, who)})
    if 1 + len(approved.approved_by) < approved.quorum:
        keep(store, approved)
        return report_of(approved, row, changed=True, note="noted; more parties must agree before it applies")
    return put_on(store, approved, row, at, embedder)


def put_on(store: RowStore, edit: EntityEdit, row: Row, at: datetime, embedder: Embedder | None) -> EditReport:
    """Let an edit count from now on."""
    applied = edit.model_copy(update={"state": str(EditState.APPLIED), "applied_at": at})
    keep(store, applied)
    refresh_entities(store, [edit.entity], embedder)
    if {"name", "type"} & set(edit.fields):
        ledger.reopen(store)  # topics are named after their members, people are placed otherwise
    return report_of(applied, row, changed=True, note=SERVED)
