"""Where a row operation happens: on the store as it is, or inside a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from arango.database import TransactionDatabase

from hades.stores.arango.client import ArangoSession, Binds
from hades.stores.arango.cursors import Ask, stream_rows

Item = TypeVar("Item")


@dataclass(frozen=True)
class Scope:
    """A session and, inside a transaction, the transaction; how much a search may wait or guess.

    `bare` marks a transaction that is repeated as a whole, so failures inside stay what they are. `runtime_s` is how
    long the server may work on one query; None: as long as the session allows.
    """

    session: ArangoSession
    unit: TransactionDatabase | None = None
    wait_for_view: bool = False
    approximate: bool = False
    bare: bool = False
    runtime_s: float | None = None

    def query(self, text: str, binds: Binds, action: str) -> list[Any]:
        """All rows of a reading query."""
        if self.unit is None:
            self.session.before_read()
        return self.session.query(
            text, binds, action=action, inside=self.unit, bare=self.bare, runtime_s=self.runtime_s
        )

    def stream(self, ask: Ask, action: str, batch: int) -> Iterator[list[Any]]:
        """The rows of a scan, batch by batch; `ask` gives the query for the rows after a key."""
        if self.unit is None:
            self.session.before_read()
        yield from stream_rows(self.session, ask, action=action, batch=batch, inside=self.unit)


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`, so that no request grows without bound."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
