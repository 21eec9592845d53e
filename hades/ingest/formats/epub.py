"""EPUB books, and zip containers, which are opened only when what they unpack to is bounded."""

from __future__ import annotations

import posixpath
import re
import zipfile
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from hades.ingest.formats.html import html_to_text
from hades.ingest.formats.registry import (
    ExtractedDocument,
    FormatProblem,
    PartList,
    as_utc,
    decode_as,
)

MAX_UNPACKED_BYTES = 256 << 20
MAX_MEMBERS = 20_000
_COMPOUND_FILE = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # OLE2: encrypted office files and those from before 2007
)


def open_archive(content: bytes) -> zipfile.ZipFile:
    """The container, after a check of its table of contents; sizes there are upper limits for what
    is read.
    """
    if content.startswith(_COMPOUND_FILE):
        raise FormatProblem(
            "unreadable",
            "encrypted with a password, or in the format before Office 2007; save it unprotected "
            "and new",
        )

    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except zipfile.BadZipFile as error:
        raise FormatProblem(
            "malformed",
            f"not the zip container that this format needs: {error}",
        ) from error

    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise FormatProblem(
            "oversized",
            f"{len(members)} files inside, the limit is {MAX_MEMBERS}",
        )

    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise FormatProblem(
            "oversized",
            f"unpacks to {unpacked} bytes, the limit is {MAX_UNPACKED_BYTES}",
        )

    if any(member.flag_bits & 1 for member in members):
        raise FormatProblem("unreadable", "encrypted with a password; save it without one")

    return archive


def check_archive(content: bytes) -> BytesIO:
    """The same bytes as a file, for a library that opens the container itself."""
    open_archive(content).close()
    return BytesIO(content)


_PAGE_TYPES = ("application/xhtml+xml", "text/html")
_DECLARED = re.compile(rb"encoding=[\"']([-\w.]{1,40})[\"']")


def read_book(content: bytes) -> list[ExtractedDocument]:
    """The chapters that the spine names, in order, under their headings; a chapter without one is
    counted.
    """
    with open_archive(content) as archive:
        package_path = _package_path(archive)
        package = _parse(_member(archive, package_path), package_path)
        parts = PartList()

        for number, path in enumerate(
            _spine(package, posixpath.dirname(package_path)),
            start=1,
        ):
            content = _member(archive, path)
            declared = _DECLARED.search(content[:200])
            text, outlined = html_to_text(
                decode_as(content, declared.group(1).decode() if declared else None)
            )
            parts.add_regions(
                text,
                outlined.regions,
                (outlined.title or f"chapter {number}",),
            )

        title, date = (next(iter(_find(package, name, "text()")), "") for name in ("title", "date"))
        return [parts.document(title, as_utc(date))]


def _package_path(archive: zipfile.ZipFile) -> str:
    if any(name.endswith("META-INF/encryption.xml") for name in archive.namelist()):
        rights = _member(archive, "META-INF/encryption.xml")
        if b"xmlenc" in rights and b"obfuscation" not in rights and b"RC" not in rights:
            raise FormatProblem(
                "unreadable",
                "encrypted by rights management; only books without it can be read",
            )

    container = _parse(_member(archive, "META-INF/container.xml"), "META-INF/container.xml")
    paths = _find(container, "rootfile", "@full-path")
    if not any(paths):
        raise FormatProblem("malformed", "META-INF/container.xml names no package file")

    return str(next(filter(None, paths)))


def _spine(package: Any, folder: str) -> list[str]:
    pages: dict[str, str] = {}
    for entry in _find(package, "item", "."):
        if entry.get("media-type") in _PAGE_TYPES:
            path = posixpath.join(folder, unquote(entry.get("href") or ""))
            pages[entry.get("id")] = posixpath.normpath(path)

    return [pages[page_id] for page_id in _find(package, "itemref", "@idref") if page_id in pages]


def _find(root: Any, name: str, path: str) -> list[Any]:
    """What elements of a name hold, whatever their namespace."""
    values: list[Any] = root.xpath(f"//*[local-name()='{name}']/{path}")
    return values


def _member(archive: zipfile.ZipFile, path: str) -> bytes:
    try:
        return archive.read(path)
    except KeyError as error:
        raise FormatProblem(
            "malformed", f"the book names {path}, which it does not hold"
        ) from error


def _parse(content: bytes, path: str) -> Any:
    from lxml import etree

    try:
        return etree.fromstring(
            content,
            etree.XMLParser(resolve_entities=False, no_network=True),
        )
    except etree.XMLSyntaxError as error:
        raise FormatProblem("malformed", f"{path}: {error}") from error
