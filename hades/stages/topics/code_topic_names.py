"""Names of topics of code: the module that most of its symbols are in, and what they do.

`pixels.decoders: decode frame, available` says more than three modules side by side. Words are those of the functions'
and classes' own names; a word pair is taken instead of its word where the word stands mostly in that pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from hades.stages.topics.topic_inputs import Material
from hades.text.identifiers import split_identifier
from models.hierarchy.arrays import NONE, Flags, Labels

CODE_MEMBERS = 0.2  # share of symbols from which on a topic is one of code
PLACE_SHARE = 0.5  # of the symbols that must be in a module before the topic is named after it
PAIR_SHARE = 0.5  # of a word's weight that its pair must reach to stand for it
PLACE_PARTS = 2  # of a module's name; the first parts, the project, say little
PARTS = 3


def code_topics(material: Material, labels: Labels, topics: int) -> Flags:
    """Whether each topic is one of code."""
    held = labels != NONE
    members = np.bincount(labels[held], minlength=topics)
    symbols = np.bincount(labels[held & material.is_symbol], minlength=topics)
    flags: Flags = symbols >= np.maximum(1, CODE_MEMBERS * members)
    return flags


def words_of_names(material: Material) -> list[str]:
    """What each entity says: a symbol the words of its own name, anyone else the name."""
    return [
        _own_words(name) if is_symbol else name
        for name, is_symbol in zip(material.names, material.is_symbol.tolist(), strict=True)
    ]


def code_topic_name(terms: Mapping[str, float], symbols: Sequence[str]) -> str:
    """Module and deeds, or one of them where the other is missing; empty when there is neither."""
    place = common_module(symbols)
    deeds = ", ".join(_deeds(terms, set(place.split("."))))
    return f"{place}: {deeds}" if place and deeds else place or deeds


def common_module(symbols: Sequence[str]) -> str:
    """The last parts of the longest module name that at least half of the symbols share; empty when there is none."""
    modules = [_module_parts(symbol) for symbol in symbols]
    prefix: list[str] = []
    while modules:
        inside = Counter(parts[len(prefix)] for parts in modules if len(parts) > len(prefix))
        best = min(inside, key=lambda part: (-inside[part], part), default="")
        if not best or inside[best] < PLACE_SHARE * len(symbols):
            break
        modules = [parts for parts in modules if len(parts) > len(prefix) and parts[len(prefix)] == best]
        prefix.append(best)
    return ".".join(prefix[-PLACE_PARTS:])


def _own_words(name: str) -> str:
    own = name.rpartition(".")[2]
    if own.startswith("__") and own.endswith("__"):
        return ""  # every class has these
    return " ".join(split_identifier(own.strip("_")) or [own.strip("_").lower()])


def _module_parts(symbol: str) -> list[str]:
    """The parts of a symbol's name in front of its class, or of its own name."""
    parts = symbol.split(".")[:-1]
    classes = [place for place, part in enumerate(parts) if part.lstrip("_")[:1].isupper()]
    return parts[: classes[0]] if classes else parts


def _deeds(terms: Mapping[str, float], told: set[str]) -> list[str]:
    """The heaviest terms, word pairs before words, that repeat neither each other nor the module."""
    chosen: list[str] = []
    used = set(told)
    for term, weight in terms.items():
        pairs = [pair for pair in terms if " " in pair and term in pair.split() and terms[pair] >= PAIR_SHARE * weight]
        said = term if " " in term or not pairs else pairs[0]
        words = set(said.split())
        if words & used:
            continue
        chosen.append(said)
        used |= words
        if len(chosen) == PARTS:
            break
    return chosen
