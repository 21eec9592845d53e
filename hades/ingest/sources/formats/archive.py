"""Zip containers of office files and books: opened only when what they unpack to is bounded."""

from __future__ import annotations

import zipfile
from io import BytesIO

from hades.ingest.sources.formats.extracted import FormatProblem

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
