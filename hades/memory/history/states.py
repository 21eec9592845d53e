"""Versions, deltas, current, as of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import pyarrow as pa

from hades.errors import HadesError
from hades.memory.history.rows import (
    NEWEST,
    STATES,
    WHOLE,
    MemoryRefused,
    UnknownMemory,
    aware,
    check_share,
    check_text,
    check_topic,
    check_user_topic,
    delta_between,
    edge_id,
    fetch,
    is_state_key,
    legal,
    pieces_of,
    put,
    read,
    rebuild,
    revision_key,
    state_id,
    state_key,
    topic_key,
    version_keys,
)
from hades.ports.store import RowStore, Term
from schemas.ids import Mask, content_key, is_visible
from schemas.memory import (
    LatestState,
    MemoryAudit,
    MemoryEdge,
    MemoryEdgeKind,
    MemoryRelation,
    MemoryState,
    MemoryTrace,
)
from schemas.record import canonical_json


@dataclass
class Act:
    """One act of one person. Its steps are recorded together and, when they belong together, undone
    together.
    """

    who: str
    why: str
    at: datetime
    is_one: bool = True  # a bulk load is many acts at one time
    steps: list[MemoryAudit] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The id of the act: that of its first step."""
        return self.steps[0].key if self.steps else ""

    def note(
        self,
        action: str,
        subject: str,
        detail: Mapping[str, Any] | None = None,
        *,
        why: str = "",
    ) -> None:
        """Record a step; written by `keep`."""
        values = dict(detail or {})
        step = len(self.steps) if self.is_one else 0
        digest = content_key(
            "a",
            self.who,
            action,
            subject,
            canonical_json(values),
            self.key,
        )[2:14]
        # In the order of time and of the steps of an act, so that the newest records stand
        # together.
        key = f"{round(self.at.timestamp() * 1_000_000):017d}_{step:04d}_{digest}"
        self.steps.append(
            MemoryAudit(
                key=key,
                subject=subject,
                action=action,
                who=self.who,
                at=self.at,
                why=why or self.why,
                detail=values,
            )
        )

    def keep(self, rows: RowStore) -> None:
        """Write the steps, inside the transaction that did them."""
        if self.is_one and len(self.steps) > 1:
            first, *later_steps = self.steps
            self.steps = [_with_detail(first, steps=[step.key for step in later_steps])]
            self.steps += [_with_detail(step, act=first.key) for step in later_steps]

        put(rows, self.steps)


def _with_detail(step: MemoryAudit, **detail: Any) -> MemoryAudit:
    return step.model_copy(update={"detail": {**step.detail, **detail}})


def act_of(rows: RowStore, audit_id: str) -> list[MemoryAudit]:
    """The steps of an act, in the order they were taken; any of them names it."""
    first = fetch(
        rows,
        MemoryAudit,
        [legal("record of an act", audit_id)],
    ).get(audit_id)
    if first is None:
        raise UnknownMemory(
            f"memory holds no act {audit_id}; `hades memory history TOPIC --json` prints their ids"
        )

    if "act" in first.detail:
        return act_of(rows, first.detail["act"])

    # Keys of steps begin with their time and their place in the act.
    return [
        first,
        *fetch(
            rows,
            MemoryAudit,
            first.detail.get("steps", []),
        ).values(),
    ]


KEYFRAME_EVERY = 32  # a rebuild applies at most thirty-one recipes
# A delta larger than this share of the content saves too little to pay for its rebuild.
_WORTH = 0.7
WITHOUT_VECTOR = tuple(
    name for name in MemoryState.model_fields if name not in ("key", "embedding")
)


def add_recipe(state: MemoryState, parent: MemoryState | None) -> MemoryState:
    """A new version as it is stored: whole, with the recipe by which it will shrink where one saves
    enough.
    """
    if parent is None or state.version % KEYFRAME_EVERY == 1:
        return state

    recipe, pieces = delta_between(parent.content, state.content)
    if len(recipe) + len(pieces) > _WORTH * len(state.content):
        return state

    rebuild(parent.content, recipe, pieces)  # notices now what could not be read later
    return state.model_copy(
        update={
            "is_delta": True,
            "diff_from_parent": WHOLE + recipe,
        }
    )


def shrink(state: MemoryState) -> MemoryState:
    """A delta that is not the newest version any more: it keeps only what it added."""
    recipe = str(state.diff_from_parent).removeprefix(WHOLE)
    return state.model_copy(
        update={
            "content": pieces_of(state.content, recipe),
            "diff_from_parent": recipe,
        }
    )


def without_marker(state: MemoryState) -> MemoryState:
    """A version as readers see it: the same whether it is the newest or long superseded."""
    if state.diff_from_parent is None:
        return state
    return state.model_copy(update={"diff_from_parent": state.diff_from_parent.removeprefix(WHOLE)})


def make_whole(rows: RowStore, states: Sequence[MemoryState]) -> list[MemoryState]:
    """The versions with their exact content, in the order given; one read for all their
    ancestors.
    """
    states_by_key = {}
    for state in states:
        states_by_key[state.key] = state

    missing = set(chain.from_iterable(map(ancestors, states))) - states_by_key.keys()
    if missing:
        columns = ("topic", "content", "version", "timestamp", "diff_from_parent", "is_delta")
        table = rows.get(STATES, sorted(missing), columns=columns)
        states_by_key |= {ancestor.key: ancestor for ancestor in read(table, MemoryState)}

    return make_whole_from(states_by_key, states)


def make_whole_from(
    states_by_key: Mapping[str, MemoryState],
    states: Sequence[MemoryState],
) -> list[MemoryState]:
    """The versions with their exact content; `held` has them and their ancestors by key."""
    contents: dict[str, str] = {}

    def content(state: MemoryState) -> str:
        if is_whole(state):
            return state.content

        if state.key not in contents:
            parent = states_by_key[state_key(state.topic, state.version - 1)]
            recipe = str(state.diff_from_parent)
            label = f"version {state.version} of {state.topic!r}"
            contents[state.key] = rebuild(
                content(parent),
                recipe,
                state.content,
                label,
            )

        return contents[state.key]

    whole = []
    for state in states:
        if not is_whole(state):
            state = state.model_copy(update={"content": content(state)})
        whole.append(without_marker(state))

    return whole


def is_whole(state: MemoryState) -> bool:
    """Whether the row holds the whole content."""
    return not state.is_delta or str(state.diff_from_parent).startswith(WHOLE)


def unshrink(state: MemoryState, content: str) -> MemoryState:
    """A version that is the newest again: its whole content, and the recipe by which it shrinks."""
    return state.model_copy(
        update={
            "content": content,
            "diff_from_parent": f"{WHOLE}{state.diff_from_parent}",
        }
    )


def ancestors(state: MemoryState) -> Iterable[str]:
    """Keys of the versions that a delta is rebuilt from."""
    if is_whole(state):
        return ()

    first = (state.version - 1) // KEYFRAME_EVERY * KEYFRAME_EVERY + 1
    return (state_key(state.topic, version) for version in range(first, state.version))


INSTANT = timedelta(microseconds=1)
DEFAULT_IMPORTANCE = 0.5


@dataclass(frozen=True)
class NewState:
    """A version to be written: what is said, about what, since when it holds, and how sure it
    is.
    """

    topic: str
    content: str
    tags: tuple[str, ...] = ()
    confidence: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    importance: float | None = None
    consolidated_from: tuple[str, ...] = ()
    consolidation_level: int = 0
    embedding: tuple[float, ...] | None = None
    embedding_model: str | None = None
    after: int | None = None  # the version it must follow, where it was made from that one


def renewed(state: MemoryState, **changes: Any) -> NewState:
    """What a version says, to be said again with some changes."""
    names = {state_field.name for state_field in fields(NewState)} & MemoryState.model_fields.keys()

    values = {}
    for name in names:
        values[name] = getattr(state, name)

    return NewState(
        **{
            **values,
            "importance": state.importance_score,
            **changes,
        }
    )


def append(
    rows: RowStore,
    new: Sequence[NewState],
    act: Act,
) -> list[MemoryState]:
    """Write versions in order, inside the caller's transaction; each follows the topic's newest at
    that moment.

    The row of the newest version is whole; when the next one comes it shrinks to what it added to
    its parent.
    """
    topics = {topic_key(check(version).topic.strip()) for version in new}
    pointers = fetch(rows, LatestState, list(topics))
    head_keys = [pointer.latest_state_id for pointer in pointers.values()]
    heads = fetch(rows, MemoryState, head_keys)
    written: dict[str, MemoryState] = {}

    appended = []
    for version in new:
        topic = topic_key(version.topic.strip())
        pointer = pointers.get(topic)
        parent = heads[pointer.latest_state_id] if pointer else None
        state = _next_version(pointer, parent, version, act)

        if parent is not None and parent.is_delta and is_whole(parent):
            written[parent.key] = shrink(parent)

        written[state.key] = heads[state.key] = state
        pointers[topic] = _pointer_at(pointer, state)
        act.note(
            "add",
            state.key,
            {
                "topic": state.topic,
                "version": state.version,
            },
        )
        appended.append(without_marker(state))

    put(rows, written.values())
    # Where another writer moved a pointer since this transaction began, the store refuses, and the
    # unit begins again.
    put(rows, pointers.values())
    put(rows, [edge for edge in map(evolution, appended) if edge])
    return appended


def check(new: NewState) -> NewState:
    """The version, or a refusal naming what is wrong with it."""
    if new.consolidation_level:
        topic = check_topic(new.topic)
    else:
        topic = check_user_topic(new.topic)

    for text in (new.content, *new.tags):
        check_text(f"the text for {topic!r}", text)

    if not new.content.strip():
        raise MemoryRefused(
            f"the content for {topic!r} is blank; say what is known, or `erase` what was"
        )

    for name in ("confidence", "importance"):
        if (value := getattr(new, name)) is not None:
            check_share(name, value, f" of {topic!r}")

    return new


class Overtaken(HadesError):
    """Another version came between reading one and writing what follows from it; read again and
    decide.
    """


def _pointer_at(pointer: LatestState | None, state: MemoryState) -> LatestState:
    """The pointer of a topic at its next version; says whether that is still sure to be the current
    one.
    """
    assert state.valid_from is not None
    follows = pointer is None or _holds_at(pointer, state.valid_from)
    return LatestState(
        key=topic_key(state.topic),
        topic=state.topic,
        latest_state_id=state.key,
        version=state.version,
        updated_at=state.timestamp,
        began=state.valid_from,
        in_order=follows and state.valid_until is None,
    )


def _holds_at(pointer: LatestState, moment: datetime) -> bool:
    """Whether the pointer alone shows that the version said last is the one that holds."""
    return pointer.in_order and pointer.began is not None and pointer.began <= moment


def _next_version(
    pointer: LatestState | None,
    parent: MemoryState | None,
    new: NewState,
    act: Act,
) -> MemoryState:
    """The next version of a topic, as it is stored; its time is later than its parent's, whatever
    the clocks say.
    """
    topic = check_topic(new.topic)
    version = pointer.version + 1 if pointer else 1

    if new.after is not None and new.after != version - 1:
        raise Overtaken(
            f"{topic!r} is at version {version - 1}, not {new.after}; nothing was written: read it "
            "again"
        )

    if pointer:
        at = max(act.at, pointer.updated_at + INSTANT)
    else:
        at = act.at

    begins = aware("valid_from", new.valid_from or at)
    if new.valid_until:
        ends = aware("valid_until", new.valid_until)
    else:
        ends = None

    if ends is not None and ends <= begins:
        raise MemoryRefused(
            f"{topic!r} would hold at no moment: from {begins} until {ends}, which is not after "
            "it; swap or leave one"
        )

    importance = new.importance
    if importance is None:  # continuing a topic leaves it as it is
        if parent:
            importance = parent.importance_score
        else:
            importance = DEFAULT_IMPORTANCE

    values = {
        **vars(new),
        "topic": topic,
        "metadata": dict(new.metadata),
        "valid_from": begins,
        "valid_until": ends,
    }
    del values["importance"], values["after"]
    state = MemoryState(
        **values,
        key=state_key(topic, version),
        version=version,
        timestamp=at,
        parent_state_id=state_key(topic, version - 1) if version > 1 else None,
        importance_score=importance,
        is_consolidated=new.consolidation_level > 0,
    )
    return add_recipe(
        state,
        parent if parent and parent.version == version - 1 else None,
    )


def evolution(state: MemoryState) -> MemoryEdge | None:
    """The edge from a version's parent to it; none for the first."""
    if state.parent_state_id is None:
        return None

    source = state_id(state.parent_state_id)
    target = state_id(state.key)
    edge = edge_id(
        source,
        MemoryRelation.EVOLVES_TO,
        target,
        state.timestamp,
    )
    return MemoryEdge(
        key=revision_key(edge, 1),
        source=source,
        target=target,
        relationship_type=MemoryRelation.EVOLVES_TO,
        kind=MemoryEdgeKind.TEMPORAL,
        timestamp=state.timestamp,
        valid_from=state.timestamp,
        recorded_at=state.timestamp,
    )


def pointer_to(rows: RowStore, topic: str) -> LatestState | None:
    """Which version of a topic is the newest."""
    key = topic_key(check_topic(topic))
    return fetch(rows, LatestState, [key]).get(key)


def by_keys(rows: RowStore, keys: Sequence[str]) -> list[MemoryState]:
    """The versions of these keys that exist and were not erased, in key order, whole, without their
    vectors.
    """
    if not keys:
        return []

    states = read(rows.get(STATES, keys, columns=WITHOUT_VECTOR), MemoryState)
    return make_whole(rows, [state for state in states if not is_erased(state)])


def is_erased(state: MemoryState) -> bool:
    """Whether only the place of this version is left."""
    return "erased" in state.metadata and not state.content


def choose_version(versions: Iterable[MemoryState], mask: Mask) -> MemoryState | None:
    """The version of one topic that holds at the mask, or None. This is the rule; what follows
    finds rows.

    Of the versions that were known and not retracted at `known_at` and that hold at `as_of`, the
    one that began last holds; of two that began together, the one said last. So a correction of the
    past leaves the present alone, and a version that expired or has not begun yet is never shown as
    current.
    """
    holding = [version for version in versions if holds(version, mask)]
    return max(
        holding,
        key=lambda version: (version.valid_from or version.timestamp, version.version),
        default=None,
    )


def holds(state: MemoryState, mask: Mask) -> bool:
    """Whether a version was known and in force at the mask."""
    times = state.valid_from, state.valid_until, state.timestamp, state.retracted_at
    return not is_erased(state) and is_visible(mask, *times)


def state_at(
    rows: RowStore,
    topic: str,
    moment: datetime,
    known_at: datetime,
) -> MemoryState | None:
    """The version that held at the moment, None where none did.

    Versions come from an index in the order in which they began, last first, more of them at each
    look.
    """
    mask = Mask(as_of=moment, known_at=known_at)
    same = Term("topic", "==", check_topic(topic))
    checked = 0
    limit = 2

    while True:
        table = rows.last(
            STATES,
            same=same,
            by="valid_from",
            at_most=moment,
            limit=limit,
            columns=WITHOUT_VECTOR,
        )
        for state in read(table.slice(checked), MemoryState):
            if holds(state, mask):
                return make_whole(rows, [state])[0]

        if table.num_rows < limit:
            return None

        checked = limit
        limit = 8 * limit


def states_at(
    rows: RowStore,
    topic_keys: Iterable[str],
    mask: Mask,
    now: datetime,
) -> list[MemoryState]:
    """The version of each of these topics that holds at the mask, in the order of their keys.

    A mask that names no moment asks about now. Clocks of writers differ, so now is never before the
    topic's last write.
    """
    pointers = fetch(rows, LatestState, sorted(set(topic_keys)))
    known_at = mask.known_at or NEWEST
    direct: list[str] = []

    chosen: list[MemoryState] = []
    for pointer in pointers.values():
        moment = mask.as_of or mask.known_at or max(now, pointer.updated_at)
        if known_at == NEWEST and _holds_at(pointer, moment):
            direct.append(pointer.latest_state_id)
        elif state := state_at(rows, pointer.topic, moment, known_at):
            chosen.append(state)

    return sorted(
        [*by_keys(rows, direct), *chosen],
        key=lambda state: state.key,
    )


def named(rows: RowStore, name: str, now: datetime) -> MemoryState:
    """The version that an id names, or the one of a topic that holds now; else the one it was given
    last.

    Writers need the last resort: a topic whose only version expired can still be linked or changed.
    """
    key = name.removeprefix(f"{STATES}/")
    versions: list[MemoryState] = []

    if is_state_key(key):
        versions = by_keys(rows, [key])
    elif pointer := pointer_to(rows, name):
        versions = states_at(rows, [pointer.key], Mask(), now)
        versions = versions or by_keys(rows, [pointer.latest_state_id])

    if not versions:
        raise UnknownMemory(
            f"memory holds no topic or state {name!r}; `hades memory topics` lists what there is"
        )

    return versions[0]


def resolve_ids(
    rows: RowStore,
    names: Sequence[str],
    now: datetime,
) -> dict[str, str]:
    """The `_id` that each of these topics or states stands for; one look-up for all that hold
    now.
    """
    keys = {name: name.removeprefix(f"{STATES}/") for name in names}
    topics = [name for name, key in keys.items() if not is_state_key(key)]

    current = {}
    for state in states_at(rows, map(topic_key, topics), Mask(), now):
        current[state.topic] = state.key

    for name in topics:
        keys[name] = current.get(name.strip()) or named(rows, name, now).key

    return {name: state_id(key) for name, key in keys.items()}


def keys_of(rows: RowStore, name: str) -> list[str]:
    """The keys that a name stands for: one state, or all versions of a topic."""
    if not is_state_key(name.removeprefix(f"{STATES}/")):
        pointer = pointer_to(rows, name)
        if pointer is not None:
            return version_keys(pointer.topic, pointer.version)

    # A state, or a name that memory does not hold, which `named` refuses.
    return [named(rows, name, NEWEST).key]


_RUN = 1_000  # versions read at a time


def trace(rows: RowStore, topic: str) -> MemoryTrace:
    """The topic's versions by id, oldest first."""
    pointer = pointer_to(rows, topic)
    if pointer is None:
        raise UnknownMemory(
            f"memory holds no topic {topic!r}; `hades memory topics` lists what there is"
        )

    keys = version_keys(pointer.topic, pointer.version)
    return MemoryTrace(
        key=pointer.key,
        topic=pointer.topic,
        states=tuple(keys),
        created_at=fetch(rows, MemoryState, keys[:1])[keys[0]].timestamp,
        updated_at=pointer.updated_at,
    )


def history(
    rows: RowStore,
    topic: str,
    *,
    limit: int | None = None,
    mask: Mask = Mask(),
) -> list[MemoryState]:
    """The versions a reader at the mask sees, oldest first; of more than `limit`, the newest
    ones.
    """
    pointer = pointer_to(rows, topic)
    if pointer is None:
        return []

    end = pointer.version
    run = limit or _RUN
    versions: list[MemoryState] = []

    while end > 0 and (limit is None or len(versions) < limit):
        batch = by_keys(rows, version_keys(pointer.topic, end, end - run + 1))
        versions = [version for version in batch if holds(version, mask)] + versions
        end = end - run
        run = _RUN

    return versions if limit is None else versions[-limit:]


RATED = "rate"


def set_importance(
    rows: RowStore,
    state: MemoryState,
    importance: float,
    act: Act,
) -> None:
    """Write the importance of a version and note what it was, in the caller's transaction."""
    column = pa.array([importance], pa.float64())
    rows.patch(
        STATES,
        pa.table(
            {
                "_key": [state.key],
                "importance_score": column,
            }
        ),
    )
    detail = {
        "topic": state.topic,
        "before": state.importance_score,
        "after": importance,
    }
    act.note(RATED, state.key, detail)
