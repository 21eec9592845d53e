"""What answers and forgetting need of remote sources: where a document is from, its copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.ingest.sources.remote.ledger import MIRRORS, Ledger, SyncState, ledgers
from schemas.answer import Retrieval


def with_origins(
    home: Path,
    answer: Retrieval,
    now: datetime,
) -> Retrieval:
    """The answer with `address`, `last_seen` and `overdue` of passages from remote sources."""
    sources = [(ledger, ledger.state()) for ledger in ledgers(home)]
    if not sources:
        return answer

    passages = []
    for passage in answer.passages:
        source = _source_of(
            passage.document,
            passage.document_id,
            sources,
        )
        if source is None:
            fields = {}
        else:
            fields = _fields(passage.document, *source, now)

        passages.append(passage.model_copy(update=fields))

    return answer.model_copy(update={"passages": tuple(passages)})


def _source_of(
    document: str,
    document_id: str,
    sources: Sequence[tuple[Ledger, SyncState]],
) -> tuple[Ledger, SyncState] | None:
    for ledger, state in sources:
        if state.document_id(document) == document_id:
            return ledger, state

    return None


def _fields(
    document: str,
    ledger: Ledger,
    state: SyncState,
    now: datetime,
) -> dict[str, Any]:
    copy = ledger.copy_at(document) or ledger.copy_at(document.partition("#")[0])
    return {
        "address": copy.address if copy is not None else "",
        "last_seen": state.last_success,
        "overdue": state.is_overdue(now),
    }


def remove_copies(home: Path, files: Iterable[str]) -> Iterator[str]:
    """Remove those of these files that are copies; their paths in the home."""
    root = home.resolve()
    for file in files:
        path = Path(file)
        if path.is_relative_to(root / "sources" / MIRRORS) and path.is_file():
            path.unlink()
            yield path.relative_to(root).as_posix()
