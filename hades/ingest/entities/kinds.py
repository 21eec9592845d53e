"""What kind of thing a name is: by its own words, its qualifier, its page, and the words around its
mentions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import numpy as np

from hades.ingest.entities.find_names import Reading
from hades.text import word_lists
from hades.text.words import fold_letters
from models.arrays import rows_of
from schemas.nodes import EntityType, NameType

_WORD = re.compile(r"[^\W_]+")
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of)\s", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;(]|\b(?:who|which|that|by|from|starring|directed|written|located)\b")
_BORN = re.compile(r"\b(?:born|né|née)\b")
_LOOK_AHEAD = 160
_PREPOSITIONS = ("of", "in", "for", "at", "on", "to", "with")
_NAME_JOINERS = frozenset(("of", "for"))
_LONGEST_SUBJECT = 8  # words
_OPTION = re.compile(r"--?[a-z][\w-]*|[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+")  # --no-create, HTTP_PROXY
_CODE = re.compile(
    r"_*[A-Za-z]\w+(?:\.\w{2,})+(?:\(\))?|\w+\(\)|[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|__\w+__"
    r"|(?:[A-Z][a-z0-9]*)+(?:Error|Exception|Warning)"
)
_PRODUCT_WITH_DOT = re.compile(r"\.(?:js|com|org|net|io|ai|fm|tv)$", re.IGNORECASE)


def _kinds_by_word(
    cues: Mapping[NameType, Iterable[str]],
    kinds: Iterable[NameType],
) -> dict[str, NameType]:
    """The kind that each cue word speaks for: the first of these kinds that has it as a cue."""
    by_word: dict[str, NameType] = {}
    for kind in kinds:
        for word in cues[kind]:
            by_word.setdefault(word, kind)

    return by_word


# A "Cup" is an event before it is an organisation.
_BY_CUE = _kinds_by_word(
    word_lists.NAME_CUES,
    (NameType.EVENT, NameType.ORG, NameType.GPE, NameType.WORK, NameType.PRODUCT),
)
_IS_A = _kinds_by_word(word_lists.IS_A_CUES, word_lists.IS_A_CUES)


def kind_of(name: str) -> NameType:
    """The kind of a name by its own words; CONCEPT when nothing tells."""
    if _OPTION.fullmatch(name):
        return NameType.OPTION
    if _CODE.fullmatch(name) and not _PRODUCT_WITH_DOT.search(name):
        return NameType.CODE

    words = _WORD.findall(fold_letters(name))
    if not words or name[:1].islower():
        return NameType.CONCEPT

    cue = _BY_CUE.get(words[-1]) or (not _NAME_JOINERS.isdisjoint(words) and _BY_CUE.get(words[0]))
    if cue:
        return cue

    is_titled = words[0] in word_lists.GIVEN_NAMES or words[0] in word_lists.HONORIFICS
    if len(words) > 1 and (is_titled or not word_lists.PERSON_PARTICLES.isdisjoint(words[1:-1])):
        return NameType.PERSON

    is_place = " ".join(words) in word_lists.PLACES or (
        len(words) > 1 and words[0] in word_lists.PLACE_HEADS
    )
    return NameType.GPE if is_place else NameType.CONCEPT


def kind_of_qualifier(qualifier: str) -> NameType | None:
    """The kind a qualifier such as "1987 film" or "footballer, born 1912" states, if it does."""
    words = _WORD.findall(fold_letters(qualifier))
    if "born" in words:
        return NameType.PERSON

    return _first_cue(words[::-1])


def kind_of_page(title: str, opening: str) -> NameType | None:
    """The kind the first sentence of a page gives its subject ("X is a film ..."), if it says
    so.
    """
    head = opening[: _LOOK_AHEAD * 2]
    is_a = _SAYS_WHAT.search(head)

    if is_a is None or is_a.start() > _LOOK_AHEAD or not _is_subject(title, head[: is_a.start()]):
        return None
    if _BORN.search(head[: is_a.start()]):
        return NameType.PERSON

    return _kind_of_predicate(head[is_a.end() : is_a.end() + _LOOK_AHEAD])


def entity_type_of(name: str, kind: NameType) -> EntityType:
    """The traversal's type for a name: a person, a method by its head word, else a concept."""
    if kind is NameType.PERSON:
        return EntityType.PERSON

    is_method = " " in name and name.rsplit(None, 1)[-1].lower() in word_lists.METHOD_CUES
    if kind is NameType.CONCEPT and is_method:
        return EntityType.METHOD

    return EntityType.CONCEPT


def _first_cue(words: list[str]) -> NameType | None:
    kinds = (_IS_A.get(word) or _IS_A.get(word.removesuffix("s")) for word in words)
    return next(filter(None, kinds), None)


def _kind_of_predicate(predicate: str) -> NameType | None:
    """The kind that the words behind "X is a" say."""
    end = _CLAUSE_END.search(predicate)
    words = _WORD.findall(fold_letters(predicate[: end.start()] if end else predicate))
    described = takewhile(lambda word: word not in _PREPOSITIONS, words[1:])
    return _first_cue([*words[:1], *described][::-1])


def _is_subject(title: str, preceding: str) -> bool:
    """Whether what stands before "is a" names the title by its last word, so that the sentence
    speaks of it.

    Of "Oswine of Deira" and of "Metz, Moselle" the last word of the first part does.
    """
    sentence = _SENTENCE_END.split(_BRACKETS.sub(" ", preceding))[-1]
    subject_words = _WORD.findall(fold_letters(sentence))[:_LONGEST_SUBJECT]
    name = fold_letters(title.partition(",")[0])
    last_words = {*_WORD.findall(name)[-1:], *_WORD.findall(name.partition(" of ")[0])[-1:]}
    return not last_words.isdisjoint(subject_words)


_SENTENCE_END = re.compile(
    r"\n\s*\n|\n[=~#*^-]{3,}\s*\n|^#[^\n]*\n|(?<!\bJr)(?<!\bSr)(?<!\bSt)[.!?]\s",
    re.MULTILINE,
)
_BRACKETS = re.compile(r"\([^()]*\)")
_WINDOW = 72  # characters on either side
_MADE = (
    "written|created|developed|invented|designed|founded|authored|directed|maintained|proposed"
    "|introduced|led|composed"
)
_AFTER = re.compile(
    r"(?:\s*\([^()]{0,60}\))?(?:"
    r"(?P<predicate>,?\s+(?:is|was|are|were)\s+(?:an?|the|one of the)\s+)"
    r"|(?P<apposition>,\s+(?:an?|the)\s+(?=[^.;]{1,60}?[,.;]|\w+ "
    r"(?:for|of|by|on|in|that|which|to)\b))"
    r"|(?P<PERSON>,?\s+who\b|\s+(?:wrote|says|invented|married|argued|studied|lived|died|was "
    r"born|taught|co-?founded)\b"
    r"|\s+(?:works|worked|lives|served) (?:at|for|in|as)\b|\s+(?:moved|flew|flies|travelled) to\b"
    r"|['’]s\s+(?:wife|husband|son|daughter|father|mother|brother|sister|career|death|thesis)\b)"
    r"|(?P<ORG>\s+(?:Inc|Ltd|Corp|GmbH|LLC)\b|\s+(?:announced|acquired|hired|employs|laid off)\b"
    r"|['’]s\s+(?:headquarters|employees|engineers|shareholders)\b)"
    r"|(?P<PRODUCT>\s+(?:library|framework|package|compiler|toolkit|plugin|programming "
    r"language|apps?|applications?|v?\d+\.\d+)\b))"
)
_IN = re.compile(
    r"(?<!\bwritten)(?<!\bimplemented)\s(?:in|near)\s+(?:(?:north|south|east|west)(?:ern)?\s+"
    r"|central\s+)?$"
)
_AFTER_PLACE = re.compile(r"[,.;)]|\s+(?:and|until|since|where|on|by|with|from|for|was|is|in)\b|\Z")
_BEFORE = re.compile(
    rf"(?:(?P<maker>\b(?:developed|maintained) by)|(?P<PERSON>\b(?:{_MADE}) by"
    r"|\b(?:author|creator|founder|inventor|developer|engineer|scientist|researcher|colleague))"
    r"|(?P<GPE>\b(?:born|lives?|lived|living|moved|based|located|headquartered|raised|situated"
    r"|grew up|office|offices)"
    r" (?:in|to|near)|\b(?:city|capital|town|village|university|mayor|coast|north|south|east|west) "
    r"of)"
    r"|(?P<ORG>\b(?:works?|worked|working|job|engineers?|researchers?|employed|hired|acquired"
    r"|bought|published)"
    r" (?:at|for|by)"
    r"|\b(?:released|owned|sponsored|funded|backed|sold) by"
    r"|\b(?:company|startup|firm|employer|joined|CEO of|shares of))"
    r"|(?P<WORK>\b(?:film|movie|novel|book|album|song|single|play|poem|painting"
    r"|opera)(?:\s+[\"“])?)"
    r"|(?P<PRODUCT>\b(?:runs?|works?|installed|available|supported) on"
    r"|\b(?:install|installs|installing|upgrade to|migrate to|migrate from|built with|built on"
    r"|powered by|written in|ported to|compatible with))"
    r"|(?P<region>\b(?:in|near|from) (?:[A-Z][\w.]+ )?[A-Z][a-z]+,))"
    r"(?:\s+(?:the\s+)?|(?<=[\"“]))$"
)


def kinds_in_context(
    reading: Reading,
    canonical: Sequence[int],
    texts: Sequence[str],
) -> dict[int, NameType]:
    """By canonical row the kind that the words around the mentions of a name speak for, where one
    leads.
    """
    names = reading.names
    rows = np.flatnonzero(np.append(names.may_be_people(), False)[reading.name])
    columns = (reading.name, reading.chunk, reading.start, reading.end)
    votes: dict[int, Counter[NameType]] = defaultdict(Counter)

    places: set[int] = set()
    for name, chunk, start, end in rows_of(*(column[rows] for column in columns)):
        text = texts[chunk]
        is_long = len(names.plain[name]) > 1
        row = canonical[name]

        if len(names.plain[row]) == 1 and _is_literal(text, start, end):
            votes[row][NameType.CODE] += 1
            continue

        preceding = text[max(0, start - _WINDOW) : start]
        following = text[end : end + 2 * _WINDOW]
        for kind in _context_kinds(preceding, following, is_long):
            # A person has several words here, a company that made something one.
            if kind is not NameType.PERSON or is_long:
                votes[row][kind] += 1

        if not is_long and _is_where(text, start, end):
            places.add(row)

    kinds = dict.fromkeys(places - votes.keys(), NameType.GPE)
    for row, counts in votes.items():
        (kind, top_count), *runners_up = counts.most_common(2)
        if not runners_up or top_count > runners_up[0][1]:
            kinds[row] = kind

    return kinds


def _is_literal(text: str, start: int, end: int) -> bool:
    """Whether a word is written as code in a line: `Client`, `Client(...)`."""
    return text[max(0, start - 1) : start] == "`" and text[end : end + 1] in ("`", "(")


def _is_where(text: str, start: int, end: int) -> bool:
    """Whether a word of prose is said to be where something is; a manual says "in Click" of
    anything.
    """
    is_place = _IN.search(text[max(0, start - _WINDOW) : start]) and _AFTER_PLACE.match(text, end)
    return bool(is_place) and "`" not in text and not text[start:end].isupper()


def _kinds_before(
    group: str,
    following: str,
    is_long: bool,
) -> list[NameType]:
    """The kinds that the words before a name indicate: "in Topeka, Kansas." ends a place."""
    if group == "region":
        if following[:1] in ("", ",", ".", ";", ")"):
            return [NameType.GPE]
        return []

    if group == "maker":
        return [NameType.PERSON if is_long else NameType.ORG]

    return [NameType(group)]


def _context_kinds(
    preceding: str,
    following: str,
    is_long: bool,
) -> list[NameType]:
    kinds: list[NameType] = []
    match = _BEFORE.search(preceding)
    if match and match.lastgroup:
        kinds += _kinds_before(match.lastgroup, following, is_long)

    if match := _AFTER.match(following):
        group = match.lastgroup or ""
        if group not in ("predicate", "apposition"):
            kinds.append(NameType(group))
        elif kind := _kind_of_predicate(following[match.end() :]):
            kinds.append(kind)

    return kinds
