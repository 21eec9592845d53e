"""Files are read as exact text whatever their encoding, and refused by name when they are none."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from hades.ingest.sources.files import (
    MAX_LINE_CHARS,
    Unusable,
    decode,
    read_bytes,
    read_text,
    require_short_lines,
    show,
)
from hades.ingest.sources.material import RejectReason


@pytest.mark.parametrize(
    "data",
    [
        "naïve".encode(),
        codecs.BOM_UTF8 + "naïve".encode(),
        "naïve".encode("utf-16"),
        codecs.BOM_UTF16_BE + "naïve".encode("utf-16-be"),
        codecs.BOM_UTF32_LE + "naïve".encode("utf-32-le"),
        "# -*- coding: latin-1 -*-\nnaïve".encode("latin-1"),
    ],
)
def test_common_encodings_give_the_same_text(data: bytes) -> None:
    assert decode(data).endswith("naïve")
    assert "\ufeff" not in decode(data)


def test_utf16_without_a_mark_is_seen() -> None:
    assert decode("plain words in a row".encode("utf-16-le")) == "plain words in a row"


def test_undeclared_cyrillic_is_detected() -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
    assert decode(text.encode("cp1251")) == text


def test_declared_codecs_that_do_more_than_decode_are_not_used() -> None:
    assert "rot13" in decode(b"# coding: rot13\n\xff\xfe\xfd words and words")


def test_line_ends_stay_as_they_are() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\r\nb\rc\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text with a NUL \0 inside", RejectReason.NOT_TEXT),
        (bytes(range(1, 32)) * 40, RejectReason.NOT_TEXT),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", RejectReason.NOT_TEXT),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", RejectReason.UNREADABLE),
    ],
)
def test_what_is_no_text_is_refused_with_a_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(Unusable) as caught:
        decode(data)
    assert caught.value.reason is reason
    assert caught.value.size > 0


def test_size_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would never end
    with pytest.raises(Unusable, match="limit") as caught:
        read_text(str(path))
    assert caught.value.reason is RejectReason.OVERSIZED


def test_fifo_is_refused_without_opening(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(Unusable, match="FIFO"):
        read_bytes(str(tmp_path / "pipe.txt"), 10)


def test_device_link_and_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to("/dev/zero")
    for path, word in (
        (str(tmp_path / "link.txt"), "symbolic link"),
        ("/dev/zero", "device"),
        (str(tmp_path), "directory"),
    ):
        with pytest.raises(Unusable, match=word):
            read_bytes(path, 10)


def test_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unusable) as caught:
        read_bytes(str(tmp_path / "none"), 10)
    assert caught.value.reason is RejectReason.UNREADABLE


def test_long_lines_are_refused() -> None:
    require_short_lines("x" * MAX_LINE_CHARS)
    require_short_lines("x\n" * MAX_LINE_CHARS)
    with pytest.raises(Unusable) as caught:
        require_short_lines("short\n" + "x" * (MAX_LINE_CHARS + 1))
    assert caught.value.reason is RejectReason.OVERSIZED


def test_odd_names_are_shown_on_one_line() -> None:
    assert show("a\nb\x07\udcffé.md") == "a\\nb\\x07\\udcffé.md"
