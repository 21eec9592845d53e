"""States, edges and acts of memory as documents and for the eye."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.memory.recall.account import Account
from hades.memory.service import Memory
from hades.text.keywords import day
from schemas.memory import MemoryAudit, MemoryEdge, MemoryState

_IDS = ("edge", "act", "conflict", "superseded by")  # columns that are copied into another command


def shown(state: MemoryState) -> tuple[Text, ...]:
    """A version for the eye."""
    head = f"{state.topic}, version {state.version}, since {day(state.valid_from)}, confidence {state.confidence:g}"
    return Text(head, style="bold"), Text(state.content), Text(f"id {state.id}", style="dim")


def account_view(account: Account) -> tuple[Text, ...]:
    """What holds, why, and what held before."""
    return (
        Text(account.current_answer, style="bold"),
        Text(f"because: {account.reasoning}"),
        Text(f"before: {account.historical_context}", style="dim"),
    )


def edge_table(memory: Memory, edges: Iterable[MemoryEdge]) -> Table:
    """Edges with the topics they join."""
    listed = list(edges)
    ends = sorted({end for edge in listed for end in (edge.source, edge.target)})
    names = {state.key: f"{state.topic} v{state.version}" for state in memory.states(ends)}
    table = table_of("edge", "from", "relation", "to", "true", "superseded by")
    for edge in listed:
        source, target = (names.get(end.rpartition("/")[2], end) for end in (edge.source, edge.target))
        since = day(edge.valid_from)
        period = f"{since} until {day(edge.valid_until)}" if edge.valid_until else f"since {since}"
        table.add_row(edge.id, source, edge.relationship_type, target, period, edge.superseded_by or "")
    return table


def table_of(*columns: str) -> Table:
    """An empty table without lines."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in _IDS)
    return table


def state_document(state: MemoryState) -> dict[str, Any]:
    """A version as JSON, without its vector."""
    shown = state.model_dump(mode="json", exclude={"embedding", "key"})
    return {"id": state.id, **shown}


def edge_document(edge: MemoryEdge) -> dict[str, Any]:
    """What is believed of an edge, as JSON."""
    shown = edge.model_dump(mode="json", exclude={"key", "source", "target"})
    ends = {"source_state_id": edge.source_state_id, "target_state_id": edge.target_state_id}
    return {"id": edge.id, "revision": edge.revision, **ends, **shown}


def act_document(act: MemoryAudit | None) -> dict[str, Any] | None:
    """A step of an act as JSON."""
    return None if act is None else {"id": act.key, **act.model_dump(mode="json", exclude={"key"})}
