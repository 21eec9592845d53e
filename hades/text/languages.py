"""Which language a text is in, and the words it is found by in that language.

Full text search reads every text as English. A text in another language, or in a script without
blanks between words, is stored with further words: stems of its own language, pairs of characters.
A question gets the same ones.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable

import Stemmer

from hades.text.word_lists import COMMON_WORDS, FUNCTION_WORDS, word_set

ENGLISH = "en"
_SAMPLE = 4_000  # characters; enough to know a language by
_LEAST_HITS = 2  # words of a language that a text must hold; one stands in texts of any language
# Letters of scripts, as classes of characters. A script that several languages share says the
# commonest of them.
_HAN, _KANA, _HANGUL = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff",
    "\u3040-\u30ff",
    "\uac00-\ud7af",
)
# ... Thai, Lao, Burmese, Khmer
_UNSPACED = f"{_HAN}{_KANA}{_HANGUL}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED_LANGUAGES = word_set("ja zh ko th")
_SCRIPTS = {
    "ja": re.compile(f"[{_KANA}]"),
    "zh": re.compile(f"[{_HAN}]"),
    "ko": re.compile(f"[{_HANGUL}]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
    "hy": re.compile("[\u0530-\u058f]"),
}
_STEMMER_NAMES = """
    ar:arabic ca:catalan cs:czech da:danish de:german el:greek es:spanish et:estonian fi:finnish
    fr:french hi:hindi hu:hungarian hy:armenian id:indonesian it:italian lt:lithuanian nl:dutch
    no:norwegian pl:polish pt:portuguese ro:romanian ru:russian sv:swedish ta:tamil tr:turkish
"""
_STEMMERS = dict(pair.split(":") for pair in _STEMMER_NAMES.split())
_LATIN = {language: words for language, words in COMMON_WORDS.items() if language != "ru"}
_WORD = re.compile(r"[^\W_]+")
_LATIN_WORD = re.compile("[a-z]+")
_MARKED = re.compile(r"[^\W\d_a-z]|[¿¡]")
_PARTS = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_local = threading.local()  # a Snowball stemmer is not safe across threads


def detect_language(text: str) -> str:
    """The language of a text (ISO 639-1) by its script or its commonest words; English where
    neither tells.
    """
    sample = unicodedata.normalize("NFC", text[:_SAMPLE]).lower()
    if not sample.isascii() and (script := _script(sample)):
        return script

    used = frozenset([*_WORD.findall(sample), *_MARKED.findall(sample)])
    hits = {language: len(used & words) for language, words in _LATIN.items()}
    best = max(hits, key=lambda language: hits[language])

    if hits[best] >= _LEAST_HITS and hits[best] > len(used & FUNCTION_WORDS):
        return best

    return ENGLISH


def language_words(text: str, language: str) -> list[str]:
    """What a text is found by beside its words: stems of its language without common words, pairs
    of characters.
    """
    if language == ENGLISH and (text.isascii() or not _UNSPACED_RUN.search(text)):
        return []

    common = COMMON_WORDS.get(language, frozenset())
    if language in _STEMMERS:
        stemmer = stemmer_named(_STEMMERS[language])
    else:
        stemmer = None

    text_words = split_unspaced(_WORD.findall(unicodedata.normalize("NFC", text).lower()))
    return [
        word if stemmer is None else stemmer.stemWord(word)
        for word in text_words
        if word not in common
    ]


def split_unspaced(words: Iterable[str]) -> list[str]:
    """The words, with pairs of characters instead of each run of characters that are written
    without blanks.
    """
    units: list[str] = []
    for word in words:
        if not _UNSPACED_RUN.search(word):
            units.append(word)
            continue

        for part in _PARTS.findall(word):
            if _UNSPACED_RUN.match(part):
                pairs = [part[place : place + 2] for place in range(len(part) - 1)]
            else:
                pairs = []

            units += pairs or [part]

    return units


def _script(sample: str) -> str:
    """The language of the script that most of a text is in; none for Latin letters."""
    counts = {language: len(pattern.findall(sample)) for language, pattern in _SCRIPTS.items()}
    best = max(counts, key=lambda language: counts[language])
    # A character of an unspaced script says about as much as a word in Latin letters.
    other_count = (
        len(_LATIN_WORD.findall(sample))
        if best in _UNSPACED_LANGUAGES
        else 2 * sum(map(str.isalpha, sample)) / 3
    )

    if counts[best] <= other_count:
        return ""

    return "ja" if best == "zh" and counts["ja"] * 10 > counts["zh"] else best


def stemmer_named(name: str) -> Stemmer.Stemmer:
    """The Snowball stemmer of a language, one for each thread."""
    known: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    return known.get(name) or known.setdefault(name, Stemmer.Stemmer(name))
