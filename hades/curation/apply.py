"""Making an edit: the same twice is one, a safe one applies at once, any other waits for a second party."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hades.curation.edits import (
    COLLECTIONS,
    BadEdit,
    EditReport,
    check_fields,
    check_words,
    differing,
    edits_of,
    entity_row,
    keep,
    new_edit,
    refuse_other_nature,
    report_of,
)
from hades.curation.review import RULES, ReviewRules, agree, needs_of, put_on
from hades.ports.store import GraphStore
from hades.ports.text import Embedder
from schemas.curation import EditState, EntityEdit
from schemas.ids import node_id

Row = dict[str, Any]


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
    rules: ReviewRules = RULES,
) -> EditReport:
    """Correct an entity. One that waits is agreed to by `approve`, or by a second party that makes the same edit.

    With an embedder a new name has its vector at once, else from the next derivation on.
    """
    wanted = check_fields(fields)
    check_words(who, why)
    if not 0.0 <= confidence <= 1.0:
        raise BadEdit(f"confidence is {confidence}; give a number from 0 to 1")
    with store.transaction(COLLECTIONS) as inside:
        row = entity_row(inside, entity_id)
        refuse_other_nature(row, wanted)
        said = differing(row, wanted)
        every = edits_of(inside, row["_key"])
        if not said:
            return _as_it_is(row, wanted, every)
        edit = new_edit(row, said, who, why, at, confidence)
        same = next((one for one in every if one.state == EditState.PENDING and one.fields == said), None)
        if same is not None and same.who == who:
            return report_of(same, row, changed=False, note="it waits already; somebody else must agree")
        if same is not None:
            return agree(inside, same, who, at, embedder)
        standing = [one for one in every if one.state == EditState.APPLIED]
        needs = needs_of(inside, row, said, standing, who, confidence, rules)
        if not needs:
            return put_on(inside, edit, row, at, embedder)
        waits = edit.model_copy(update={"needs": needs, "quorum": rules.quorum})
        keep(inside, waits)
        return report_of(waits, row, changed=True, note="it waits: somebody else must agree (`hades entity approve`)")


def _as_it_is(row: Row, wanted: Row, every: Sequence[EntityEdit]) -> EditReport:
    """The edit that made the entity say so, or none where the documents do."""
    made = [one for one in every if one.state == EditState.APPLIED and one.fields == wanted]
    note = "the entity says so already"
    if made:
        return report_of(made[-1], row, changed=False, note=note)
    entity, before = node_id("entities", row["_key"]), {name: row[name] for name in wanted}
    return EditReport("", entity, str(EditState.APPLIED), False, wanted, before, (), 0, note)
