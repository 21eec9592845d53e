""".epub and zip containers."""

from __future__ import annotations

import posixpath
import re
import zipfile
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from hades.ingest.formats.html import html_to_text
from hades.ingest.formats.registry import ExtractedDocument, FormatProblem, PartList, as_utc, decode_as

# Zip containers of office files and books: opened only when what they unpack to is bounded.


MAX_UNPACKED_BYTES = 256 << 20
MAX_MEMBERS = 20_000
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # OLE2: encrypted office files and those from before 2007


def open_archive(data: bytes) -> zipfile.ZipFile:
    """The container, after a check of its table of contents; sizes there are upper limits for what is read."""
    if data.startswith(_COMPOUND_FILE):
        raise FormatProblem(
            "unreadable", "encrypted with a password, or in the format before Office 2007; save it unprotected and new"
        )
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except zipfile.BadZipFile as error:
        raise FormatProblem("malformed", f"not the zip container that this format needs: {error}") from error
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise FormatProblem("oversized", f"{len(members)} files inside, the limit is {MAX_MEMBERS}")
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise FormatProblem("oversized", f"unpacks to {unpacked} bytes, the limit is {MAX_UNPACKED_BYTES}")
    if any(member.flag_bits & 1 for member in members):
        raise FormatProblem("unreadable", "encrypted with a password; save it without one")
    return archive


def check_archive(data: bytes) -> BytesIO:
    """The same bytes as a file, for a library that opens the container itself."""
    open_archive(data).close()
    return BytesIO(data)


# EPUB books: the chapters that the spine names, in order, each as the text of its page.


_PAGE_TYPES = ("application/xhtml+xml", "text/html")
_DECLARED = re.compile(rb"encoding=[\"']([-\w.]{1,40})[\"']")


def read_book(data: bytes) -> list[ExtractedDocument]:
    """Chapters under their headings; a chapter without one is counted."""
    with open_archive(data) as archive:
        package_path = _package_path(archive)
        package = _parse(_member(archive, package_path), package_path)
        parts = PartList()
        for number, path in enumerate(_spine(package, posixpath.dirname(package_path)), start=1):
            text, outlined = html_to_text(_decode(_member(archive, path)))
            for region in outlined.regions:
                headings = region.headings or ((outlined.title,) if outlined.title else (f"chapter {number}",))
                parts.add(headings, text[region.start : region.end])
        title = _first_text(package, "title")
        return [parts.document(title, as_utc(_first_text(package, "date")))]


def _package_path(archive: zipfile.ZipFile) -> str:
    if any(name.endswith("META-INF/encryption.xml") for name in archive.namelist()):
        rights = _member(archive, "META-INF/encryption.xml")
        if b"xmlenc" in rights and b"obfuscation" not in rights and b"RC" not in rights:
            raise FormatProblem("unreadable", "encrypted by rights management; only books without it can be read")
    container = _parse(_member(archive, "META-INF/container.xml"), "META-INF/container.xml")
    for element in container.iter():
        if _local(element) == "rootfile" and element.get("full-path"):
            return str(element.get("full-path"))
    raise FormatProblem("malformed", "META-INF/container.xml names no package file")


def _spine(package: Any, folder: str) -> list[str]:
    pages = {
        element.get("id"): posixpath.normpath(posixpath.join(folder, unquote(element.get("href") or "")))
        for element in package.iter()
        if _local(element) == "item" and element.get("media-type") in _PAGE_TYPES
    }
    order = [element.get("idref") for element in package.iter() if _local(element) == "itemref"]
    return [pages[one] for one in order if one in pages]


def _member(archive: zipfile.ZipFile, path: str) -> bytes:
    try:
        return archive.read(path)
    except KeyError as error:
        raise FormatProblem("malformed", f"the book names {path}, which it does not hold") from error


def _parse(data: bytes, path: str) -> Any:
    from lxml import etree

    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise FormatProblem("malformed", f"{path}: {error}") from error


def _first_text(package: Any, name: str) -> str:
    return next((element.text or "" for element in package.iter() if _local(element) == name), "")


def _local(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _decode(data: bytes) -> str:
    found = _DECLARED.search(data[:200])
    return decode_as(data, found.group(1).decode() if found else None)
