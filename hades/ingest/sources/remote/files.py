"""Files of anything that fsspec opens: folders, buckets, SFTP, web listings, zips, repositories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from hades.errors import SettingsError
from hades.ingest.sources.confined import in_order
from hades.ingest.sources.remote.connector import (
    Kind,
    Place,
    Reading,
    RemoteDocument,
    load_library,
    moment_of,
    size_limit,
    too_large,
)

LISTING = "listing+"  # before http: a page of links instead of a web site
_WORKERS = 8
# Of these a folder is a prefix, and all objects come in one listing.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
_HASHES = ("ETag", "etag", "md5Hash", "content_md5", "sha", "sha1", "hex", "CRC")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "date_time", "created")
_PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "git": "pygit2",
    "http": "aiohttp",
    "https": "aiohttp",
}


class FilesConnector:
    """The files below an address, as fsspec lists and reads them."""

    columns: tuple[str, ...] = ()

    def __init__(self, place: Place) -> None:
        core = load_library(
            "fsspec.core",
            "fsspec",
            "a source of files",
        )
        address = place.address.removeprefix(LISTING)
        scheme = address.partition("://")[0]

        try:
            # One that fsspec has kept would go on with the endpoint and the keys of that time.
            self._fs, self._root = core.url_to_fs(address, skip_instance_cache=True)
        except ImportError:
            package = _PACKAGES.get(scheme, scheme)
            raise SettingsError(
                f"{scheme}:// needs the package {package} beside fsspec; run `pip install "
                f"'hades-graphrag[fsspec]' {package}`"
            ) from None
        except ValueError as error:
            raise SettingsError(f"fsspec opens no such address: {error}") from None

        # What a person opens: the address itself, without what logs in.
        host = place.source.url.removeprefix(LISTING).partition("://")[2].rpartition("@")[2]
        self._base = f"{scheme}://{host}".rstrip("/")

    def list_documents(self) -> Iterator[RemoteDocument]:
        """Every file; a folder that cannot be listed is an error, not an empty folder."""
        self._fs.invalidate_cache()
        for path, info in sorted(self._list_files()):
            name = path.removeprefix(self._root).lstrip("/")
            address = f"{self._base}/{name}" if name else self._base
            modified = next((info[field] for field in _TIMES if info.get(field)), None)
            yield RemoteDocument(
                id=path,
                name=name or PurePosixPath(path).name,
                version=_version_of(info),
                address=address,
                modified=moment_of(modified),
                size=info.get("size"),
            )

    def _list_files(self) -> Iterator[tuple[str, dict[str, Any]]]:
        protocol = self._fs.protocol
        if isinstance(protocol, str):
            protocols = {protocol}
        else:
            protocols = set(protocol)

        if self._fs.isfile(self._root):
            yield self._root, self._fs.info(self._root)
        elif protocols & _FLAT:
            yield from self._fs.find(self._root, detail=True).items()
        else:
            for _, folders, files in self._fs.walk(
                self._root,
                detail=True,
                on_error="raise",
            ):
                for name in [name for name, info in folders.items() if info.get("islink")]:
                    del folders[name]

                for info in files.values():
                    if not info.get("islink"):
                        yield info["name"], info

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        _versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """Contents in order, some at a time."""
        yield from in_order(
            partial(_read_file, self._fs),
            documents,
            _WORKERS,
        )

    def close(self) -> None:
        """Connections belong to fsspec."""


def _read_file(fs: Any, document: RemoteDocument) -> Reading:
    limit = size_limit(document.name)
    if document.size is not None and document.size > limit:
        return Reading(
            document,
            problem=too_large(document.name, document.size),
        )

    try:
        if document.size is None:
            with fs.open(document.id, "rb") as file:
                content = file.read(limit + 1)
        else:
            content = fs.cat_file(document.id)
    except FileNotFoundError:
        return Reading(document, is_gone=True)

    if len(content) > limit:
        return Reading(
            document,
            problem=too_large(document.name, len(content)),
        )

    return Reading(document, content)


def _version_of(info: Mapping[str, Any]) -> str:
    """What differs when the file does, as far as its listing tells."""
    strong = next((info[field] for field in _HASHES if info.get(field)), None)
    weak = next((info[field] for field in _TIMES if info.get(field)), None)

    if strong is None and weak is None:
        return ""

    return f"{weak if strong is None else strong} {info.get('size')}"


KIND = Kind(
    "files",
    "a folder, bucket, SFTP server, web listing, zip or repository, by fsspec",
    ("include", "exclude"),
    FilesConnector,
)
