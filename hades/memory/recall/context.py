"""A context inside a token budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

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
from schemas.record import JsonObject


@dataclass(frozen=True)
class Strategy:
    """What an intent needs: only the newest, also what led there, also what it is joined to, which
    summaries.
    """

    intent: str
    words: str  # by which a question has it
    history: bool = True
    related: bool = True
    level: int = RAW  # of summaries; 0 takes none
    of_any_age: bool = False  # whether history goes back as far as it reaches


# The order decides: "why did the status change last week" asks why.
_STRATEGIES = (
    Strategy(
        "why",
        "why|how come|what (?:caused|led to|made)|causes? of|reasons?|because",
        of_any_age=True,
    ),
    Strategy(
        "change",
        "when did .*(?:change|become|stop|start)|how (?:did|has) "
        ".*(?:change|evolve|develop)|history of|evolution|"
        "over time|used to",
        of_any_age=True,
    ),
    Strategy(
        "overview",
        "summar(?:y|i[sz]e)|overview|overall|entire|whole|everything|in total|big picture|last "
        "(?:month|quarter|year)",
        related=False,
        level=MONTHLY,
    ),
    Strategy(
        "recent",
        "(?:last|past) (?:week|few days|days?|[0-9]+ days)|this "
        "week|yesterday|recent(?:ly)?|lately|what(?:'s| is) new",
        related=False,
        level=DAILY,
    ),
    Strategy(
        "status",
        "status|current(?:ly)?|now|at the moment|today|latest|state of|where .*stands?",
        history=False,
    ),
)
_GENERAL = Strategy("general", "", level=WEEKLY)


def strategy_for(query: str) -> Strategy:
    """How to look for an answer to a question; the same question always gets the same strategy."""
    for strategy in _STRATEGIES:
        if re.search(
            rf"\b(?:{strategy.words})\b",
            query,
            re.IGNORECASE,
        ):
            return strategy

    return _GENERAL


ShownText = tuple[str, str]  # the id of a version, and its text
_WORTH_CUTTING = 24  # tokens; less of a text tells nothing
_LINE_END = 1  # token


@dataclass(frozen=True)
class Entry:
    """One text of a context, and the version it shows."""

    id: str
    text: str
    tokens: int
    cut: bool = False


@dataclass
class Packer:
    """Takes texts while they fit; never more than `room` tokens in all, headings and line ends
    counted.
    """

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
        """Ids of what was taken."""
        ids: set[str] = set()
        for entries in self.sections.values():
            ids.update(entry.id for entry in entries)

        return ids

    def fill(
        self,
        section: str,
        texts: Sequence[ShownText],
        share: int,
        *,
        must: bool = False,
    ) -> int:
        """Take (id, text) pairs in order while the section's share lasts; how many tokens it took.

        One that does not fit is passed over. With `must` the first is cut to fit rather than passed
        over.
        """
        share = min(share, self.left)
        heading = self._count_tokens(f"## {section}")
        spent = 0
        counts = self.tokenizer.count_many([text for _, text in texts])

        for (name, text), count in zip(texts, counts, strict=True):
            cost = count + _LINE_END
            is_first = section not in self.sections
            free = share - spent - (heading if is_first else 0)
            is_cut = must and is_first and 1 < free < cost

            if is_cut:
                text = self.tokenizer.truncate(text, free - _LINE_END)
                cost = self._count_tokens(text)

            is_scrap = is_cut and cost < min(_WORTH_CUTTING, free)
            if cost > free or not text or is_scrap:
                self.left_out += 1
                continue

            spent += cost + (heading if is_first else 0)
            self.sections.setdefault(section, []).append(Entry(name, text, cost, is_cut))

        self.used += spent
        return spent

    def text(self) -> str:
        """Everything that was taken, under its headings."""
        lines: list[str] = []
        for name, entries in self.sections.items():
            lines.append(f"## {name}")
            lines += [entry.text for entry in entries]

        return "\n".join(lines)

    def checked(self) -> tuple[str, int]:
        """The text and its tokens, counted as a whole. Where counting parts fell short, the last
        texts go.
        """
        while (tokens := self.tokenizer.count(self.text())) > self.room and self.sections:
            last = list(self.sections)[-1]
            self.sections[last].pop()
            self.left_out += 1

            if not self.sections[last]:
                del self.sections[last]

        assert tokens <= self.room
        return self.text(), tokens

    def _count_tokens(self, text: str) -> int:
        return self.tokenizer.count_many([text])[0] + _LINE_END


MAX_TOKENS = 100_000
BUFFER, BUFFER_SHARE = 10_000, 0.1
LATEST_SHARE, RELATED_SHARE = 0.2, 0.5
SUMMARIES, SUMMARIES_SHARE = 30_000, 0.4
FLOOR, FLOOR_SHARE = 5_000, 0.05
LAST_STATES, WITHIN = 10, timedelta(days=30)
TOPICS = 20
# of the best similarity; what is less near is found by a search but gets no room in a context
RELEVANT = 0.5
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

    def as_dict(self) -> JsonObject:
        """The same as JSON."""
        fields = dict(vars(self))
        sections: dict[str, list[JsonObject]] = {}

        tokens: dict[str, int] = {}
        for name in _SECTIONS:
            entries = fields.pop(name)
            sections[name] = [vars(entry) for entry in entries]
            tokens[name] = sum(entry.tokens for entry in entries)

        return {
            **fields,
            **sections,
            "tokens_by_part": tokens,
        }


_SECTIONS = ("latest", "related", "summaries", "details")


def retrieve_within_budget(
    reader: Reader,
    tokenizer: Tokenizer,
    query: str,
    max_tokens: int = MAX_TOKENS,
    *,
    focus: Sequence[str] = (),
) -> Context:
    """The context for a question: what holds now, what it hangs on, summaries, then details.

    `focus` names topics or summaries whose whole detail is wanted first. The buffer is left for
    the answer; shares are of what is really left, and the whole is counted again at the end.
    """
    if max_tokens < 1:
        raise MemoryRefused(
            f"max_tokens is {max_tokens}; give the size of the context, for example 100000"
        )

    strategy = strategy_for(query)
    buffer = min(BUFFER, int(max_tokens * BUFFER_SHARE))
    packer = Packer(tokenizer, max_tokens - buffer)
    question = embed_question(reader, query)
    matches = _choose_relevant(query, search_asked(reader, question, priority=FOR_CONTEXT))

    details = chain.from_iterable(_details_of(reader, name) for name in focus)
    packer.fill(
        "focus",
        [_show_version(state) for state in details],
        packer.left // 2,
        must=True,
    )
    latest = [match.state for match in matches]
    packer.fill(
        "latest",
        _show_new(packer, latest),
        int(max_tokens * LATEST_SHARE),
        must=True,
    )
    walked = enhance(
        reader,
        matches,
        DEPTH,
        newest=NEWEST_OF_EACH,
    )

    if strategy.related:
        lines = _show_edges(walked.matches, packer.ids)
        packer.fill(
            "related",
            lines,
            int(packer.left * RELATED_SHARE),
        )

    window = time_asked(query, reader.moment)
    level, summaries = _find_summaries(reader, question, strategy, window)
    share = min(SUMMARIES, int(packer.left * SUMMARIES_SHARE))
    packer.fill(
        "summaries",
        _show_new(packer, summaries),
        share,
    )

    if strategy.history:
        floor = min(FLOOR, int(max_tokens * FLOOR_SHARE))
        for topic in _topics_in_detail(
            walked.matches,
            only_joined=strategy.intent == "why",
        ):
            if packer.left < floor:
                break

            versions = _last_versions(reader, topic, strategy, window)
            packer.fill(
                "details",
                _show_new(packer, versions),
                packer.left,
            )

    text, tokens = packer.checked()
    parts = {}
    for name in _SECTIONS:
        parts[name] = packer.sections.get(name, [])

    parts["details"] = [*packer.sections.get("focus", []), *parts["details"]]
    return Context(
        query=query,
        intent=strategy.intent,
        level=level,
        max_tokens=max_tokens,
        buffer=buffer,
        tokens=tokens,
        text=text,
        **parts,
        left_out=packer.left_out,
        reasons=walked.reasons,
    )


def _choose_relevant(query: str, matches: Sequence[MemoryMatch]) -> list[MemoryMatch]:
    """The topics that a question names and those near enough to it, best first; of too many, those
    it names.
    """
    best = max((match.similarity for match in matches), default=0.0)

    named_keys = []
    for match in matches:
        if names_topic(query, match.state.topic):
            named_keys.append(match.state.key)

    near_keys = []
    for match in matches:
        if match.similarity >= RELEVANT * best:
            near_keys.append(match.state.key)

    relevant_keys = list(dict.fromkeys([*named_keys, *near_keys]))[:TOPICS]
    return [match for match in matches if match.state.key in relevant_keys]


def _find_summaries(
    reader: Reader,
    question: MemoryQuery,
    strategy: Strategy,
    window: Window | None,
) -> tuple[int, list[MemoryState]]:
    """The level that has summaries, at most the one wanted, and those of it that are about the
    question.
    """
    for level in range(strategy.level, 0, -1):
        matches = search_asked(
            reader,
            question,
            limit=_CANDIDATE_SUMMARIES,
            levels=(level,),
            priority=FOR_CONTEXT,
            most=_CANDIDATE_SUMMARIES,
        )
        states = []
        for match in matches:
            if _is_about(match.state, window):
                states.append(match.state)

        if states:
            return level, states

    return 0, []


def _is_about(summary: MemoryState, window: Window | None) -> bool:
    """Whether a summary is about the time that is asked about; one whose times are damaged is about
    none.
    """
    try:
        start = datetime.fromisoformat(summary.metadata["start"])
        end = datetime.fromisoformat(summary.metadata["end"])
    except (KeyError, TypeError, ValueError):
        return False

    return window is None or overlap((start, end), window)


def _details_of(reader: Reader, name: str) -> list[MemoryState]:
    """The whole of a name: the sources of a summary, or the last versions of a
    topic.
    """
    state = named(reader.store, name, reader.moment)
    if state.is_consolidated:
        return drill_down(reader.store, state.key)

    return list(
        reversed(
            reader.index.history(
                state.topic,
                LAST_STATES,
                reader.known_at,
            )
        )
    )


def _show_edges(
    matches: Sequence[MatchWithContext],
    packed: set[str],
) -> list[ShownText]:
    """The edges that were followed, nearest first and each once, with what stands at their far
    end.
    """
    related_states = chain.from_iterable(match.related_states for match in matches)
    nearest_first = sorted(related_states, key=lambda related: len(related.way))
    last_edges = {related.way[-1].id: related.way[-1] for related in nearest_first}
    edge_ids = _newest_of_each(last_edges.values())
    lines: dict[str, ShownText] = {}
    shown = set(packed)

    for related in nearest_first:
        edge = related.way[-1]
        if edge.id in edge_ids and edge.id not in lines:
            lines[edge.id] = related.state.key, _show_edge(related, edge, shown)
            shown.add(related.state.key)
            if related.since is not None:
                shown.add(related.since.key)

    return list(lines.values())


def _newest_of_each(edges: Iterable[MemoryEdge]) -> set[str]:
    """Of each relation of each topic the edges that became true last."""
    counts: Counter[tuple[str, str, str]] = Counter()
    newest_ids: set[str] = set()
    ordered = sorted(
        edges,
        key=lambda edge: (edge.valid_from or edge.timestamp, edge.key),
    )

    for edge in reversed(ordered):
        tail = "source", topic_of_key(edge.source), edge.relationship_type
        head = "target", topic_of_key(edge.target), edge.relationship_type
        if max(counts[tail], counts[head]) < NEWEST_OF_EACH:
            newest_ids.add(edge.id)
            counts.update((tail, head))

    return newest_ids


def _show_edge(
    related: RelatedState,
    edge: MemoryEdge,
    shown: set[str],
) -> str:
    """An edge as a line: who, how, whom, since when; and what stands there where it was not said
    yet.
    """
    tail = related.near
    head = related.state.topic

    if topic_of_key(edge.target) != topic_of_key(related.state.key):
        tail, head = head, tail

    why = f" ({edge.description})" if edge.description else ""
    line = f"{tail} --{edge.relationship_type}--> {head}, since {day(edge.valid_from)}{why}"
    if related.state.key not in shown:
        line += f": {related.state.content}"
    if related.since is not None and related.since.key not in shown:
        line += f" [since {day(related.since.valid_from)}: {related.since.content}]"

    return line


def _topics_in_detail(
    matches: Sequence[MatchWithContext],
    *,
    only_joined: bool,
) -> list[str]:
    """The topics worth detail: those found, best first, then those they are joined to."""
    topics = [match.state.topic for match in matches if match.related_states or not only_joined]

    joined: list[tuple[float, str, str]] = []
    for match in matches:
        for related in match.related_states:
            nearness = related.strength * match.similarity
            joined.append((-nearness, related.state.key, related.state.topic))

    topics += [topic for _, _, topic in sorted(joined)]
    return list(dict.fromkeys(topics))


def _last_versions(
    reader: Reader,
    topic: str,
    strategy: Strategy,
    window: Window | None,
) -> list[MemoryState]:
    """The last ten versions of a topic, newest first: of the time that is asked about, else within
    thirty days.
    """
    if window is None and strategy.of_any_age:
        window = (None, None)

    if window is None:
        window = (reader.moment - WITHIN, None)
        most = LAST_STATES
    else:
        most = _LOOKED_BACK

    states = reader.index.history(
        topic,
        most,
        reader.known_at,
        window,
    )
    return states[: -LAST_STATES - 1 : -1]


def _show_version(state: MemoryState) -> ShownText:
    kind = NAMES.get(state.consolidation_level)
    label = f"{kind} summary" if kind else f"v{state.version}"
    if state.valid_until:
        until = f" until {day(state.valid_until)}"
    else:
        until = ""

    head = f"[{state.topic}, {label}, since {day(state.valid_from)}{until}]"
    return state.key, f"{head} {state.content}"


def _show_new(packer: Packer, states: Iterable[MemoryState]) -> list[ShownText]:
    """Those that are not in the context yet."""
    packed = packer.ids
    return [_show_version(state) for state in states if state.key not in packed]
