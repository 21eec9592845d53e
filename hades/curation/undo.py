"""Taking an edit back: the entity says again what documents and the other edits say, exactly."""

from __future__ import annotations

from datetime import datetime

from hades.build_state import ledger
from hades.build_state.entity_edits import refresh_entities
from hades.curation.edits import (
    COLLECTIONS,
    SERVED,
    EditReport,
    check_words,
    edit_named,
    entity_row,
    keep,
    report_of,
)
from hades.ports.store import GraphStore
from hades.ports.text import Embedder
from schemas.curation import EditState


def undo(
    store: GraphStore, edit_id: str, *, who: str, why: str, at: datetime, embedder: Embedder | None = None
) -> EditReport:
    """Take an edit back, applied or waiting; the row of the edit stays and says who did. Idempotent."""
    check_words(who, why)
    with store.transaction(COLLECTIONS) as inside:
        edit = edit_named(inside, edit_id)
        row = entity_row(inside, edit.entity)
        if edit.state == EditState.UNDONE:
            return report_of(edit, row, changed=False, note=f"{edit.undone_by} undid it already")
        undone = edit.model_copy(
            update={"state": str(EditState.UNDONE), "undone_by": who, "undone_at": at, "undone_why": why}
        )
        keep(inside, undone)
        if edit.state == EditState.PENDING:
            return report_of(undone, row, changed=True, note="it had not been applied")
        refresh_entities(inside, [edit.entity], embedder)
        if {"name", "type"} & set(edit.fields):
            ledger.reopen(inside)
        return report_of(undone, row, changed=True, note=SERVED)
