"""What a question about code says: paths, names, stack traces (of Python, JavaScript, Java, Go,
Rust, Ruby and C#).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hades.text.word_lists import word_set


@dataclass(frozen=True)
class Frame:
    """One call of a stack trace. `line` is 0 and `function` empty where the trace does not say."""

    path: str
    line: int = 0
    function: str = ""


def read_frames(text: str) -> Iterator[Frame]:
    """The frames of all traces in a text, outermost call first, whatever order the language prints
    them in.
    """
    reverse: list[Frame] = []  # languages that print the innermost call first
    for line in text.split("\n"):
        if (match := _first_match(_OUTERMOST_FIRST, line)) is not None:
            yield from reversed(reverse)
            reverse.clear()
            yield match
        elif (match := _first_match(_INNERMOST_FIRST, line)) is not None:
            reverse.append(match)

    yield from reversed(reverse)


def _is_of_trace(line: str) -> bool:
    return any(pattern.match(line) for pattern in _OF_TRACE)


def is_trace_line(lines: Sequence[str], place: int) -> bool:
    """Whether a line belongs to a stack trace: a frame, its head, its source line, or the error
    that ends it.
    """
    line = lines[place]
    if _is_of_trace(line):
        return True
    if line[:1] in " \t" and _PYTHON.match(lines[place - 1] if place else ""):
        return True

    if _ERROR.match(line):
        near = lines[max(0, place - 12) : place]
    else:
        near = ()

    return any(map(_is_of_trace, near))


_PYTHON = re.compile(
    r"^[\s>|E]*File \"(?P<path>[^\"]+)\", line (?P<line>\d+)(?:, in (?P<function>[\w<>.]+))?"
)
_IPYTHON = re.compile(
    r"^\s*(?:File\s+)?(?P<path>(?:[A-Za-z]:|~|/|\.)[^\s:]*\.pyx?)(?::(?P<line>\d+))?,? in "
    r"(?P<function>[\w<>.]+)\s*\("
)
_PYTEST = re.compile(
    r"^(?P<path>[\w./\\-]+\.py):(?P<line>\d+): (?:in "
    r"(?P<function>[\w<>]+)|[A-Z]\w*(?:Error|Exception)?\s*$)?"
)
_JAVASCRIPT = re.compile(
    r"^\s+at (?:async )?(?:(?P<function>[\w.$<>\[\] ]+?) )?\(?"
    r"(?P<path>(?:[\w@./\\:-]+)\.(?:js|ts|jsx|tsx|mjs|cjs)):(?P<line>\d+):\d+\)?"
)
_JAVA = re.compile(
    r"^\s+at (?P<function>[\w.$<>]+)\((?P<path>\w+\.(?:java|kt|scala)):(?P<line>\d+)\)"
)
_CSHARP = re.compile(
    r"^\s+at (?P<function>[\w.`<>\[\]]+)\(.*\) in (?P<path>\S+\.cs):line (?P<line>\d+)"
)
_GO = re.compile(r"^\s+(?P<path>[\w./@-]+\.go):(?P<line>\d+)(?P<function>)(?: \+0x[0-9a-f]+)?")
_RUST = re.compile(r"^\s+(?:at|-->)\s*(?P<path>[\w./-]+\.rs):(?P<line>\d+)(?P<function>)")
_RUBY = re.compile(
    r"^\s*(?:from )?(?P<path>[\w./-]+\.rb):(?P<line>\d+):in [`'](?P<function>[^']+)'"
)
_OUTERMOST_FIRST = (_PYTHON, _IPYTHON, _PYTEST)
_INNERMOST_FIRST = (_JAVASCRIPT, _JAVA, _CSHARP, _GO, _RUST, _RUBY)
_HEAD = re.compile(
    r"^\s*(?:Traceback \(most recent call last\)|\w+\s+Traceback \(most recent call "
    r"last\)|goroutine \d+|"
    r"stack backtrace:|Exception in thread|thread '.*' panicked at|-{20,}\s*$)"
)
_ARROW = re.compile(r"^(?:-+>\s*\d+\s|\s+\d+\s|\s*\^+\s*$|E {2,}\S|>\s{3,}\S)")
_OF_TRACE = (_HEAD, *_OUTERMOST_FIRST, *_INNERMOST_FIRST, _ARROW)
# A line that states an error, as `Type: message`, `panic: message` or `error[E1]: message`.
_ERROR = re.compile(
    r"(?:^|(?<=[\s*`>]))(?:[A-Za-z_][\w.]*\.)?(?:[A-Z]\w*(?:Error|Exception|Warning|Exit"
    r"|Interrupt|Fault)|panic|fatal|error\[\w+\])\b\s?:\s?[^\n]{3,400}",
    re.M,
)


def _first_match(patterns: Iterable[re.Pattern[str]], line: str) -> Frame | None:
    """The frame that a line states in the first of the forms it fits."""
    match = next(filter(None, (pattern.match(line) for pattern in patterns)), None)
    if match is None:
        return None

    return Frame(
        match["path"].replace("\\", "/"),
        int(match["line"] or 0),
        match["function"] or "",
    )


# What a question about code says beside its words: paths, dotted names, stack traces, code, error
# messages, commands. An issue report is read whole. Its lines are sorted into title, prose, code,
# stack traces, commands and form text (version lists, check boxes, the code of conduct), because
# each is evidence of a different kind.


@dataclass(frozen=True)
class CodeQuestion:
    """A question about code, taken apart. Texts keep their spelling; tuples are in order, without
    repeats.

    `frames` keeps repeats: it is the order of the calls, the innermost frame last.
    """

    title: str
    prose: str
    code: str
    inline: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    dotted: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    errors: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def has_evidence(self) -> bool:
        """Whether the text says something that only code has: a path, a dotted name, a stack trace,
        an identifier.
        """
        return bool(
            self.paths
            or self.dotted
            or self.frames
            or self.code
            or any(map(is_identifier, self.inline))
        )


def read_code_question(text: str) -> CodeQuestion:
    """Take a question apart. A plain sentence gives a title and nothing else."""
    plain = _drop_comments(text[:_LONGEST_TEXT].replace("\r\n", "\n").replace("\r", "\n"))
    lines = [line[:_LONGEST_LINE] for line in plain.split("\n")]
    parts: dict[str, list[str]] = {
        "title": [],
        "prose": [],
        "code": [],
        "form": [],
        "command": [],
        "trace": [],
    }

    for kind, line in _sort_lines(lines):
        parts[kind].append(line)

    title = " ".join(parts["title"]).strip()
    prose, code, trace = ("\n".join(parts[kind]) for kind in ("prose", "code", "trace"))
    title_and_prose = f"{title}\n{prose}"
    without_commands = f"{title_and_prose}\n{code}\n{trace}"
    every_line = "\n".join([without_commands, *parts["command"]])

    dotted = []
    for name in _DOTTED.findall(_ANY_URL.sub(" ", every_line)):
        if not _NOT_DOTTED.search(name) and not name.isupper():
            dotted.append(name)

    errors = []
    for match in _ERROR.finditer(without_commands):
        errors.append(match[0].strip().strip("*`"))

    quotes = []
    for groups in _QUOTE.findall(title_and_prose):
        quotes.append("".join(filter(None, groups)).strip())

    return CodeQuestion(
        title=title,
        prose=prose,
        code=code,
        inline=_distinct(span.strip() for span in _INLINE.findall(title_and_prose)),
        paths=_distinct(_read_paths(every_line)),
        dotted=_distinct(dotted),
        frames=tuple(read_frames(trace)),
        errors=_distinct(errors),
        quotes=_distinct(quotes),
        commands=_distinct(command.strip().lstrip("$>").strip() for command in parts["command"]),
    )


def is_identifier(text: str) -> bool:
    """Whether a piece of text is written as code is: a_b, aB, a.b, a(), __a__."""
    return len(text) <= _LONGEST_NAME and bool(_IDENTIFIER_SHAPE.fullmatch(text.strip()))


_LONGEST_TEXT = 200_000  # a pasted log goes on for ever; what comes first matters most
_LONGEST_LINE = 2_000
_FENCE = re.compile(r"^\s*(?:```+|~~~+)\s*([\w+#.-]*)")
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<hash>.+?)\s*#*|\*\*(?P<bold>[^*]+)\*\*:?|(?P<plain>[A-Z][\w "
    r"]{2,40}):)\s*$"
)
_FORM_HEADING = re.compile(
    r"\b(?:search before asking|code of conduct|willing to|environment|versions?|system "
    r"info\w*|specifications?|"
    r"installed packages|pip (?:freeze|list)|checklist|screenshots?|operating system|platform|your "
    r"environment|"
    r"additional context|pre-?flight|debug info\w*|dialect|configuration|config|use "
    r"case|desktop|dependencies)\b",
    re.I,
)
_PLAIN_HEADING = re.compile(
    r"^(?:describe (?:the|your) \w+|(?:the )?(?:expected|observed|current|actual|desired) "
    r"(?:behaviou?r|result|output)|"
    r"description|what happened|(?:steps to|how to|to) reproduce.*|"
    r"describe .{0,60}(?:you'd like|you've considered|expected).*|"
    r"is your feature request related .*|steps|reproduction|summary|problem|bug report|feature "
    r"request)\W*$",
    re.I,
)
_CHECK_BOX = re.compile(r"[-*] ?\[[ xX]\]|_?no response_?$", re.I)
_VERSION_LINE = re.compile(
    r"(?:[-*] )?`?[^\d\s][^\d]{0,30}[:= ] ?v?\d+\.\d+\S*$"
)  # on a line without double blanks
_LONGEST_FORM_LINE = 200
_LONGEST_NAME = 200
_PROGRAMS = (
    r"pip3?|python3?|pytest|git|npm|yarn|npx|node|cargo|go|make|docker|bash|sh|conda|poetry"
    r"|tox|uv|java|mvn|gradle|curl"
)
_COMMAND = re.compile(rf"^\s*(?:(?:\$|>(?!>)|%|PS [^>]*>)\s*)?(?:sudo\s+)?(?:{_PROGRAMS})\s+\S")
_PROMPT = re.compile(r"^\s*\$\s+\S")
_SHELL = word_set("sh bash shell console zsh shell-session powershell bat")
_INLINE = re.compile(r"(?<!`)`{1,2}([^`\n]{1,200}?)`{1,2}(?!`)")
_ENDINGS = (
    r"py|pyi|pyx|js|jsx|ts|tsx|mjs|cjs|java|kt|scala|go|rs|c|h|cc|cpp|hpp|cxx|cs|rb|php|swift|m"
    r"|lua|pl|r|jl|sql|sh|"
    r"toml|ya?ml|json|ini|cfg|md|rst|txt|html|css|vue|gradle|proto|ipynb"
)
_PATH = re.compile(
    r"(?<![\w@./\\+~-])(?:[A-Za-z]:)?[~./\\]{0,8}(?:[\w.@+-]{1,100}[/\\]){0,20}"
    rf"[\w@+-][\w.@+-]{{0,100}}\.(?:{_ENDINGS})\b(?![\w(])",
    re.I,
)
_SOURCE_URL = re.compile(
    r"https?://[^\s/]+/[^\s/]+/[^\s/]+/(?:-/)?(?:blob|tree|blame|raw|src)/[^\s/]+/([^\s#?)\]]+)"
)
_ANY_URL = re.compile(r"https?://[^\s)\]>]+")
_DOTTED = re.compile(r"(?<![\w./\\-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/\\])")
_NOT_DOTTED = re.compile(
    rf"(?:^(?:e\.g|i\.e|etc)\b)|\.(?:{_ENDINGS}|com|org|io|net)$",
    re.I,
)
_QUOTE = re.compile(
    r"\"([^\"\n]{8,300})\"|“([^”\n]{8,300})”|(?<![\w`])'([^'\n]{8,300})'(?!\w)"
    r"|\*\*([^*\n]{12,300})\*\*"
)
_IDENTIFIER_SHAPE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*\))?|\w*[A-Za-z]\w*_\w*|_+\w+|[a-z]+[A-Z]\w*"
    r"|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z_][\w.]*\(.*\)"
)


def _drop_comments(text: str) -> str:
    """The text without `<!-- ... -->`; a comment that never ends stays."""
    pieces = []
    place = 0

    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[place:start])
        place = end + 3

    return "".join((*pieces, text[place:]))


def _sort_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each line with the part that it belongs to."""
    fence = ""
    is_form = False
    has_title = False

    for place, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark is not None and line.count("```") < 2:
            fence = "" if fence else (mark.group(1).lower() or "any")
            continue

        if not has_title and line.strip() and not fence:
            has_title = True
            yield "title", line.lstrip("# ")
            continue

        if fence:
            yield ("form" if is_form else _kind_in_block(lines, place, fence)), line
            continue

        heading = _HEADING.match(line)
        if heading is not None:
            words = next(filter(None, heading.groups()), "")
            is_form = bool(_FORM_HEADING.search(words))
            if is_form or heading.group("plain") is None:
                yield ("form" if is_form or _PLAIN_HEADING.match(words) else "prose"), line
                continue

        yield _kind_outside(lines, place, is_form), line


def _kind_in_block(
    lines: list[str],
    place: int,
    fence: str,
) -> str:
    line = lines[place]
    if is_trace_line(lines, place):
        return "trace"
    if _PROMPT.match(line) or ((fence in _SHELL or fence == "any") and _COMMAND.match(line)):
        return "command"
    if _is_form_line(line) and fence != "python":
        return "form"

    return "code"


def _kind_outside(
    lines: list[str],
    place: int,
    is_form: bool,
) -> str:
    line = lines[place]
    if is_trace_line(lines, place):
        return "trace"
    if is_form or _is_form_line(line):
        return "form"
    if _PROMPT.match(line):
        return "command"

    if line.lstrip().startswith(">>>") or (
        line.startswith(("    ", "\t")) and place and not lines[place - 1].strip()[-1:].isalnum()
    ):
        return "code"

    return "prose"


def _is_form_line(line: str) -> bool:
    if len(line) < _LONGEST_FORM_LINE:
        plain = " ".join(line.split())
    else:
        plain = ""

    return bool(_CHECK_BOX.match(plain) or _VERSION_LINE.match(plain))


def _read_paths(text: str) -> Iterator[str]:
    for match in _SOURCE_URL.finditer(text):
        yield match.group(1).strip("/")

    for match in _PATH.finditer(_ANY_URL.sub(" ", text)):
        yield match.group(0).replace("\\", "/").removeprefix("./")


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
