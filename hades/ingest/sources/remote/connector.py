"""What a kind of remote source does: list documents with their versions, and read some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from hades.errors import SettingsError
from hades.ingest.formats.registry import FORMATS, as_utc
from hades.ingest.sources.documents import MAX_FILE_BYTES
from hades.ingest.sources.files import MAX_TEXT_BYTES, SourceError, Unusable
from hades.ingest.sources.material import RejectReason
from schemas.sources import RemoteSource


class SyncError(SourceError):
    """A source that could not be synced; what was read of it before stays."""


@dataclass(frozen=True)
class RemoteDocument:
    """One document as its source lists it."""

    id: str
    name: str  # a path whose suffix says the format
    version: str = ""  # differs when the content does; "" where only reading tells
    address: str = ""  # where a person opens it
    modified: datetime | None = None
    size: int | None = None
    content: bytes | None = None  # where the listing brings it along
    readers: tuple[str, ...] | None = None  # where the source states them with the document


@dataclass(frozen=True)
class Reading:
    """What reading one document gave: its content, that it is as it was (no content), that it is
    gone, or why it cannot be used.
    """

    document: RemoteDocument
    content: bytes | None = None
    is_gone: bool = False
    problem: Unusable | None = None


@dataclass(frozen=True)
class Place:
    """What a connector is opened with. `address` has its placeholders filled: it is never shown."""

    address: str
    source: RemoteSource
    sleep: Callable[[float], None]
    now: Callable[[], datetime]

    @property
    def parts(self) -> SplitResult:
        """The address in its parts."""
        return urlsplit(self.address)


class Connector(Protocol):
    """One open source. `columns` are the fields of its rows; empty where documents have none."""

    columns: tuple[str, ...]

    def list_documents(self) -> Iterator[RemoteDocument]:
        """Everything there is; raises rather than listing a part."""

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """Read these; `versions` are those of the copies that are there, by id."""

    def close(self) -> None:
        """Give back connections."""


class Kind(NamedTuple):
    """A kind of remote source as its file declares it."""

    name: str
    about: str
    options: tuple[str, ...]  # fields of `RemoteSource` that only some kinds read
    open: Callable[[Place], Connector]


def load_library(
    module: str,
    extra: str,
    purpose: str,
) -> ModuleType:
    """A library that comes with an extra."""
    try:
        return import_module(module)
    except ImportError as error:
        package = (error.name or module).partition(".")[0]
        raise SettingsError(
            f"{purpose} needs the package {package}, which is not installed; run `pip install "
            f"'hades-graphrag[{extra}]'`"
        ) from None


def size_limit(name: str) -> int:
    """The most bytes that a document of this name may have."""
    file_format = FORMATS.get(PurePosixPath(name).suffix.lower())
    if file_format is None or file_format.is_text:
        return MAX_TEXT_BYTES

    return MAX_FILE_BYTES


def too_large(name: str, size: int) -> Unusable:
    """The reason why a document of this size is set aside."""
    return Unusable(
        RejectReason.OVERSIZED,
        f"{size:,} bytes, the limit is {size_limit(name):,}",
        size,
    )


def moment_of(value: object) -> datetime | None:
    """A time as sources write it: a date, seconds, ISO text or the form of mail; None for any
    other.
    """
    try:
        if isinstance(value, int | float):
            return as_utc(datetime.fromtimestamp(value).astimezone())
        if isinstance(value, str) and "," in value:
            return as_utc(parsedate_to_datetime(value))
        return as_utc(value)
    except (ValueError, OverflowError, OSError):
        return None
