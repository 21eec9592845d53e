"""The English stem of a word, by the Snowball algorithm ("Porter2"), which ArangoDB's text analyzers use as well.

The steps and their names are those of https://snowballstem.org/algorithms/english/stemmer.html.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

_CACHED_WORDS = 1 << 17
_VOWELS = "aeiouy"
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))
_BEFORE_LI = frozenset("cdeghkmnrt")
_CONSONANT_Y = re.compile(rf"(?:^|(?<=[{_VOWELS}]))y")
_REGION = re.compile(rf"[{_VOWELS}][^{_VOWELS}]")
_SPECIAL_R1 = re.compile(r"gener|commun|arsen")
_HAS_VOWEL = re.compile(rf"[{_VOWELS}]")
_SHORT_SYLLABLE = re.compile(rf"(?:[^{_VOWELS}][{_VOWELS}][^{_VOWELS}wxY]|^[{_VOWELS}][^{_VOWELS}])$")
_WHOLE_WORDS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl",
    "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}  # fmt: skip
_DONE_AFTER_1A = frozenset(("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"))
_STEP_2 = {
    "ization": "ize", "ational": "ate", "fulness": "ful", "ousness": "ous", "iveness": "ive", "tional": "tion",
    "biliti": "ble", "lessli": "less", "entli": "ent", "ation": "ate", "alism": "al", "aliti": "al",
    "ousli": "ous", "iviti": "ive", "fulli": "ful", "enci": "ence", "anci": "ance", "abli": "able",
    "izer": "ize", "ator": "ate", "alli": "al", "bli": "ble", "ogi": "og", "li": "",
}  # fmt: skip
_STEP_3 = {
    "ational": "ate", "tional": "tion", "alize": "al", "icate": "ic", "iciti": "ic", "ative": "", "ical": "ic",
    "ness": "", "ful": "",
}  # fmt: skip
_STEP_4 = frozenset(
    "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic".split()  # noqa: SIM905
)


@lru_cache(_CACHED_WORDS)  # names of entities and texts of chunks share most of their words
def stem(word: str) -> str:
    """The stem of a lower-case word; what is not English letters comes back as it is or nearly."""
    if len(word) <= 2:
        return word
    whole = _WHOLE_WORDS.get(word)
    if whole is not None:
        return whole
    word = _CONSONANT_Y.sub("Y", word)
    r1 = _first_region(word)
    region = _REGION.search(word, r1)
    r2 = region.end() if region else len(word)
    word = _step_1a(word)
    if word in _DONE_AFTER_1A:
        return word
    word = _step_1b(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:  # step 1c
        word = word[:-1] + "i"
    return _step_5(_step_4(_step_3(_step_2(word, r1), r1, r2), r2), r1, r2).replace("Y", "y")


def _first_region(word: str) -> int:
    special = _SPECIAL_R1.match(word)
    region = special or _REGION.search(word)
    return region.end() if region else len(word)


def _step_1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _HAS_VOWEL.search(word, 0, len(word) - 2):
        return word[:-1]
    return word


def _step_1b(word: str, r1: int) -> str:
    for ending in ("eedly", "eed"):
        if word.endswith(ending):
            return word[: -len(ending)] + "ee" if len(word) - len(ending) >= r1 else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(ending):
            continue
        rest = word[: -len(ending)]
        if not _HAS_VOWEL.search(rest):
            return word
        if rest.endswith(("at", "bl", "iz")):
            return rest + "e"
        if rest[-2:] in _DOUBLES:
            return rest[:-1]
        return rest + "e" if len(rest) <= r1 and _SHORT_SYLLABLE.search(rest) else rest
    return word


def _step_2(word: str, r1: int) -> str:
    ending = _longest_ending(word, _STEP_2, 7)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < r1:
        return word
    if (ending == "li" and rest[-1:] not in _BEFORE_LI) or (ending == "ogi" and rest[-1:] != "l"):
        return word
    return rest + _STEP_2[ending]


def _step_3(word: str, r1: int, r2: int) -> str:
    ending = _longest_ending(word, _STEP_3, 7)
    rest = word[: len(word) - len(ending)]
    return rest + _STEP_3[ending] if ending and len(rest) >= (r2 if ending == "ative" else r1) else word


def _step_4(word: str, r2: int) -> str:
    ending = _longest_ending(word, _STEP_4, 5)
    rest = word[: len(word) - len(ending)]
    return rest if ending and len(rest) >= r2 and (ending != "ion" or rest[-1:] in ("s", "t")) else word


def _longest_ending(word: str, endings: Container[str], longest: int) -> str:
    for size in range(longest, 1, -1):
        if word[-size:] in endings:
            return word[-size:]
    return ""


def _step_5(word: str, r1: int, r2: int) -> str:
    rest = word[:-1]
    if word.endswith("e") and (len(rest) >= r2 or (len(rest) >= r1 and not _SHORT_SYLLABLE.search(rest))):
        return rest
    return rest if word.endswith("ll") and len(rest) >= r2 else word
