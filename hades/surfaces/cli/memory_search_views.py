"""`hades memory search` and its neighbours: what each command does, as a document and for the eye."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from hades.memory.functions import found_as_dict
from hades.memory.history.names import UnknownMemory
from hades.memory.recall.search import Found, Window, plain_state
from hades.memory.service import Memory
from hades.surfaces.cli.memory_trees import table_of
from hades.surfaces.cli.memory_views import person, with_memory
from hades.surfaces.cli.moments import moment
from hades.surfaces.cli.output import Answer
from hades.text.keywords import day
from schemas.intervals import Mask
from schemas.memory import MemoryState

_SHOWN = 100  # characters of a content in a table


def search(
    question: str,
    *,
    limit: int,
    since: str | None,
    until: str | None,
    level: int,
    related: int,
    as_of: str | None,
    known_at: str | None,
) -> Answer:
    """Topics near to a question, with what they are joined to where that is wanted."""
    mask = _mask(as_of, known_at)
    window: Window | None = None
    if since is not None or until is not None:
        window = moment(since, "--from"), moment(until, "--until")

    def do(memory: Memory) -> Answer:
        found = memory.search(question, window, limit=limit, mask=mask, levels=(level,))
        if not related:
            return Answer(
                found_as_dict(question, found), (_found(found) if found else Text("nothing is near to that"),)
            )
        walked = memory.enhance(found, related, mask=mask)
        lines = [
            Text(f"{match.state.topic}: {one.near} --{one.way[-1].relationship_type}-- {one.state.topic}, "
                 f"strength {one.strength:.2f}")
            for match in walked.matches for one in match.related
        ]  # fmt: skip
        return Answer({"query": question, **walked.as_dict()}, (_found(found), *lines))

    return with_memory(do)


def context(question: str, max_tokens: int, focus: Sequence[str], as_of: str | None, known_at: str | None) -> Answer:
    """The context for a question, and what each part takes."""

    def do(memory: Memory) -> Answer:
        made = memory.retrieve_within_budget(question, max_tokens, focus=focus, mask=_mask(as_of, known_at))
        document = made.as_dict()
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in document["tokens_by_part"].items())
        told = f"{made.tokens:,} of {made.max_tokens:,} tokens ({parts}); {made.buffer:,} kept free; asks {made.intent}"
        return Answer(document, (Text(made.text), Text(told, style="dim")))

    return with_memory(do)


def working(topic: str, question: str | None, limit: int) -> Answer:
    """What is in mind about a topic, or what of it is near to a question."""

    def do(memory: Memory) -> Answer:
        held = memory.working(topic)
        report = held.report()
        if question is not None:
            found = held.query(question, limit=limit)
            return Answer({"report": vars(report), "results": [one.as_dict() for one in found]}, (_found(found),))
        related = [(edge.relationship_type, state) for edge, state in held.related(topic)]
        document = {
            "report": vars(report),
            "history": [plain_state(state) for state in held.history(topic)],
            "related": [{"relation": relation, "state": plain_state(state)} for relation, state in related],
        }
        told = f"{report.items} versions of {report.topics} topics and {report.edges} edges are in mind"
        return Answer(document, (_versions([*held.history(topic), *(state for _, state in related)]), Text(told)))

    return with_memory(do)


def consolidate(level: int, as_of: str | None, who: str | None) -> Answer:
    """Summaries of what is over."""

    def do(memory: Memory) -> Answer:
        levels = [one.as_dict() for one in memory.consolidate(level, as_of=moment(as_of, "--as-of"), who=person(who))]
        lines = [
            Text(f"{one['name']}: {len(one['written'])} written, {one['unchanged']} as they were, "
                 f"of {one['sources']} sources"
                 + (f", {one['erased']} erased and left out" if one["erased"] else "")
                 + (f"; damaged, rebuilt where possible: {', '.join(one['damaged'])}" if one["damaged"] else ""))
            for one in levels
        ]  # fmt: skip
        return Answer({"levels": levels}, tuple(lines))

    return with_memory(do)


def compact() -> Answer:
    """Rewrite the store's files without what was deleted."""

    def do(memory: Memory) -> Answer:
        done = memory.compact()
        said = "no deleted row is left in the store's files" if done else "other processes read the store; try again"
        return Answer({"compacted": done}, (Text(said),), ok=done)

    return with_memory(do)


def drill_down(summary: str, originals: bool) -> Answer:
    """What a summary was made of."""

    def do(memory: Memory) -> Answer:
        state = memory.latest(summary) or memory.state(summary)
        if state is None:
            raise UnknownMemory(f"memory holds no summary {summary!r}; `hades memory topics summary/` lists them")
        below = memory.drill_down(state.id, to_originals=originals)
        return Answer(
            {"summary": plain_state(state), "made_of": [plain_state(one) for one in below]}, (_versions(below),)
        )

    return with_memory(do)


def _mask(as_of: str | None, known_at: str | None) -> Mask:
    return Mask(as_of=moment(as_of, "--as-of"), known_at=moment(known_at, "--known-at"))


def _found(found: Iterable[Found]) -> Table:
    table = table_of("similarity", "strength", "topic", "version", "since", "content")
    for one in found:
        state = one.state
        scores = (f"{one.similarity:.3f}", f"{one.strength:.2f}")
        table.add_row(*scores, state.topic, str(state.version), day(state.valid_from), _short(state))
    return table


def _versions(states: Iterable[MemoryState]) -> Table:
    table = table_of("topic", "version", "since", "content")
    for state in states:
        table.add_row(state.topic, str(state.version), day(state.valid_from), _short(state))
    return table


def _short(state: MemoryState) -> Text:
    told = " ".join(state.content.split())
    return Text(told if len(told) <= _SHOWN else f"{told[: _SHOWN - 3]}...")
