"""Stack traces as they are pasted into questions: their frames in the order of the calls, and the error at their end.

Python (plain, IPython, pytest), JavaScript, Java, Go, Rust, Ruby and C# are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """One call of a stack trace. `line` is 0 and `function` empty where the trace does not say."""

    path: str
    line: int = 0
    function: str = ""


def read_frames(text: str) -> Iterator[Frame]:
    """The frames of all traces in a text, outermost call first, whatever order the language prints them in."""
    reverse: list[Frame] = []  # languages that print the innermost call first
    for line in text.split("\n"):
        for pattern in _OUTERMOST_FIRST:
            match = pattern.match(line)
            if match is not None:
                yield from reversed(reverse)
                reverse.clear()
                yield _frame(match)
                break
        else:
            for pattern in _INNERMOST_FIRST:
                match = pattern.match(line)
                if match is not None:
                    reverse.append(_frame(match))
                    break
    yield from reversed(reverse)


def read_errors(text: str) -> Iterator[str]:
    """Lines that state an error, as `Type: message`, `panic: message` or `error[E1]: message`."""
    for match in _ERROR.finditer(text):
        yield match.group(0).strip().strip("*`")


def is_trace_line(lines: Sequence[str], place: int) -> bool:
    """Whether a line belongs to a stack trace: a frame, its head, its source line, or the error that ends it."""
    line = lines[place]
    if _HEAD.match(line) or any(pattern.match(line) for pattern in _EVERY):
        return True
    if _ARROW.match(line):
        return True
    before = lines[place - 1] if place else ""
    if line[:1] in " \t" and _PYTHON.match(before):
        return True
    return bool(_ERROR.match(line)) and any(
        _HEAD.match(near) or any(pattern.match(near) for pattern in _EVERY) or _ARROW.match(near)
        for near in lines[max(0, place - 12) : place]
    )


_PYTHON = re.compile(r"^[\s>|E]*File \"(?P<path>[^\"]+)\", line (?P<line>\d+)(?:, in (?P<function>[\w<>.]+))?")
_IPYTHON = re.compile(
    r"^\s*(?:File\s+)?(?P<path>(?:[A-Za-z]:|~|/|\.)[^\s:]*\.pyx?)(?::(?P<line>\d+))?,? in "
    r"(?P<function>[\w<>.]+)\s*\("
)
_PYTEST = re.compile(
    r"^(?P<path>[\w./\\-]+\.py):(?P<line>\d+): (?:in (?P<function>[\w<>]+)|[A-Z]\w*(?:Error|Exception)?\s*$)?"
)
_JAVASCRIPT = re.compile(
    r"^\s+at (?:async )?(?:(?P<function>[\w.$<>\[\] ]+?) )?\(?"
    r"(?P<path>(?:[\w@./\\:-]+)\.(?:js|ts|jsx|tsx|mjs|cjs)):(?P<line>\d+):\d+\)?"
)
_JAVA = re.compile(r"^\s+at (?P<function>[\w.$<>]+)\((?P<path>\w+\.(?:java|kt|scala)):(?P<line>\d+)\)")
_CSHARP = re.compile(r"^\s+at (?P<function>[\w.`<>\[\]]+)\(.*\) in (?P<path>\S+\.cs):line (?P<line>\d+)")
_GO = re.compile(r"^\s+(?P<path>[\w./@-]+\.go):(?P<line>\d+)(?P<function>)(?: \+0x[0-9a-f]+)?")
_RUST = re.compile(r"^\s+(?:at|-->)\s*(?P<path>[\w./-]+\.rs):(?P<line>\d+)(?P<function>)")
_RUBY = re.compile(r"^\s*(?:from )?(?P<path>[\w./-]+\.rb):(?P<line>\d+):in [`'](?P<function>[^']+)'")
_OUTERMOST_FIRST = (_PYTHON, _IPYTHON, _PYTEST)
_INNERMOST_FIRST = (_JAVASCRIPT, _JAVA, _CSHARP, _GO, _RUST, _RUBY)
_EVERY = (*_OUTERMOST_FIRST, *_INNERMOST_FIRST)
_HEAD = re.compile(
    r"^\s*(?:Traceback \(most recent call last\)|\w+\s+Traceback \(most recent call last\)|goroutine \d+|"
    r"stack backtrace:|Exception in thread|thread '.*' panicked at|-{20,}\s*$)"
)
_ARROW = re.compile(r"^(?:-+>\s*\d+\s|\s+\d+\s|\s*\^+\s*$|E {2,}\S|>\s{3,}\S)")
_ERROR = re.compile(
    r"(?:^|(?<=[\s*`>]))(?:[A-Za-z_][\w.]*\.)?(?:[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Fault)|panic|fatal|error\[\w+\])\b\s?:\s?[^\n]{3,400}",
    re.M,
)


def _frame(match: re.Match[str]) -> Frame:
    path = match["path"].replace("\\", "/")
    return Frame(path, int(match["line"] or 0), match["function"] or "")
