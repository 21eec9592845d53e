"""Chains of deltas: which versions are kept whole, how an older one shrinks, and how it is made whole again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hades.memory.history import rows as records
from hades.memory.history.deltas import WHOLE, Delta, delta_between, pieces_of, rebuilt
from hades.memory.history.names import STATES, state_key
from hades.ports.store import RowStore
from schemas.memory import MemoryState

KEYFRAME_EVERY = 32  # a rebuild applies at most thirty-one recipes
_WORTH = 0.7  # a delta larger than this share of the content saves too little to pay for its rebuild

WITHOUT_VECTOR = tuple(name for name in MemoryState.model_fields if name not in ("key", "embedding"))


def stored(state: MemoryState, parent: MemoryState | None) -> MemoryState:
    """A new version as it is stored: whole, with the recipe by which it will shrink where one saves enough."""
    if parent is None or is_keyframe(state.version):
        return state
    delta = delta_between(parent.content, state.content)
    if delta.size > _WORTH * len(state.content) or rebuilt(parent.content, delta) != state.content:
        return state
    return state.model_copy(update={"is_delta": True, "diff_from_parent": WHOLE + delta.recipe})


def shrunk(state: MemoryState) -> MemoryState:
    """A version that is not the newest any more: a delta keeps only what it added."""
    if not state.is_delta or not is_whole(state):
        return state
    recipe = str(state.diff_from_parent).removeprefix(WHOLE)
    return state.model_copy(update={"content": pieces_of(state.content, recipe), "diff_from_parent": recipe})


def outward(state: MemoryState) -> MemoryState:
    """A version as readers see it: the same whether it is the newest or long superseded."""
    if state.diff_from_parent is None:
        return state
    return state.model_copy(update={"diff_from_parent": state.diff_from_parent.removeprefix(WHOLE)})


def make_whole(rows: RowStore, states: Sequence[MemoryState]) -> list[MemoryState]:
    """The versions with their exact content, in the order given; one read for all their ancestors."""
    if all(is_whole(state) for state in states):
        return [outward(state) for state in states]
    held = {state.key: state for state in states}
    missing = {key for state in states for key in ancestors(state)} - held.keys()
    if missing:
        columns = ("topic", "content", "version", "timestamp", "diff_from_parent", "is_delta")
        table = rows.get(STATES, sorted(missing), columns=columns)
        held |= {one.key: one for one in records.read(table, MemoryState)}
    return make_whole_from(held, states)


def make_whole_from(held: dict[str, MemoryState], states: Sequence[MemoryState]) -> list[MemoryState]:
    """The versions with their exact content; `held` has them and their ancestors by key."""
    contents: dict[str, str] = {}
    return [outward(state.model_copy(update={"content": _content(state, held, contents)})) for state in states]


def is_keyframe(version: int) -> bool:
    """Whether this version is kept whole whatever changed."""
    return version % KEYFRAME_EVERY == 1


def is_whole(state: MemoryState) -> bool:
    """Whether the row holds the whole content."""
    return not state.is_delta or str(state.diff_from_parent).startswith(WHOLE)


def unshrunk(state: MemoryState, content: str) -> MemoryState:
    """A version that is the newest again: its whole content, and the recipe by which it shrinks."""
    return state.model_copy(update={"content": content, "diff_from_parent": f"{WHOLE}{state.diff_from_parent}"})


def ancestors(state: MemoryState) -> Iterable[str]:
    """Keys of the versions that a delta is rebuilt from."""
    if is_whole(state):
        return ()
    first = (state.version - 1) // KEYFRAME_EVERY * KEYFRAME_EVERY + 1
    return (state_key(state.topic, version) for version in range(first, state.version))


def _content(state: MemoryState, held: dict[str, MemoryState], contents: dict[str, str]) -> str:
    """The whole content of a version; what was rebuilt on the way is remembered for its descendants."""
    pending: list[MemoryState] = []
    current = state
    while current.key not in contents and not is_whole(current):
        pending.append(current)
        current = held[state_key(state.topic, current.version - 1)]
    content = contents.get(current.key, current.content)
    contents[current.key] = content
    for delta in reversed(pending):
        recipe = Delta(str(delta.diff_from_parent), delta.content)
        content = contents[delta.key] = rebuilt(content, recipe, f"version {delta.version} of {delta.topic!r}")
    return content
