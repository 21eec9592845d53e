"""EPUB books: the chapters that the spine names, in order, each as the text of its page."""

from __future__ import annotations

import posixpath
import re
import zipfile
from typing import Any
from urllib.parse import unquote

from hades.ingest.sources.formats.archive import open_archive
from hades.ingest.sources.formats.extracted import ExtractedDocument, FormatProblem, PartList, as_utc
from hades.ingest.sources.html_text import html_to_text

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
    try:
        return data.decode(found.group(1).decode() if found else "utf-8", "replace")
    except LookupError:
        return data.decode("utf-8", "replace")
