"""Rows of any dlt source or resource, by its import path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
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
from hades.ingest.sources.remote.rows import row_documents

PREFIX = "dlt:"


class DltConnector:
    """The rows of a resource, or of every resource of a source, read in full: what a resource no
    longer gives is gone.
    """

    def __init__(self, place: Place) -> None:
        load_library("dlt", "dlt", "a dlt source")
        module, _, name = place.address.removeprefix(PREFIX).partition(":")
        if not module or not name:
            raise SettingsError(
                f"{place.source.url} names no resource; write dlt:package.module:resource"
            )

        try:
            loaded = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(
                f"{place.source.url} cannot be imported ({error}); the module must be on "
                "PYTHONPATH or installed"
            ) from None

        self._source = place.source
        self._address = place.source.url
        # A function that makes one takes its arguments from dlt's own configuration.
        if callable(loaded) and not hasattr(loaded, "name"):
            opened: Any = loaded()
        else:
            opened = loaded

        self._opened: Any = opened if isinstance(opened, Iterable) else opened()
        self.columns: tuple[str, ...] = ()

    def list_documents(self) -> Iterator[RemoteDocument]:
        """Every row of every resource."""
        resources = getattr(self._opened, "selected_resources", None)

        names: dict[str, None] = {}
        for resource in [self._opened] if resources is None else resources.values():
            rows = _rows_of(resource, names)
            yield from row_documents(
                rows,
                group=str(resource.name),
                key=self._source.key or _primary_key(resource),
                title=self._source.title,
                cursor=self._source.cursor or _cursor_of(resource),
                address=self._address,
                readers=self._source.readers,
            )

        self.columns = tuple(names)

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        _versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """The listing has brought the rows along."""
        yield from (Reading(document, document.content) for document in documents)

    def close(self) -> None:
        """Nothing stays open."""


def _rows_of(resource: Any, names: dict[str, None]) -> Iterator[Mapping[str, Any]]:
    """The rows of a resource, whether they come one by one, in lists or as Arrow tables."""
    for page in resource:
        if hasattr(page, "to_pylist"):
            rows = page.to_pylist()
        else:
            rows = page

        for row in [rows] if isinstance(rows, Mapping) else rows:
            names |= dict.fromkeys(row)
            yield row


def _primary_key(resource: Any) -> str:
    columns = resource.compute_table_schema().get("columns", {})
    keys = [name for name, hints in columns.items() if hints.get("primary_key")]
    if len(keys) != 1:
        raise SyncError(
            f"the resource {resource.name} has {len(keys)} primary key columns, one is expected; "
            "name it with --key"
        )

    return str(keys[0])


def _cursor_of(resource: Any) -> str:
    incremental = getattr(resource, "incremental", None)
    path = getattr(getattr(incremental, "incremental", None), "cursor_path", "") or ""
    return path if path.isidentifier() else ""


KIND = Kind(
    "dlt",
    "rows of a dlt source or resource, by its import path",
    ("key", "cursor", "title", "required", "readers"),
    DltConnector,
)
