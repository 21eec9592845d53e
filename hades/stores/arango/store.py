"""The ArangoDB store: rows, transactions, provisioning, health."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from typing import Any

import pyarrow as pa

from hades.errors import StoreBusy, StoreError
from hades.ports.store import Check, GraphStore, Mode, Predicate, ProvisionReport, RowStore
from hades.stores import row_checks as rules
from hades.stores.arango import provision
from hades.stores.arango import write as journal
from hades.stores.arango.client import ArangoEndpoints, ArangoSession
from hades.stores.arango.errors import CircuitBreaker, RetryPolicy, TooLarge
from hades.stores.arango.read import Scope
from hades.stores.arango.rows import ArangoRows, BulkRows
from hades.stores.arango.transaction import Unit, commit, give_up
from hades.stores.arango.write import Kind
from schemas.catalogue import ALL, NAMES, Collection, names_in

_JSON_PER_ARROW, _ROW_BYTES = 6, 2_048  # a first guess at what a row costs; `bulk` reckons exactly


_BRIEF_S = 0.2  # what a question waits for a server whose rows it can do without
# How long a server that let it wait is not asked again, at first and while it goes on so.
_AWAY_S, _LONG_AWAY_S = 2.0, 30.0


@cache
def _brief_breaker(url: str | None) -> CircuitBreaker:
    return CircuitBreaker(
        failures=1,
        cool_down_s=_AWAY_S,
        longest_s=_LONG_AWAY_S,
    )


def brief_limits(url: str | None) -> dict[str, Any]:
    """Limits of a session for rows that a question can do without: it asks once and waits little;
    all such sessions of a process know whether the server at the address is away.
    """
    return {
        "request_timeout_s": _BRIEF_S,
        "retry": RetryPolicy(attempts=1),
        "breaker": _brief_breaker(url),
    }


class ArangoStore(ArangoRows, GraphStore):
    """A `GraphStore` on an ArangoDB server, 3.12 or newer."""

    def __init__(
        self,
        endpoints: ArangoEndpoints,
        mode: Mode = Mode.READ_WRITE,
        *,
        wait_for_view: bool = False,
        approximate: bool = False,
        **limits: Any,
    ) -> None:
        """Nothing is sent before the first question. `limits` are those of `ArangoSession`.

        `wait_for_view` makes each text search wait until the view has caught up, which is for
        tests. `approximate` lets searches for near vectors go through the vector index and miss
        some rows.
        """
        session = ArangoSession(endpoints, mode, **limits)
        super().__init__(Scope(session))
        self.wait_for_view, self.approximate = wait_for_view, approximate

        # A build never computes from half of a write that another process left.
        if mode is not Mode.READ_ONLY:
            session.before_read = partial(journal.finish, session)

    def provision(
        self,
        only: str | None = None,
        *,
        replicas: int | None = None,
    ) -> ProvisionReport:
        """See `GraphStore.provision`; `replicas` is for a database that is not there yet."""
        self.session.require_admin("provisioning")
        return provision.provision(
            self.session,
            only,
            replicas=replicas,
            vector_index=self.approximate,
        )

    def write_batch(
        self,
        collection: Collection,
        table: pa.Table,
        kind: Kind,
    ) -> None:
        """Write rows in a transaction of their own, or in units where they may be larger than
        one.
        """
        size = table.nbytes * _JSON_PER_ARROW + table.num_rows * _ROW_BYTES
        if size > self.session.unit_size.unit_bytes:
            with self.bulk([collection.name]) as inside:
                inside.write_batch(collection, table, kind)
        else:
            super().write_batch(collection, table, kind)

    def delete(
        self,
        collection: str,
        *,
        keys: Iterable[str] = (),
        where: Predicate = (),
    ) -> int:
        key_list = list(keys)
        try:
            return super().delete(
                collection,
                keys=key_list,
                where=where,
            )
        except TooLarge:
            with self.bulk([collection]) as inside:
                return inside.delete(
                    collection,
                    keys=key_list,
                    where=where,
                )

    @contextmanager
    def transaction(self, collections: Sequence[str]) -> Iterator[RowStore]:
        """See `GraphStore.transaction`. The server gives up one that is idle for 60 seconds."""
        names = [rules.require(name).name for name in collections]
        action = f"a transaction over {', '.join(names)}"
        self.session.require_write(action)
        journal.finish(self.session)
        self.session.require_build()
        # Beginning twice leaves at most an empty transaction behind, which the server drops by
        # itself.
        unit = self.session.run(
            action,
            lambda: Unit.begin(self.session.db, names),
            again=True,
            writes=True,
        )

        try:
            yield ArangoRows(Scope(self.session, unit), frozenset(names))
            self.session.run(
                action,
                lambda: commit(unit, action),
                again=False,
                writes=True,
            )
        except BaseException:
            give_up(unit)
            raise

    @contextmanager
    def bulk(
        self,
        collections: Sequence[str],
        *,
        unfinished: Callable[[RowStore], object] | None = None,
    ) -> Iterator[BulkRows]:
        """See `GraphStore.bulk`: units within the server's limit, and the journal where it takes
        several.
        """
        names = [rules.require(name).name for name in collections]
        self.session.require_write(f"writing {', '.join(names)}")
        journal.finish(self.session, again=True)
        writer = BulkRows(
            Scope(self.session),
            frozenset(names),
            unfinished,
        )

        try:
            yield writer
            writer.flush()
        except BaseException:
            with suppress(StoreError):
                writer.give_up()

            raise

    def reading(self) -> AbstractContextManager[RowStore]:
        """See `GraphStore.reading`: each collection as it is when it is read, with no write half
        applied.
        """
        if self.session.mode is not Mode.READ_ONLY:
            journal.finish(self.session, again=True)
        elif journal.complete_writes(self.session):
            raise StoreBusy(
                "a write of several transactions is being applied, so the rows are of two states; "
                "try again when "
                "`hades doctor` shows an empty write journal. A write that a killed process left "
                "is finished by the "
                "next ingest or build"
            )

        return nullcontext(self)

    def counts(self) -> dict[str, int]:
        names = names_in(self._part)
        return {name: self.count(name) if name in names else 0 for name in NAMES}

    def dangling(self) -> dict[str, list[str]]:
        return rules.dangling(self, self._part)

    def check(self) -> list[str]:
        return list(provision.problems(self.session, self))

    def compact(self) -> bool:
        return False

    def describe(self) -> dict[str, str]:
        facts = {
            "kind": "arango",
            "endpoint": str(self.session.endpoint),
            "database": self.session.database_name,
            "mode": str(self.session.mode),
            "version": self.session.version,
        }
        if (part := self._part) != ALL:
            facts["holds"] = part

        if self.session.mode is Mode.ADMIN:
            facts["vector_index"] = (
                "available" if self.session.has_vector_index else "not available; search is exact"
            )

        return facts

    def _to_write(self, name: str) -> Collection:
        """See `ArangoRows`; what others left in the journal is done before."""
        collection = super()._to_write(name)
        journal.finish(self.session)
        return collection

    def findings(self) -> list[Check]:
        """What the server is and what should be otherwise, for `hades doctor`."""
        return list(provision.findings(self.session))

    @property
    def _part(self) -> str:
        """What the database was made for; asked of the server, which another process may have
        provisioned since.
        """
        self.session.require_answer("reading what the database holds")
        return provision.hold_part(self.session)

    def close(self) -> None:
        self.session.close()
