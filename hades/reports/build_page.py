"""One build, one contract check as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from hades.reports import page
from hades.reports.page import WIDTH, Bar, badge, bar_chart, escape, histogram, number
from schemas.ids import iso

# The picture of one build: where the time went, topics by size, what moved, weights, and whether contracts held.


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
class Move:
    """How many went from one place to another."""

    source: str
    target: str
    count: int


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
    rows by collection, `counts_before` those of the build before. `problem` says why a build did not publish,
    `standing` which answers of standing questions changed.
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
    standing: Sequence[Mapping[str, Any]] = ()


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
    if build.standing:
        yield _standing(build.standing)
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


def _standing(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = ("question", "change", "before", "after", "cause")
    told = [tuple(escape(str(row[name])) for name in columns) for row in rows]
    return page.section("Standing questions", "answers that this build changed, and why", page.table(columns, told))


def _stages(stages: Sequence[Stage]) -> str:
    bars = [
        Bar(one.name, one.seconds, f"nothing to do: {one.sentence}" if one.skipped else one.sentence) for one in stages
    ]
    return page.section(
        "Stages", "where the time went, and what for", bar_chart("Stages", bars, None, WIDTH, page.seconds)
    )


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
    rows = [(escape(move.source), escape(move.target), number(move.count)) for move in shown]
    moved = page.table(("from", "to", "entities"), rows, numeric=(2,))
    return page.section("What moved", "entities that changed their topic in this build", moved, more)


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


# The picture of a build as PNG, for places that show no HTML: time by stage and topics by size.


_PICTURE_TOPICS = 10
_BLUE, _ORANGE = "#2d6fa3", "#cc7a29"


def draw_build(build: BuildFacts) -> bytes | None:
    """The picture; None where matplotlib, which the extras `flows` and `ranker` bring, is not installed."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    topics = list(build.topics)[:_PICTURE_TOPICS]
    rows = max(len(build.stages), len(topics), 3)
    figure = Figure(figsize=(11.0, 1.2 + 0.34 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_bars(left, "seconds by stage", [(one.name, one.seconds) for one in build.stages], _BLUE, "{:.1f}")
    _draw_bars(
        right, "entities by topic", [(_shorten(one.name), float(one.size)) for one in topics], _ORANGE, "{:,.0f}"
    )
    figure.suptitle(f"{build.build}: {build.snapshot_after or 'not published'}", fontsize=11)
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=90, metadata={"Software": None})
    return drawn.getvalue()


def _draw_bars(panel: Any, title: str, rows: list[tuple[str, float]], colour: str, form: str) -> None:
    places = range(len(rows))
    bars = panel.barh(places, [value for _, value in rows], color=colour)
    panel.bar_label(bars, [form.format(value) for _, value in rows], padding=3, fontsize=8)
    panel.set_yticks(places, [name for name, _ in rows], fontsize=8)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xticks([])
    for side in ("top", "right", "bottom"):
        panel.spines[side].set_visible(False)


def _shorten(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:35]}…"


# The page of the contracts: which rules hold, and for each that does not, the rows that break it and what to do.


@dataclass(frozen=True)
class Hit:
    """A broken rule with its first rows: key and what stood there."""

    rule: str
    sentence: str
    frame: str
    failed: int
    rows: int
    examples: Sequence[tuple[str, str]]
    repair: str = ""


@dataclass(frozen=True)
class ContractSection:
    """One contract; `rules` are id and sentence, `checked` how many of them were looked at: none, if it never ran."""

    contract: str
    about: str
    rules: Sequence[tuple[str, str]]
    hits: Sequence[Hit]
    checked: int
    rows: int
    seconds: float
    notes: Sequence[str] = field(default_factory=tuple)


def write_contract_page(path: Path, sections: Sequence[ContractSection]) -> Path:
    """One page over all contracts, the broken ones first."""
    broken = sum(len(section.hits) for section in sections)
    rules = sum(section.checked for section in sections)
    lead = (
        "Every rule holds; the build may go on."
        if not broken
        else "The build stopped here. The graph that serves was left alone and still answers."
    )
    facts = [
        (str(broken), "broken rules" if broken != 1 else "broken rule", "bad" if broken else "good"),
        (number(rules), "rules looked at", ""),
        (number(sum(section.rows for section in sections)), "rows looked at", ""),
        (page.seconds(sum(section.seconds for section in sections)), "spent looking", ""),
    ]
    ordered = sorted(sections, key=lambda section: not section.hits)
    body = [page.tiles(facts), *(_section(section) for section in ordered)]
    return page.write(path, "Contracts", escape(lead), body, "Rules live in <code>hades/build/contracts/</code>.")


def _section(section: ContractSection) -> str:
    failed = {hit.rule for hit in section.hits}
    passed = badge("holds", "good") if section.checked else badge("not checked", "idle")
    state = badge(f"{len(section.hits)} broken", "bad") if section.hits else passed
    rules = page.table(
        ("", "rule", "what must hold"),
        [
            (badge("broken", "bad") if rule in failed else passed, f"<code>{rule}</code>", escape(said))
            for rule, said in section.rules
        ],
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in section.notes)
    told = f"{section.about} · {number(section.rows)} rows in {page.seconds(section.seconds)}"
    return (
        f'<section><h2>{escape(section.contract)} {state}</h2><p class="soft">{escape(told)}</p>{notes}'
        f"{''.join(_hit(hit) for hit in section.hits)}"
        f"<details><summary>{len(section.rules)} rules</summary>{rules}</details></section>"
    )


def _hit(hit: Hit) -> str:
    share = f"{number(hit.failed)} of {number(hit.rows)} rows of {hit.frame} break it"
    rows = page.table(
        ("row", "what stands there"),
        [(f'<span class="key">{escape(key)}</span>', escape(observed)) for key, observed in hit.examples],
    )
    more = hit.failed - len(hit.examples)
    rest = f'<p class="soft">and {number(more)} more</p>' if more > 0 and hit.examples else ""
    repair = f"<p><b>Next:</b> {page.prose(hit.repair)}</p>" if hit.repair else ""
    return (
        f'<div class="broken"><h3><code>{escape(hit.rule)}</code></h3>'
        f"<p>{escape(hit.sentence[:1].upper() + hit.sentence[1:])}: {escape(share)}.</p>"
        f"{repair}{rows if hit.examples else ''}{rest}</div>"
    )
