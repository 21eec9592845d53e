"""After derivation: no row that a build, a question or a journal left may lean on what is no longer there.

Ingestion may not import the stages, so this works from the catalogue's rows alone. The stages then find their ledger
records opened again and bring their rows to what a build without the removed material gives.
"""

from __future__ import annotations

from collections.abc import Sequence

from hades.build_state import ledger
from hades.build_state.entity_edits import EDITS
from hades.ingest.cleanup.bridges import correct_bridges
from hades.ingest.cleanup.logs import redact_logs
from hades.ingest.cleanup.topics import StandingRows, correct_topics
from hades.ingest.sync_rows import Change
from hades.ports.store import RowStore, Term

JOURNAL = "cluster_membership_journal"
SWEPT = ("clusters", "cluster_edges", "bridge_cache", JOURNAL, "query_logs", "build_stages", EDITS)


def detach_entities(store: RowStore, gone: Sequence[str], standing: StandingRows) -> dict[str, Change]:
    """Take entities (keys) out of their topics; call it while their rows still tell their names."""
    changes = correct_topics(store, gone, standing)
    # Keys are made of names, so even a bare audit of moves would tell what was forgotten: its rows go.
    noted = store.delete(JOURNAL, where=[Term("entity", "in", list(gone))]) if gone else 0
    corrections = store.delete(EDITS, where=[Term("entity", "in", list(gone))]) if gone else 0
    return {**changes, JOURNAL: Change(removed=noted), EDITS: Change(removed=corrections)}


def clear_up(store: RowStore, changed_ids: Sequence[str] | None = None) -> dict[str, Change]:
    """Correct what points at nodes and relations that are gone; call it when they are.

    `changed_ids` are the entities and relations that went or changed, where they are known.
    """
    return {"bridge_cache": correct_bridges(store, changed_ids), "query_logs": redact_logs(store)}


def reopen_stages(store: RowStore, changes: dict[str, Change]) -> None:
    """Let the next build do its stages again where anything changed, even back to what they once worked from."""
    if any(change.total for change in changes.values()):
        ledger.reopen(store)
