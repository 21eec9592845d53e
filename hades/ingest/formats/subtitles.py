"""Subtitles and transcripts (.vtt, .srt): what was said, in parts of about a minute that name their
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hades.ingest.formats.registry import ExtractedDocument, FormatProblem, PartList

_TIME = r"((?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3})"
# Both formats have the same cue: a timing line, then text up to a blank line.
_CUE = re.compile(
    rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}.*\n?((?:(?![ \t]*$|.*-->).+\n?)*)",
    re.MULTILINE,
)
_VOICE = re.compile(r"<v(?:\.[^ >]*)?[ \t]+([^<>]{1,80})>")
_TAG = re.compile(r"<[^<>\n]{0,200}>|\{\\[^{}\n]{0,100}\}")
_PART_SECONDS = 60.0
Cue = tuple[float, float, str]  # when a line stands on the screen, and the line


def read_subtitles(text: str) -> list[ExtractedDocument]:
    """Cues joined to running text; a line that repeats the one before is written once."""
    cues = list(_cues(text))
    if not cues:
        raise FormatProblem(
            "malformed",
            "no cue line such as `00:00:01.000 --> 00:00:04.000`",
        )

    parts = PartList()
    lines: list[str] = []
    start = cues[0][0]

    for begin, _, line in cues:
        if lines and begin - start >= _PART_SECONDS:
            parts.add((f"{_clock(start)}-{_clock(begin)}",), "\n".join(lines))
            lines = []

        if not lines:
            start = begin
        if line and (not lines or lines[-1] != line):
            lines.append(line)

    parts.add((f"{_clock(start)}-{_clock(cues[-1][1])}",), "\n".join(lines))
    return [parts.document()]


def _cues(text: str) -> Iterator[Cue]:
    for begin, end, markup in _CUE.findall("\n".join(text.splitlines())):
        words = _TAG.sub("", _VOICE.sub(r"\1: ", " ".join(markup.split())))
        yield _seconds(begin), _seconds(end), " ".join(words.split())


def _seconds(time: str) -> float:
    seconds = 0.0
    for part in time.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)

    return seconds


def _clock(seconds: float) -> str:
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{remainder:02d}"
