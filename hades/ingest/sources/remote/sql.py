"""Rows of a table or a query, by SQLAlchemy: deletes by keys, changes by a cursor column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hades.errors import SettingsError
from hades.ingest.sources.remote.connector import (
    Kind,
    Place,
    Reading,
    RemoteDocument,
    SyncError,
    load_library,
)
from hades.ingest.sources.remote.rows import row_documents, row_key, version_text
from hades.ingest.stated_rights import readers_of_row

PREFIX = "sql:"  # before the address of any other dialect
_AT_ONCE = 500  # keys of one statement
_FETCH_KEYS = 1_000
_FETCH_ROWS = 50  # whole ones, which may be large


class SqlConnector:
    """The rows of one table or query, read in one connection."""

    def __init__(self, place: Place) -> None:
        source = place.source
        if bool(source.table) == bool(source.query):
            raise SettingsError("a database needs --table NAME or --query SQL, and not both")

        if not source.key:
            raise SettingsError(
                "a database needs --key COLUMN: the column whose values identify the rows"
            )

        self._sa = load_library(
            "sqlalchemy",
            "sql",
            "a source of rows",
        )
        self._source = source
        try:
            self._engine = self._sa.create_engine(
                place.address.removeprefix(PREFIX),
                poolclass=self._sa.pool.NullPool,
            )
        except ImportError as error:
            driver = error.name or "of this database"
            raise SettingsError(
                f"the driver {driver} is not installed; run `pip install {driver}`"
            ) from None

        self._group = source.table or "rows"
        self._keys: dict[str, Any] = {}  # as the database has them, by id
        self._address = self._engine.url.set(password=None, username=None).render_as_string()
        self._connection = self._engine.connect().execution_options(stream_results=True)
        self.columns = self._find_columns()

    def _from(self) -> Any:
        """The table, or the query as one."""
        if self._source.table:
            schema, _, name = self._source.table.rpartition(".")
            return self._sa.table(name, schema=schema or None)

        return self._sa.text(f"({self._source.query.strip().rstrip(';')}) AS documents")

    def _find_columns(self) -> tuple[str, ...]:
        everything = self._sa.select(self._sa.text("*")).select_from(self._from())
        result = self._connection.execute(everything.where(self._sa.false()))
        columns = tuple(result.keys())
        result.close()
        return columns

    def _rows(
        self,
        names: Sequence[str],
        where: Any = None,
    ) -> Iterator[Mapping[str, Any]]:
        columns = [self._sa.column(name) for name in names]
        statement = self._sa.select(*columns).select_from(self._from())
        if where is not None:
            statement = statement.where(where)

        if len(names) == len(self.columns):
            fetch = _FETCH_ROWS
        else:
            fetch = _FETCH_KEYS

        result = self._connection.execute(
            statement,
            execution_options={"yield_per": fetch},
        )
        yield from result.mappings()

    def list_documents(self) -> Iterator[RemoteDocument]:
        """Keys and cursors of all rows; without a cursor whole rows, by their hashes."""
        source = self._source
        missing = [name for name in (source.key, source.cursor, source.title) if name]
        missing += source.readers
        missing = [name for name in missing if name not in self.columns]

        if missing:
            raise SyncError(
                f"there is no column {missing[0]!r} in {self._group}, only "
                f"{', '.join(self.columns)}; correct the source with `hades sources add`"
            )

        if not source.cursor:
            yield from self._documents(self._rows(self.columns))
            return

        for row in self._rows(list(dict.fromkeys([source.key, source.cursor, *source.readers]))):
            stamp = row[source.cursor]
            key = row_key(row, source.key)
            self._keys[f"{self._group}/{key}"] = row[source.key]
            yield RemoteDocument(
                id=f"{self._group}/{key}",
                name=f"{self._group}/{key}.md",
                version="" if stamp is None else version_text(stamp),
                readers=readers_of_row(row, source.readers),
            )

    def _documents(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[RemoteDocument]:
        return row_documents(
            rows,
            group=self._group,
            key=self._source.key,
            title=self._source.title,
            cursor=self._source.cursor,
            address=self._address,
            readers=self._source.readers,
        )

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        _versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """The rows of these documents, by key; one that is no longer there is gone."""
        for start in range(0, len(documents), _AT_ONCE):
            waiting = {}
            for document in documents[start : start + _AT_ONCE]:
                waiting[document.id] = document

            yield from self._read_rows(waiting)

    def _read_rows(self, waiting: dict[str, RemoteDocument]) -> Iterator[Reading]:
        keys = [self._keys[identifier] for identifier in waiting]
        where = self._sa.column(self._source.key).in_(keys)
        for row_document in self._documents(self._rows(self.columns, where)):
            listed = waiting.pop(row_document.id, None)
            if listed is not None:
                yield Reading(replace(row_document, version=listed.version), row_document.content)

        yield from (Reading(document, is_gone=True) for document in waiting.values())

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
        self._engine.dispose()


KIND = Kind(
    "sql",
    "rows of a table or a query, by SQLAlchemy",
    ("table", "query", "key", "cursor", "title", "required", "readers"),
    SqlConnector,
)
