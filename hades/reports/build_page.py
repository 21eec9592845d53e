"""The picture of one build: where the time went, topics by size, what moved, weights, and whether contracts held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from hades.reports import page
from hades.reports.charts import Bar, Move, bar_chart, flow_chart, histogram, waterfall
from hades.reports.page import badge, escape, number
from schemas.intervals import iso

_TOPICS = 24
_MOVES = 14


@dataclass(frozen=True)
class Stage:
    """One stage: how long it took and, in a sentence, what it did."""

    name: str
    seconds: float
    sentence: str = ""
    skipped: bool = False


@dataclass(frozen=True)
class TopicRow:
    """A topic and how many belong to it now and before (None: it is new)."""

    name: str
    size: int
    before: int | None = None


@dataclass(frozen=True)
class Contract:
    """One contract: how many rules, and the ids of those that are broken."""

    contract: str
    rules: int
    broken: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class BuildFacts:
    """Everything the page shows, as plain values; what is empty is left out of it.

    `weights` and `weights_before` are counts in equal bins of [0, 1], by relation type (or `mentions`). `counts` are
    rows by collection, `counts_before` those of the build before. `problem` says why a build did not publish.
    """

    build: str
    as_of: datetime
    snapshot_before: str | None = None
    snapshot_after: str | None = None
    stages: Sequence[Stage] = ()
    topics: Sequence[TopicRow] = ()
    weights: Mapping[str, Sequence[int]] = field(default_factory=dict)
    weights_before: Mapping[str, Sequence[int]] = field(default_factory=dict)
    moved: Sequence[Move] = ()
    contracts: Sequence[Contract] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    counts_before: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    problem: str = ""


def write_build_report(path: Path, build: BuildFacts) -> Path:
    """Write the page of a build and say where it is."""
    lead = f"as of {escape(iso(build.as_of)[:10])} · {_serving(build)}"
    return page.write(path, f"Build {build.build}", lead, _body(build), "Written by HADES; nothing here is fetched.")


def _body(build: BuildFacts) -> Iterator[str]:
    yield page.tiles(_headlines(build))
    if build.problem:
        yield page.section("Why it stopped", "", f'<div class="broken"><p>{escape(build.problem)}</p></div>')
    if build.notes:
        yield "".join(f'<p class="note">{escape(note)}</p>' for note in build.notes) + "<p></p>"
    if build.stages:
        yield _stages(build.stages)
    if build.topics:
        yield _topics(build.topics)
    if build.moved:
        yield _move(build.moved)
    if build.weights:
        yield _weights(build)
    yield f'<div class="two">{_counts(build)}{_contracts(build.contracts)}</div>'


def _headlines(build: BuildFacts) -> list[tuple[str, str, str]]:
    broken = sum(len(one.broken) for one in build.contracts)
    rules = sum(one.rules for one in build.contracts)
    moved = sum(move.count for move in build.moved)
    facts = [
        (page.seconds(sum(stage.seconds for stage in build.stages)), f"in {len(build.stages)} stages", ""),
        (number(build.counts.get("entities", 0)), "entities", ""),
        (number(build.counts.get("relations", 0)), "relations", ""),
        (number(len(build.topics)), "topics", ""),
        (number(moved), "entities moved", ""),
    ]
    verdict = (f"{broken} broken", "of the rules", "bad") if broken else (number(rules), "rules hold", "good")
    return [*(facts if build.topics else facts[:3]), *([verdict] if build.contracts else [])]


def _serving(build: BuildFacts) -> str:
    before, after = (
        f"<code>{escape(one)}</code>" if one else None for one in (build.snapshot_before, build.snapshot_after)
    )
    if build.problem or after is None:
        return f"not published; {before} still serves" if before else "not published"
    if before is None:
        return f"{after} serves, the first"
    return f"{after} serves, unchanged" if before == after else f"{after} serves in place of {before}"


def _stages(stages: Sequence[Stage]) -> str:
    bars = [
        Bar(one.name, one.seconds, f"nothing to do: {one.sentence}" if one.skipped else one.sentence) for one in stages
    ]
    return page.section("Stages", "where the time went, and what for", waterfall("Stages one after the other", bars))


def _topics(topics: Sequence[TopicRow]) -> str:
    ranked = sorted(topics, key=lambda topic: (-topic.size, topic.name))
    bars = [Bar(topic.name, topic.size, _change(topic)) for topic in ranked[:_TOPICS]]
    half = (len(bars) + 1) // 2 if len(bars) > 8 else len(bars)
    charts = [bar_chart("Topics by size", bars[:half])]
    if bars[half:]:
        charts.append(bar_chart("Topics by size, continued", bars[half:], largest=bars[0].value))
    rest = ranked[_TOPICS:]
    more = (
        f'<p class="soft">and {number(len(rest))} smaller ones with {number(sum(one.size for one in rest))} entities '
        f"together; the median topic has {number(_median(ranked))}</p>"
        if rest
        else ""
    )
    columns = f'<div class="two" style="margin-top:10px">{"".join(f"<div>{one}</div>" for one in charts)}</div>'
    return page.section(
        "Topics by size", "how many entities belong to each, and the change since the build before", columns, more
    )


def _change(topic: TopicRow) -> str:
    if topic.before is None:
        return "new"
    difference = topic.size - topic.before
    return f"{difference:+,}" if difference else ""


def _median(ranked: Sequence[TopicRow]) -> int:
    return ranked[len(ranked) // 2].size


def _move(moves: Sequence[Move]) -> str:
    ranked = sorted(moves, key=lambda move: (-move.count, move.source, move.target))
    shown, rest = ranked[:_MOVES], ranked[_MOVES:]
    more = (
        f'<p class="soft">and {number(sum(move.count for move in rest))} in {number(len(rest))} smaller moves</p>'
        if rest
        else ""
    )
    return page.section(
        "What moved", "entities that changed their topic in this build", flow_chart("What moved", shown), more
    )


def _weights(build: BuildFacts) -> str:
    charts = []
    for name in sorted(build.weights, key=lambda kind: (-sum(build.weights[kind]), kind)):
        counts = build.weights[name]
        chart = histogram(f"Weights of {name}", counts, build.weights_before.get(name))
        total = f'<span class="soft count">{number(sum(counts))}</span>'
        charts.append(f"<div><h3>{escape(name)} {total}</h3>{chart}</div>")
    about = "how heavy edges are, by type, from 0 to 1"
    if build.weights_before:
        about += "; the outline is the build before"
    return page.section("Weights", about, f'<div class="small">{"".join(charts)}</div>')


def _counts(build: BuildFacts) -> str:
    rows = []
    for name, count in build.counts.items():
        before = build.counts_before.get(name)
        rows.append((escape(name), number(count), _difference(count, before)))
    return page.section(
        "Rows",
        "in the store, and what this build changed",
        page.table(("collection", "rows", "change"), rows, numeric=(1, 2)),
    )


def _difference(count: int, before: int | None) -> str:
    if before is None:
        return '<span class="soft">new</span>'
    if count == before:
        return '<span class="soft">·</span>'
    tone = "up" if count > before else "down"
    return f'<span class="{tone}">{count - before:+,}</span>'


def _contracts(contracts: Sequence[Contract]) -> str:
    rows = [
        (
            escape(one.contract),
            str(one.rules),
            _state(one),
            "<br>".join(f"<code>{escape(rule)}</code>" for rule in one.broken) or escape(one.note),
        )
        for one in contracts
    ]
    return page.section(
        "Contracts", "rules between the stages", page.table(("contract", "rules", "", ""), rows, numeric=(1,))
    )


def _state(contract: Contract) -> str:
    if contract.broken:
        return badge(f"{len(contract.broken)} broken", "bad")
    return badge("holds", "good") if contract.rules else badge("not checked", "idle")
