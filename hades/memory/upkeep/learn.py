"""Learning from use: importance from what people say and judge, trust from decided conflicts,
discovered edges.

Importance holds up the strength of a state, which search and context rank by. A source is trusted
as its newest state under `source/` says; deciding a conflict moves it towards the share of
conflicts that it won.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hades.memory.history.edges import NewEdge, draw_many
from hades.memory.history.facts import DEFAULT_TRUST
from hades.memory.history.rows import (
    NEWEST,
    STATES,
    MemoryRefused,
    check_share,
    in_unit,
    key_of,
    scan,
    state_id,
    topic_key,
    topic_of_key,
)
from hades.memory.history.states import Act, by_keys, named, set_importance, states_at
from hades.memory.memory import Memory
from hades.memory.recall.search import BY_SIMILARITY, MemoryMatch, take_accesses
from hades.ports.store import RowStore, Term
from hades.text.sentences import words_of
from schemas.catalogue import as_table
from schemas.ids import Mask
from schemas.memory import MemoryAudit, MemoryEdge, MemoryEdgeKind, MemoryRelation, MemoryState

SOURCES = "source/"
_SAID = 4  # decided conflicts that what a person said of a source counts as
_STEP = 0.25


def rate_state(
    memory: Memory,
    name: str,
    *,
    importance: float | None = None,
    is_useful: bool | None = None,
    who: str = "",
    why: str = "",
) -> MemoryState:
    """Set the importance of what holds of a topic, or of a version, or move it by a judgement; undo
    restores it.
    """
    if (importance is None) == (is_useful is None):
        raise MemoryRefused(
            f"say either how important {name!r} is or whether it was useful, one of the two"
        )

    def work(rows: RowStore, act: Act) -> MemoryState:
        state = named(rows, name, act.at)
        if importance is None:
            goal = 1.0 if is_useful else 0.0
            step = (goal - state.importance_score) * _STEP
            new_importance = round(state.importance_score + step, 6)
        else:
            new_importance = check_share("importance", importance)

        set_importance(rows, state, new_importance, act)
        return state.model_copy(update={"importance_score": new_importance})

    return memory.in_act(who, why, work)


def judge_states(
    memory: Memory,
    good: Sequence[str],
    bad: Sequence[str],
    *,
    who: str = "",
    why: str = "",
) -> list[MemoryState]:
    """Move the importance of states that an answer showed; those that are gone since are left
    out.
    """
    known = {state.key for state in memory.states([*good, *bad])}

    rated = []
    for state_ids, is_useful in ((good, True), (bad, False)):
        for key in map(key_of, state_ids):
            if key in known:
                rated.append(
                    rate_state(
                        memory,
                        key,
                        is_useful=is_useful,
                        who=who,
                        why=why,
                    )
                )

    return rated


def count_accesses(memory: Memory) -> dict[str, int]:
    """Count what was read since the last time into the states: `reads` of how many `states`; no
    ranking changes.
    """
    with take_accesses(memory.home) as accesses:

        def work(rows: RowStore) -> int:
            counted = []
            for state in by_keys(rows, sorted(accesses)):
                moments = accesses[state.key]
                last = max(state.last_accessed or moments[-1], moments[-1])
                counts = {"access_count": state.access_count + len(moments)}
                counted.append(
                    {
                        "_key": state.key,
                        **counts,
                        "last_accessed": last,
                    }
                )

            if counted:
                rows.patch(STATES, as_table(STATES, counted))

            return len(counted)

        states = in_unit(memory.store, work) if accesses else 0

    return {
        "reads": sum(map(len, accesses.values())),
        "states": states,
    }


def trust_source(
    memory: Memory,
    source: str,
    trust: float,
    *,
    who: str = "",
    why: str = "",
) -> MemoryState:
    """Say how far a source is trusted, 0 to 1: the next version of the topic `source/NAME`."""
    if not source.strip():
        raise MemoryRefused("the source has no name; name it as facts do in `source`")

    share = check_share("trust", trust)
    content = f"The source {source} is trusted {share:.2f}."
    return memory.add(
        f"{SOURCES}{source}",
        content,
        metadata={"trust": share},
        who=who,
        why=why,
    )


def known_trust(memory: Memory) -> dict[str, float]:
    """How far each source is trusted, of those that somebody spoke about."""
    trusted: dict[str, float] = {}
    keys = map(topic_key, memory.topics(SOURCES))

    for state in states_at(memory.store, keys, Mask(), memory.now()):
        trust = state.metadata.get("trust")
        if isinstance(trust, int | float):
            trusted[state.topic.removeprefix(SOURCES)] = float(trust)

    return trusted


def learn_trust(
    memory: Memory,
    winner: str,
    loser: str,
    *,
    who: str = "",
) -> None:
    """Move the trust in two sources after a person decided between their facts."""
    for source, won in ((winner, 1), (loser, 0)):
        if not source.strip() or winner == loser:
            continue

        state = memory.latest(f"{SOURCES}{source}")
        known = dict(state.metadata) if state else {}
        stated = known.get("said", known.get("trust", DEFAULT_TRUST))
        decided = known.get("decided", 0) + 1
        wins = known.get("won", 0) + won
        share = round((wins + _SAID * stated) / (decided + _SAID), 4)
        content = (
            f"The source {source} is trusted {share:.2f}: it won {wins} of {decided} decided "
            "conflicts."
        )
        learned = {
            "trust": share,
            "said": stated,
            "decided": decided,
            "won": wins,
        }
        memory.add(
            f"{SOURCES}{source}",
            content,
            metadata=learned,
            who=who,
            why="a conflict was decided",
        )


DISCOVERED = "discover"
CLEAR = 0.55  # similarity from which two topics are related
_NEIGHBOURS = 3  # edges from one topic
_LOOKED_AT = 10
_SHOWN_WORDS = 8
_LEFT_OUT = ("summary/", "source/")


def discover_edges(
    memory: Memory,
    *,
    limit: int = 1_000,
    who: str = "",
) -> tuple[list[MemoryEdge], int, int]:
    """Join topics that changed since the last time to those they are near to; at most `limit`
    topics.

    Each is searched for by its own words; an edge that a person drew, or closed, between the two
    topics is respected. The edges drawn, how many topics were looked at, and how many that changed
    have to wait for the next time.
    """
    notes = scan(
        memory.store,
        MemoryAudit,
        [Term("action", "==", DISCOVERED)],
    )
    since = max((datetime.fromisoformat(note.detail["until"]) for note in notes), default=None)
    topics = [topic_key(topic) for topic in memory.topics() if not topic.startswith(_LEFT_OUT)]
    current = states_at(
        memory.store,
        topics,
        Mask(),
        memory.now(),
    )
    changed = [state for state in current if since is None or state.timestamp > since]
    changed.sort(key=lambda state: (state.timestamp, state.key))
    looked_at = changed[:limit]

    proposed: dict[tuple[str, str], NewEdge] = {}
    for state in looked_at:
        for match, confidence in _find_near(memory, state):
            first, second = sorted(map(topic_of_key, (state.key, match.state.key)))
            proposed.setdefault(
                (first, second),
                _discovered_edge(state, match, confidence, memory),
            )

    moment = looked_at[-1].timestamp if looked_at else None

    def work(rows: RowStore, act: Act) -> list[MemoryEdge]:
        drawn = draw_many(rows, list(proposed.values()), act)
        if moment is not None:
            act.note(
                DISCOVERED,
                looked_at[-1].key,
                {"until": moment.isoformat()},
            )
        return drawn

    if looked_at:
        edges = memory.in_act(who, "discovered by similarity", work)
    else:
        edges = []

    return edges, len(looked_at), len(changed) - len(looked_at)


def _find_near(memory: Memory, state: MemoryState) -> list[tuple[MemoryMatch, float]]:
    """Other topics by the share of their similarity in that of the state with itself."""
    matches = memory.search(
        f"{state.topic} {state.content}",
        limit=_LOOKED_AT,
        priority=BY_SIMILARITY,
    )
    itself = next(
        (match.similarity for match in matches if match.state.topic == state.topic),
        1.0,
    )
    # Joined now, or once.
    edges = memory.edges(
        state.topic,
        mask=Mask(known_at=NEWEST),
        everything=True,
    )
    joined = {topic_of_key(edge.source) for edge in edges}
    joined |= {topic_of_key(edge.target) for edge in edges}

    near = []
    for match in matches:
        if itself:
            confidence = min(1.0, match.similarity / itself)
        else:
            confidence = 0.0

        topic = match.state.topic
        is_candidate = topic != state.topic and not topic.startswith(_LEFT_OUT)
        is_joined = topic_of_key(match.state.key) in joined

        if is_candidate and not is_joined and confidence >= CLEAR:
            near.append((match, round(confidence, 4)))

    return near[:_NEIGHBOURS]


def _discovered_edge(
    state: MemoryState,
    match: MemoryMatch,
    confidence: float,
    memory: Memory,
) -> NewEdge:
    shared = sorted(_words(state) & _words(match.state))[:_SHOWN_WORDS]
    if memory.embedder is not None:
        model = memory.embedder.model.tag
    else:
        model = "words"

    return NewEdge(
        state_id(state.key),
        state_id(match.state.key),
        MemoryRelation.RELATES_TO,
        MemoryEdgeKind.CROSS_TOPIC,
        confidence,
        description=f"both speak of {', '.join(shared)}" if shared else "near in meaning",
        metadata={
            "discovered_by": model,
            "confidence": confidence,
            "shared_words": shared,
        },
    )


def _words(state: MemoryState) -> frozenset[str]:
    text = f"{state.topic} {state.content}"
    return words_of(text.replace("_", " ").replace("/", " "))
