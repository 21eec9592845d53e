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


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain words in a row", "utf-16-le"),  # without a mark
        (
            "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20,
            "cp1251",
        ),  # not declared
        ("a\r\nb\rc\n", "ascii"),  # line ends stay as they are
    ],
)
def test_what_nothing_declares_is_seen(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_declared_codecs_that_do_more_than_decode_are_not_used() -> None:
    assert "rot13" in decode(b"# coding: rot13\n\xff\xfe\xfd words and words")


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


def test_what_is_no_regular_file_is_refused_without_opening(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to("/dev/zero")
    for path, word in (
        (tmp_path / "pipe.txt", "FIFO"),
        (tmp_path / "link.txt", "symbolic link"),
        (Path("/dev/zero"), "device"),
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(Unusable, match=word) as caught:
            read_bytes(str(path), 10)
        assert caught.value.reason is RejectReason.UNREADABLE


def test_long_lines_are_refused() -> None:
    require_short_lines("x" * MAX_LINE_CHARS)
    require_short_lines("x\n" * MAX_LINE_CHARS)
    with pytest.raises(Unusable) as caught:
        require_short_lines("short\n" + "x" * (MAX_LINE_CHARS + 1))
    assert caught.value.reason is RejectReason.OVERSIZED


def test_odd_names_are_shown_on_one_line() -> None:
    assert show("a\nb\x07\udcffé.md") == "a\\nb\\x07\\udcffé.md"
