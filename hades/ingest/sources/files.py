"""Safe reading: regular files only, bounded size, text in any common encoding; the rest is named
and set aside.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec, RegexPattern

from hades.errors import HadesError
from hades.ingest.sources.material import RejectedInput, RejectReason
from schemas.sources import SourceKind

MAX_TEXT_BYTES = 8 << 20
# Longer lines are data or minified code: nobody reads them, and parsers choke on them.
MAX_LINE_CHARS = 100_000
_SAMPLE_BYTES = 16 << 10
_CONTROL_SHARE = 0.02  # text holds next to no control characters; compressed data about one in ten
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b") + b"\x7f"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# PEP 263 and HTML's meta element.
_DECLARED = re.compile(rb"(?:coding|charset)[:=]\s*[\"']?([-\w.]{1,40})")
_PLAIN_CODEC = re.compile(
    r"utf-?8|ascii|latin|iso-?8859|cp\d|windows|koi8|gb|big5|shift|euc|mac",
    re.IGNORECASE,
)
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}
_KINDS |= {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class SourceError(HadesError):
    """The corpus itself is missing or is not what the source reads."""


class Unusable(HadesError):
    """One input that cannot be used; the source turns it into `Rejected` and goes on."""

    def __init__(
        self,
        reason: RejectReason,
        detail: str,
        size: int = 0,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.size = reason, detail, size

    def rejected(self, source: SourceKind, uri: str) -> RejectedInput:
        """The input that this is said of, as it is set aside."""
        return RejectedInput(
            source,
            uri,
            self.reason,
            self.detail,
            self.size,
        )


def read_text(path: str, limit: int = MAX_TEXT_BYTES) -> str:
    """The exact text of a regular file, without its byte order mark."""
    return decode(read_bytes(path, limit))


def read_bytes(path: str, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.

    The kind is checked before opening, because opening a FIFO or a device can block or act, and
    again after, because the file may have been exchanged in between.
    """
    try:
        _require_regular(os.lstat(path), limit)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            _require_regular(status, limit)
            content = file.read(limit + 1)
    except OSError as error:
        raise Unusable(RejectReason.UNREADABLE, error.strerror or type(error).__name__) from error

    if len(content) > limit:
        raise Unusable(
            RejectReason.OVERSIZED,
            f"grew beyond the limit of {limit} bytes while read",
            len(content),
        )

    return content


def decode(content: bytes) -> str:
    """Bytes as text: by byte order mark, as UTF-8, as declared, as detected; binary data is
    refused.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return _decode_marked(content[len(mark) :], encoding)

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_unmarked(content)

    if "\0" in text:
        return _decode_utf16(content)

    _require_few_controls(content)
    return text


def require_short_lines(text: str) -> None:
    """Refuses text with a line beyond `MAX_LINE_CHARS`."""
    if len(text) <= MAX_LINE_CHARS:
        return

    longest = max(map(len, text.splitlines()), default=0)
    if longest > MAX_LINE_CHARS:
        detail = f"a line of {longest} characters, the limit is {MAX_LINE_CHARS}"
        raise Unusable(RejectReason.OVERSIZED, detail, len(text))


def show(path: str) -> str:
    """A path as one printable line of valid Unicode, for reports."""
    return _UNPRINTABLE.sub(lambda match: repr(match.group())[1:-1], path)


def _require_regular(status: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
        raise Unusable(RejectReason.UNREADABLE, f"{kind}, not a regular file")

    if status.st_size > limit:
        detail = f"{status.st_size} bytes, the limit is {limit}"
        raise Unusable(
            RejectReason.OVERSIZED,
            detail,
            status.st_size,
        )


def _decode_marked(content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            return decode(content)

        detail = f"marked as {encoding}, but byte {error.start} does not fit"
        raise Unusable(
            RejectReason.UNREADABLE,
            detail,
            len(content),
        ) from error

    if "\0" in text:
        raise Unusable(
            RejectReason.NOT_TEXT,
            "holds NUL characters",
            len(content),
        )
    return text


def _decode_unmarked(content: bytes) -> str:
    """Text that is not UTF-8: UTF-16 without a mark, else as declared, as detected, as Windows-1252
    or Latin-1.
    """
    if b"\0" in content:
        return _decode_utf16(content)

    _require_few_controls(content)
    declared = _DECLARED.search(content[:1024])
    if declared:
        name = declared.group(1).decode("ascii", "ignore")
    else:
        name = ""

    for encoding in (
        *([name] if _PLAIN_CODEC.match(name) else []),
        *_detect_encodings(content),
        "cp1252",
    ):
        try:
            return content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue

    return content.decode("latin-1")


def _decode_utf16(content: bytes) -> str:
    """UTF-16 shows as NUL in every other byte of Western text; any other NUL means binary data."""
    sample = content[: _SAMPLE_BYTES & ~1]
    for encoding, zeros, letters in (
        ("utf-16-le", sample[1::2], sample[::2]),
        ("utf-16-be", sample[::2], sample[1::2]),
    ):
        if zeros.count(0) > 0.7 * len(zeros) and letters.count(0) == 0:
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                break

            if "\0" not in text:
                return text

    raise Unusable(
        RejectReason.NOT_TEXT,
        "holds NUL bytes",
        len(content),
    )


def _require_few_controls(content: bytes) -> None:
    sample = content[: 4 * _SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > max(2, _CONTROL_SHARE * len(sample)):
        raise Unusable(
            RejectReason.NOT_TEXT,
            f"{controls} control characters in {len(sample)} bytes",
            len(content),
        )


def _detect_encodings(content: bytes) -> list[str]:
    """A guess from the bytes around the first one beyond ASCII: a whole file would take seconds."""
    from charset_normalizer import from_bytes  # .1 s to load, and nearly all text is UTF-8

    first = _NOT_ASCII.search(content)
    middle = first.start() if first else 0
    sample = content[max(0, middle - _SAMPLE_BYTES // 2) : middle + _SAMPLE_BYTES]
    best = from_bytes(sample.rstrip(bytes(range(128, 256))) or sample).best()
    return [best.encoding] if best else []


# Walking a folder in a stable order: ignore files respected, links never followed, odd files not
# opened.
_SKIPPED = (
    ".git .hg .svn .venv venv node_modules site-packages dist-packages __pycache__ .tox .nox .eggs "
    ".cache "
    ".mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .idea .vscode"
)
SKIPPED_FOLDERS = frozenset(_SKIPPED.split())
_MAX_IGNORE_BYTES = 1 << 20
# Patterns become backtracking expressions: this many stars between two slashes still match any name
# in milliseconds.
_MAX_STARS = 4


@dataclass(frozen=True)
class FileEntry:
    """A file below the root, or with `problem` an entry that must not be opened."""

    path: str
    relative: str  # forward slashes
    problem: Unusable | None = None


@dataclass(frozen=True)
class _Rules:
    """One `.gitignore` and its folder."""

    folder: str
    patterns: tuple[RegexPattern, ...]


def walk(
    root: str,
    file: str = "",
    respect_ignores: bool = True,
    exclude: Sequence[str] = (),
) -> Iterator[FileEntry]:
    """Every entry below the root, or one file of it, sorted within each folder.

    `exclude` are patterns in the form of `.gitignore`; no ignore file can take them back. Depth
    first with an explicit stack: folders may be nested deeper than calls can be.
    """
    real_root = os.path.realpath(root)
    always = (_Rules("", _compile(exclude)),) if exclude else ()
    pending: list[tuple[str, tuple[_Rules, ...], bool]] = [(file, (), not file)]

    while pending:
        relative, rules, is_folder = pending.pop()
        full = os.path.join(root, relative) if relative else root
        if not is_folder:
            examined = _examine(full, relative, real_root)
            if examined is not None:
                yield examined
            continue

        try:
            entries = sorted(
                os.scandir(full),
                key=lambda entry: entry.name,
                reverse=True,
            )
        except OSError as error:
            yield FileEntry(
                full,
                relative,
                Unusable(RejectReason.UNREADABLE, f"folder: {error.strerror}"),
            )
            continue

        if relative and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        if respect_ignores:
            rules = _with_rules_of(full, relative, rules)

        for entry in entries:
            if relative:
                child = f"{relative}/{entry.name}"
            else:
                child = entry.name

            is_child_folder = entry.is_dir(follow_symlinks=False)
            if is_child_folder and entry.name in SKIPPED_FOLDERS:
                continue

            if not any(
                _is_ignored(child, is_child_folder, rule_set) for rule_set in (always, rules)
            ):
                pending.append((child, rules, is_child_folder))


def _examine(
    full: str,
    relative: str,
    real_root: str,
) -> FileEntry | None:
    """A regular file, or the reason why the entry is none; a link to what is read in its own place
    is passed over.
    """
    try:
        mode = os.lstat(full).st_mode
        if _UNPRINTABLE.search(relative):
            raise Unusable(
                RejectReason.MALFORMED,
                "the name holds control or undecodable characters; rename the file",
            )

        if stat.S_ISLNK(mode):
            target = os.path.realpath(full, strict=True)
            if target == real_root or target.startswith(real_root + os.sep):
                return None
            raise Unusable(
                RejectReason.UNREADABLE,
                "a symbolic link that leads out of the corpus is not followed",
            )
    except OSError as error:
        return FileEntry(
            full,
            relative,
            Unusable(RejectReason.UNREADABLE, error.strerror or type(error).__name__),
        )
    except Unusable as problem:
        return FileEntry(full, relative, problem)

    return FileEntry(full, relative)


def _with_rules_of(
    full: str,
    relative: str,
    rules: tuple[_Rules, ...],
) -> tuple[_Rules, ...]:
    path = os.path.join(full, ".gitignore")
    if not os.path.lexists(path):
        return rules

    try:
        lines = read_text(path, _MAX_IGNORE_BYTES).splitlines()
    except Unusable:
        return rules  # an ignore file that is no text ignores nothing, as in git

    return (*rules, _Rules(relative, _compile(lines)))


def _compile(lines: Sequence[str]) -> tuple[RegexPattern, ...]:
    """The patterns git would take, last one first; malformed ones are passed over as git does,
    overgrown ones too.
    """
    patterns: list[RegexPattern] = []
    for line in lines:
        stars = max(part.count("*") for part in line.split("/"))
        if max(stars, line.count("**")) > _MAX_STARS:
            continue

        # `name/**/` means folders below, which the library takes for the folder itself.
        line = re.sub(r"(?<=.)/\*\*/$", "/**/*/", line)
        try:
            compiled = GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            continue

        patterns += [
            pattern
            for pattern in compiled
            if isinstance(pattern, RegexPattern) and pattern.include is not None
        ]

    return tuple(reversed(patterns))


def _is_ignored(
    relative: str,
    is_folder: bool,
    rules: tuple[_Rules, ...],
) -> bool:
    """The deepest `.gitignore` that says anything decides; within one file the last matching line
    does.
    """
    for rule in reversed(rules):
        if rule.folder:
            below = relative[len(rule.folder) + 1 :]
        else:
            below = relative

        for pattern in rule.patterns:
            if _matches_itself(pattern, below + "/" if is_folder else below):
                return bool(pattern.include)

    return False


def _matches_itself(pattern: RegexPattern, path: str) -> bool:
    """Whether a pattern means this very entry. The library also matches what lies below a folder it
    means.

    The folder was checked first, and if it was not ignored its pattern says nothing of its entries:
    `*` with `!*/` keeps folders but not what is in them. A match through a folder marks its slash
    as a group.
    """
    expression = pattern.regex
    if expression is None:
        return False

    for match in expression.finditer(path):
        if match.lastgroup is None:
            return expression.search(path.removesuffix("/")) is not None  # `b/**` is not b itself
        if match.end(match.lastgroup) == len(path):
            return True

    return False
