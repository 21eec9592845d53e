"""The ArangoDB store: rows, transactions, provisioning, health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from hades.ports.store import Mode, ProvisionReport, RowStore
from hades.stores import rows
from hades.stores.arango import health, provision
from hades.stores.arango.breaker import CircuitBreaker
from hades.stores.arango.client import ArangoEndpoints, ArangoSession
from hades.stores.arango.retry import RetryPolicy
from hades.stores.arango.row_store import ArangoRows
from hades.stores.arango.scope import Scope
from hades.stores.arango.transaction import begin, commit, give_up
from schemas.catalogue import NAMES
from schemas.parts import ALL, names_in


class ArangoStore(ArangoRows):
    """A `GraphStore` on an ArangoDB server, 3.12 or newer."""

    def __init__(self, session: ArangoSession, *, wait_for_view: bool = False, approximate: bool = False) -> None:
        super().__init__(Scope(session, None, wait_for_view, approximate))

    @classmethod
    def open(
        cls,
        endpoints: ArangoEndpoints,
        mode: Mode = Mode.READ_WRITE,
        *,
        request_timeout_s: float = 30.0,
        max_runtime_s: float = 20.0,
        batch_rows: int = 1_000,
        fail_on_warning: bool = False,
        wait_for_view: bool = False,
        approximate: bool = False,
        retry: RetryPolicy = RetryPolicy(),
        breaker: CircuitBreaker | None = None,
    ) -> Self:
        """A handle; nothing is sent before the first question.

        `wait_for_view` makes each text search wait until the view has caught up, which is for tests. `approximate`
        lets vector searches without a predicate go through the vector index and miss some rows.
        """
        session = ArangoSession(
            endpoints,
            mode,
            request_timeout_s=request_timeout_s,
            max_runtime_s=max_runtime_s,
            batch_rows=batch_rows,
            fail_on_warning=fail_on_warning,
            retry=retry,
            breaker=breaker,
        )
        return cls(session, wait_for_view=wait_for_view, approximate=approximate)

    @property
    def wait_for_view(self) -> bool:
        """Whether searches wait until the view has caught up."""
        return self._scope.wait_for_view

    @property
    def session(self) -> ArangoSession:
        """For the specification's own queries (`hades.stores.arango.queries`)."""
        return self._session

    def provision(self, only: str | None = None) -> ProvisionReport:
        """See `GraphStore.provision`."""
        self._session.require_admin("provisioning")
        return provision.provision(self._session, only)

    @contextmanager
    def transaction(self, collections: Sequence[str]) -> Iterator[RowStore]:
        """See `GraphStore.transaction`. The server gives up one that is idle for 60 seconds."""
        names = [rows.require(name).name for name in collections]
        action = f"a transaction over {', '.join(names)}"
        self._session.require_write(action)
        # Beginning twice leaves at most an empty transaction behind, which the server drops by itself.
        unit = self._session.run(action, lambda: begin(self._session.db, names), again=True, writes=True)
        try:
            yield ArangoRows(Scope(self._session, unit), frozenset(names))
            self._session.run(action, lambda: commit(unit, action), again=False, writes=True)
        except BaseException:
            give_up(unit)
            raise

    def counts(self) -> dict[str, int]:
        """See `GraphStore.counts`."""
        held = names_in(self._part)
        return {name: self.count(name) if name in held else 0 for name in NAMES}

    def dangling(self) -> dict[str, list[str]]:
        """See `GraphStore.dangling`."""
        return health.dangling(self._session, self._part)

    def check(self) -> list[str]:
        """See `GraphStore.check`."""
        return list(health.problems(self._session, self))

    def describe(self) -> dict[str, str]:
        """See `GraphStore.describe`."""
        facts = {
            "kind": "arango",
            "endpoint": str(self._session.endpoint),
            "database": self._session.database_name,
            "mode": str(self.mode),
            "version": self._session.version,
        }
        if (part := self._part) != ALL:
            facts["holds"] = part
        if self.mode is Mode.ADMIN:
            facts["vector_index"] = "available" if self._session.has_vector_index else "not available; search is exact"
        return facts

    @property
    def _part(self) -> str:
        """What the database was made for; asked of the server, which another process may have provisioned since."""
        return provision.held_part(self._session)

    def close(self) -> None:
        """See `GraphStore.close`."""
        self._session.close()
