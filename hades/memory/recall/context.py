"""A context inside a token budget."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hades.memory.history.rows import MemoryRefused, topic_of_key
from hades.memory.history.states import named
from hades.memory.recall.graph import MatchWithContext, RelatedState, enhance
from hades.memory.recall.index import MemoryQuery, Reader, Window
from hades.memory.recall.search import FOR_CONTEXT, MemoryMatch, embed_question, search_asked
from hades.memory.upkeep.consolidate import DAILY, MONTHLY, NAMES, RAW, WEEKLY, drill_down
from hades.ports.services import Tokenizer
from hades.text.dates import time_asked
from hades.text.sentences import day, names_topic
from schemas.ids import overlap
from schemas.memory import MemoryEdge, MemoryState


@dataclass(frozen=True)
class Strategy:
    """What an intent needs: only the newest, also what led there, also what it is joined to, which summaries."""

    intent: str
    words: str  # by which a question has it
    history: bool = True
    related: bool = True
    level: int = RAW  # of summaries; 0 takes none
    of_any_age: bool = False  # whether history goes back as far as it reaches


# The order decides: "why did the status change last week" asks why.
_STRATEGIES = (
    Strategy("why", "why|how come|what (?:caused|led to|made)|causes? of|reasons?|because", of_any_age=True),
    Strategy(
        "change",
        "when did .*(?:change|become|stop|start)|how (?:did|has) .*(?:change|evolve|develop)|history of|evolution|"
        "over time|used to",
        of_any_age=True,
    ),
    Strategy(
        "overview",
        "summar(?:y|i[sz]e)|overview|overall|entire|whole|everything|in total|big picture|last (?:month|quarter|year)",
        related=False,
        level=MONTHLY,
    ),
    Strategy(
        "recent",
        "(?:last|past) (?:week|few days|days?|[0-9]+ days)|this week|yesterday|recent(?:ly)?|lately|what(?:'s| is) new",
        related=False,
        level=DAILY,
    ),
    Strategy("status", "status|current(?:ly)?|now|at the moment|today|latest|state of|where .*stands?", history=False),
)
_GENERAL = Strategy("general", "", level=WEEKLY)


def strategy_for(query: str) -> Strategy:
    """How to look for an answer to a question; the same question always gets the same strategy."""
    asked = (one for one in _STRATEGIES if re.search(rf"\b(?:{one.words})\b", query, re.IGNORECASE))
    return next(asked, _GENERAL)


def determine_consolidation_level(query: str) -> int:
    """Which summaries a question wants: status and why 0, recent 1, overview 3, else 2."""
    return strategy_for(query).level


_WORTH_CUTTING = 24  # tokens; less of a text tells nothing


@dataclass(frozen=True)
class Entry:
    """One text of a context, and the version it shows."""

    id: str
    text: str
    tokens: int
    cut: bool = False


@dataclass
class Packer:
    """Takes texts while they fit; never more than `room` tokens in all, headings and line ends counted."""

    tokenizer: Tokenizer
    room: int
    sections: dict[str, list[Entry]] = field(default_factory=dict)
    used: int = 0
    left_out: int = 0

    @property
    def left(self) -> int:
        """Tokens that may still be taken; never below 0."""
        return max(0, self.room - self.used)

    @property
    def ids(self) -> set[str]:
        """What is in already."""
        return {entry.id for entries in self.sections.values() for entry in entries}

    def fill(self, section: str, texts: Sequence[tuple[str, str]], share: int, *, must: bool = False) -> int:
        """Take (id, text) pairs in order while the section's share lasts; how many tokens it took.

        One that does not fit is passed over. With `must` the first is cut to fit rather than passed over.
        """
        share = min(share, self.left)
        heading = self._cost(f"## {section}")
        spent = 0
        costs = [count + 1 for count in self.tokenizer.count_many([text for _, text in texts])]  # 1: the line end
        for (name, text), cost in zip(texts, costs, strict=True):
            entries = self.sections.get(section, [])
            free = share - spent - (0 if entries else heading)
            is_cut = False
            if cost > free and must and not entries and free > 1:
                text, is_cut = self.tokenizer.truncate(text, free - 1), True
                cost = self._cost(text)
            if cost > free or not text or (is_cut and cost < min(_WORTH_CUTTING, free)):
                self.left_out += 1
                continue
            spent += cost + (0 if entries else heading)
            self.sections.setdefault(section, []).append(Entry(name, text, cost, is_cut))
        self.used += spent
        return spent

    def text(self) -> str:
        """Everything that was taken, under its headings."""
        parts = [
            "\n".join([f"## {name}", *(entry.text for entry in entries)]) for name, entries in self.sections.items()
        ]
        return "\n".join(parts)

    def checked(self) -> tuple[str, int]:
        """The text and its tokens, counted as a whole. Where counting parts fell short, the last texts go."""
        while (tokens := self.tokenizer.count(self.text())) > self.room and self.sections:
            last = list(self.sections)[-1]
            self.sections[last].pop()
            self.left_out += 1
            if not self.sections[last]:
                del self.sections[last]
        assert tokens <= self.room
        return self.text(), tokens

    def _cost(self, text: str) -> int:
        return self.tokenizer.count_many([text])[0] + 1


MAX_TOKENS = 100_000
BUFFER, BUFFER_SHARE = 10_000, 0.1
LATEST_SHARE, RELATED_SHARE = 0.2, 0.5
SUMMARIES, SUMMARIES_SHARE = 30_000, 0.4
FLOOR, FLOOR_SHARE = 5_000, 0.05
LAST_STATES, WITHIN = 10, timedelta(days=30)
TOPICS = 20
RELEVANT = 0.5  # of the best similarity; what is less near is found by a search but gets no room in a context
DEPTH = 2
NEWEST_OF_EACH = 5  # edges of one relation of one topic
_CANDIDATE_SUMMARIES = 50
_LOOKED_BACK = 200  # versions of a topic, where a time is asked about


@dataclass(frozen=True)
class Context:
    """What a question is answered from, and how many tokens each part takes."""

    query: str
    intent: str
    level: int
    max_tokens: int
    buffer: int
    tokens: int
    text: str
    latest: list[Entry] = field(default_factory=list)
    related: list[Entry] = field(default_factory=list)
    summaries: list[Entry] = field(default_factory=list)
    details: list[Entry] = field(default_factory=list)
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        parts = {name: getattr(self, name) for name in _SECTIONS}
        shown = {name: [vars(entry) for entry in entries] for name, entries in parts.items()}
        whole = {name: value for name, value in vars(self).items() if name not in parts}
        tokens = {name: sum(entry.tokens for entry in entries) for name, entries in parts.items()}
        return {**whole, **shown, "tokens_by_part": tokens}


_SECTIONS = ("latest", "related", "summaries", "details")


def retrieve_within_budget(
    reader: Reader, tokenizer: Tokenizer, query: str, max_tokens: int = MAX_TOKENS, *, focus: Sequence[str] = ()
) -> Context:
    """The context for a question: what holds now, what it hangs on, summaries, then details.

    `focus` names topics or summaries whose whole detail is wanted first. The buffer is left for whoever reasons; shares
    are of what is really left, and the whole is counted again at the end.
    """
    if max_tokens < 1:
        raise MemoryRefused(f"max_tokens is {max_tokens}; give the size of the context, for example 100000")
    strategy = strategy_for(query)
    buffer = min(BUFFER, int(max_tokens * BUFFER_SHARE))
    packer = Packer(tokenizer, max_tokens - buffer)
    asked = embed_question(reader, query)
    found = _relevant(query, search_asked(reader, asked, priority=FOR_CONTEXT))

    wanted = [_version(state) for name in focus for state in _behind(reader, name)]
    packer.fill("focus", wanted, packer.left // 2, must=True)
    latest = [one.state for one in found]
    packer.fill("latest", _new(packer, latest), int(max_tokens * LATEST_SHARE), must=True)
    walked = enhance(reader, found, DEPTH, newest=NEWEST_OF_EACH)
    if strategy.related:
        packer.fill("related", _join(walked.matches, packer.ids), int(packer.left * RELATED_SHARE))
    window = time_asked(query, reader.moment)
    level, summaries = _summaries(reader, asked, strategy, window)
    packer.fill("summaries", _new(packer, summaries), min(SUMMARIES, int(packer.left * SUMMARIES_SHARE)))
    if strategy.history:
        floor = min(FLOOR, int(max_tokens * FLOOR_SHARE))
        for topic in _topics(walked.matches, only_joined=strategy.intent == "why"):
            if packer.left < floor:
                break
            packer.fill("details", _new(packer, _past(reader, topic, strategy, window)), packer.left)
    text, tokens = packer.checked()
    parts = {name: packer.sections.get(name, []) for name in _SECTIONS}
    parts["details"] = [*packer.sections.get("focus", []), *parts["details"]]
    return Context(query, strategy.intent, level, max_tokens, buffer, tokens, text, **parts,
                   left_out=packer.left_out, reasons=walked.reasons)  # fmt: skip


def _relevant(query: str, found: Sequence[MemoryMatch]) -> list[MemoryMatch]:
    """The topics that a question names and those near enough to it, best first; of too many, those it names."""
    best = max((one.similarity for one in found), default=0.0)
    named_there = [one.state.key for one in found if names_topic(query, one.state.topic)]
    near = [one.state.key for one in found if one.similarity >= RELEVANT * best]
    kept = list(dict.fromkeys([*named_there, *near]))[:TOPICS]
    return [one for one in found if one.state.key in kept]


def _summaries(
    reader: Reader, asked: MemoryQuery, strategy: Strategy, window: Window | None
) -> tuple[int, list[MemoryState]]:
    """The level that has summaries, at most the one wanted, and those of it that are about the question."""
    for level in range(strategy.level, 0, -1):
        found = search_asked(
            reader, asked, limit=_CANDIDATE_SUMMARIES, levels=(level,), priority=FOR_CONTEXT, most=_CANDIDATE_SUMMARIES
        )
        states = [one.state for one in found if _meets(one.state, window)]
        if states:
            return level, states
    return 0, []


def _meets(summary: MemoryState, window: Window | None) -> bool:
    """Whether a summary is about the time that is asked about; one whose times are damaged is about none."""
    try:
        period = (datetime.fromisoformat(summary.metadata["start"]), datetime.fromisoformat(summary.metadata["end"]))
    except (KeyError, TypeError, ValueError):
        return False
    return window is None or overlap(period, window)


def _behind(reader: Reader, name: str) -> list[MemoryState]:
    """The whole of what was asked for: the sources of a summary, or the last versions of a topic."""
    state = named(reader.store, name, reader.moment)
    if state.is_consolidated:
        return drill_down(reader.store, state.key)
    return list(reversed(reader.index.history(state.topic, LAST_STATES, reader.known_at)))


def _join(matches: Sequence[MatchWithContext], packed: set[str]) -> list[tuple[str, str]]:
    """The edges that were followed, nearest first and each once, with what stands at their far end."""
    ways = [
        (len(one.way), place, number, one)
        for place, match in enumerate(matches)
        for number, one in enumerate(match.related_states)
    ]
    ordered = [one for *_, one in sorted(ways, key=lambda way: way[:3])]
    kept = _newest_of_each({one.way[-1].id: one.way[-1] for one in ordered}.values())
    lines: dict[str, tuple[str, str]] = {}
    shown = set(packed)
    for one in ordered:
        edge = one.way[-1]
        if edge.id in kept and edge.id not in lines:
            lines[edge.id] = one.state.key, _sentence(one, edge, shown)
            shown.update({one.state.key, *([one.since.key] if one.since else [])})
    return list(lines.values())


def _newest_of_each(edges: Iterable[MemoryEdge]) -> set[str]:
    """Of each relation of each topic the edges that became true last: whoever met a hundred times, met lately."""
    counts: dict[tuple[str, str, str], int] = {}
    kept: set[str] = set()
    for edge in sorted(edges, key=lambda one: (one.valid_from or one.timestamp, one.key), reverse=True):
        ends = [(end, topic_of_key(getattr(edge, end)), edge.relationship_type) for end in ("source", "target")]
        if all(counts.get(end, 0) < NEWEST_OF_EACH for end in ends):
            kept.add(edge.id)
            for end in ends:
                counts[end] = counts.get(end, 0) + 1
    return kept


def _sentence(one: RelatedState, edge: MemoryEdge, shown: set[str]) -> str:
    """An edge as a line: who, how, whom, since when; and what stands there where it was not said yet."""
    leads_here = topic_of_key(edge.target) == topic_of_key(one.state.key)
    tail, head = (one.near, one.state.topic) if leads_here else (one.state.topic, one.near)
    why = f" ({edge.description})" if edge.description else ""
    line = f"{tail} --{edge.relationship_type}--> {head}, since {day(edge.valid_from)}{why}"
    if one.state.key not in shown:
        line += f": {one.state.content}"
    if one.since is not None and one.since.key not in shown:
        line += f" [since {day(one.since.valid_from)}: {one.since.content}]"
    return line


def _topics(matches: Sequence[MatchWithContext], *, only_joined: bool) -> list[str]:
    """The topics worth detail: those found, best first, then those they are joined to."""
    first = [match.state.topic for match in matches if match.related_states or not only_joined]
    then = [(-one.strength * match.similarity, one.state) for match in matches for one in match.related_states]
    ranked = sorted(then, key=lambda pair: (pair[0], pair[1].key))
    return list(dict.fromkeys([*first, *(state.topic for _, state in ranked)]))


def _past(reader: Reader, topic: str, strategy: Strategy, window: Window | None) -> list[MemoryState]:
    """The last ten versions of a topic, newest first: of the time that is asked about, else within thirty days."""
    if window is None and strategy.of_any_age:
        window = (None, None)
    start, end = window or (reader.moment - WITHIN, None)
    looked_at = _LOOKED_BACK if window else LAST_STATES
    states = reader.index.history(topic, looked_at, reader.known_at, (start, end))
    return states[: -LAST_STATES - 1 : -1]


def _version(state: MemoryState) -> tuple[str, str]:
    kind = NAMES.get(state.consolidation_level)
    what = f"{kind} summary" if kind else f"v{state.version}"
    until = f" until {day(state.valid_until)}" if state.valid_until else ""
    return state.key, f"[{state.topic}, {what}, since {day(state.valid_from)}{until}] {state.content}"


def _new(packer: Packer, states: Iterable[MemoryState]) -> list[tuple[str, str]]:
    """Those that are not in the context yet."""
    packed = packer.ids
    return [_version(state) for state in states if state.key not in packed]
