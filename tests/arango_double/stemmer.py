"""English Snowball stemmer (Porter2), as the text analyzers use: https://snowballstem.org/algorithms/english/."""

import re
from functools import lru_cache

_VOWELS = "aeiouy"
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_LI_ENDINGS = "cdeghkmnrt"
_EXCEPTIONS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe",
    "atlas": "atlas", "cosmos": "cosmos", "bias": "bias", "andes": "andes",
}  # fmt: skip
_KEPT_AFTER_1A = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
_STEP2 = [
    ("ization", "ize"), ("ational", "ate"), ("fulness", "ful"), ("ousness", "ous"), ("iveness", "ive"),
    ("tional", "tion"), ("biliti", "ble"), ("lessli", "less"), ("entli", "ent"), ("ation", "ate"), ("alism", "al"),
    ("aliti", "al"), ("ousli", "ous"), ("iviti", "ive"), ("fulli", "ful"), ("enci", "ence"), ("anci", "ance"),
    ("abli", "able"), ("izer", "ize"), ("ator", "ate"), ("alli", "al"), ("bli", "ble"), ("ogi", "og"), ("li", ""),
]  # fmt: skip
_STEP3 = [
    ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"), ("ative", ""),
    ("ical", "ic"), ("ness", ""), ("ful", ""),
]  # fmt: skip
_STEP4 = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic",
]  # fmt: skip
_SHORT = re.compile(rf"(?:[^{_VOWELS}][{_VOWELS}][^{_VOWELS}wxY]|^[{_VOWELS}][^{_VOWELS}])$")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of a lower-case English word."""
    if len(word) <= 2:
        return word
    word = word.replace("\u2019", "'").removeprefix("'")
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    word = re.sub(rf"(^|[{_VOWELS}])y", r"\1Y", word)
    first = _region1(word)
    second = first + _region(word[first:])
    word = _step0(word)
    word = _step1a(word)
    if word in _KEPT_AFTER_1A:
        return word.lower()
    word = _step1b(word, first)
    word = re.sub(rf"(?<=.)(?<=[^{_VOWELS}])[yY]$", "i", word) if len(word) > 2 else word
    word = _step2(word, first)
    word = _step3(word, first, second)
    word = _step4(word, second)
    return _step5(word, first, second).lower()


def _region(text: str) -> int:
    match = re.search(rf"[{_VOWELS}][^{_VOWELS}]", text)
    return match.end() if match else len(text)


def _region1(word: str) -> int:
    for prefix in ("gener", "commun", "arsen"):
        if word.startswith(prefix):
            return len(prefix)
    return _region(word)


def _step0(word: str) -> str:
    for suffix in ("'s'", "'s", "'"):
        if word.endswith(suffix):
            return word.removesuffix(suffix)
    return word


def _step1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith(("us", "ss")):
        return word
    if word.endswith("s") and re.search(rf"[{_VOWELS}]", word[:-2]):
        return word[:-1]
    return word


def _step1b(word: str, first: int) -> str:
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            return word.removesuffix(suffix) + "ee" if len(word) - len(suffix) >= first else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(suffix):
            continue
        base = word.removesuffix(suffix)
        if not re.search(rf"[{_VOWELS}]", base):
            return word
        if base.endswith(("at", "bl", "iz")):
            return base + "e"
        if base.endswith(_DOUBLES):
            return base[:-1]
        return base + "e" if _is_short(base, first) else base
    return word


def _is_short(word: str, first: int) -> bool:
    return first >= len(word) and _SHORT.search(word) is not None


def _step2(word: str, first: int) -> str:
    for suffix, new in _STEP2:
        if not word.endswith(suffix):
            continue
        base = word.removesuffix(suffix)
        if len(base) < first:
            return word
        if suffix == "ogi":
            return base + new if base.endswith("l") else word
        if suffix == "li":
            return base if base.endswith(tuple(_LI_ENDINGS)) else word
        return base + new
    return word


def _step3(word: str, first: int, second: int) -> str:
    for suffix, new in _STEP3:
        if not word.endswith(suffix):
            continue
        base = word.removesuffix(suffix)
        if len(base) < (second if suffix == "ative" else first):
            return word
        return base + new
    return word


def _step4(word: str, second: int) -> str:
    for suffix in _STEP4:
        if not word.endswith(suffix):
            continue
        base = word.removesuffix(suffix)
        if len(base) < second or (suffix == "ion" and not base.endswith(("s", "t"))):
            return word
        return base
    return word


def _step5(word: str, first: int, second: int) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if len(base) >= second or (len(base) >= first and not _SHORT.search(base)):
            return base
    elif word.endswith("l") and len(word) - 1 >= second and word.endswith("ll"):
        return word[:-1]
    return word
