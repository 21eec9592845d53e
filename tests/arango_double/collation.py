"""String order of a server with an English locale: letters before case, punctuation before digits before letters.

AQL sorts and compares (`<`, SORT, MIN) through ICU, not by code point: `"a" < "B"` and `"a_1" < "a1"` are true. This is
an approximation of that order that is exact for printable ASCII and reasonable for accented letters.
"""

import unicodedata
from functools import lru_cache

_ASCII = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_PRIMARY = {character: rank + 1 for rank, character in enumerate(_ASCII)}
_OTHER = 1000

CollationKey = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]


@lru_cache(maxsize=65536)
def collation_key(text: str) -> CollationKey:
    """Primary (letter), secondary (accent), tertiary (lower before upper) weights, then the text itself."""
    if text.isascii():
        lowered = text.lower()
        primary = tuple(_PRIMARY.get(character, 0) for character in lowered)
        return primary, (), tuple(int(a != b) for a, b in zip(text, lowered, strict=True)), text
    letters: list[int] = []
    accents: list[int] = []
    cases: list[int] = []
    for character in unicodedata.normalize("NFD", text):
        if unicodedata.combining(character):
            accents.append(len(letters) * 0x10000 + ord(character))
            continue
        lowered = character.lower()
        letters.append(_PRIMARY.get(lowered, _OTHER + ord(lowered[0])))
        cases.append(int(character != lowered))
    return tuple(letters), tuple(accents), tuple(cases), text
