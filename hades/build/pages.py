"""One build and one check of contracts as pages for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from hades.build.contracts.rule import Contract, ContractResult, Finding
from hades.reports import page
from hades.reports.page import WIDTH, Bar, badge, bar_chart, escape, histogram, number

# The page of one build: where the time went, topics by size, what moved, weights, and whether contracts held.


Report = Mapping[str, Any]  # what a build says of itself, see `report.write_reports`
Move = tuple[str, str, int]  # from a topic, to a topic, how many entities
_COLUMN = 8  # topics in one chart


def write_build_page(
    path: Path, build: Report, before: Report, moves: Sequence[Move], standing: Sequence[Report] = ()
) -> Path:
    """Write the page of a build and say where it is; `before` is the report of the build before, or empty.

    `standing` are the answers of standing questions that changed.
    """
    lead = f"as of {escape(build['as_of'][:10])} · {_serving(build['snapshot'], before.get('snapshot'))}"
    body = _body(build, before, moves, standing)
    return page.write(path, f"Build {build['build']}", lead, body, "Written by HADES; nothing here is fetched.")


def _serving(after: str, before: str | None) -> str:
    serves = f"<code>{escape(after)}</code> serves"
    if before in (None, after):
        return f"{serves}, {'the first' if before is None else 'unchanged'}"
    return f"{serves} in place of <code>{escape(before)}</code>"


def _body(build: Report, before: Report, moves: Sequence[Move], standing: Sequence[Report]) -> Iterator[str]:
    yield page.tiles(_headlines(build, moves))
    if standing:
        columns = ("question", "change", "before", "after", "cause")
        rows = [tuple(escape(row[name]) for name in columns) for row in standing]
        yield page.section("Standing questions", "answers that this build changed, and why", page.table(columns, rows))
    yield _stages(build)
    if build["exam"]["kinds"]:
        yield _exam(build["exam"])
    if build["topics"]:
        yield _topics(build["topics"], before.get("topics", {}))
    if moves:
        pairs = [(escape(source), escape(target), number(count)) for source, target, count in moves]
        moved = page.table(("from", "to", "entities"), pairs, numeric=(2,))
        yield page.section("What moved", "entities that changed their topic in this build, the most first", moved)
    yield _weights(build["histograms"], before.get("histograms", {}))
    yield f'<div class="two">{_counts(build, before)}{_contracts(build["contracts"])}</div>'


def _headlines(build: Report, moves: Sequence[Move]) -> list[tuple[str, str, str]]:
    broken = sum(len(one["broken"]) for one in build["contracts"])
    rules = sum(one["rules"] for one in build["contracts"])
    return [
        (page.seconds(sum(_seconds(build).values())), f"in {len(_seconds(build))} stages", ""),
        (number(build["counts"].get("entities", 0)), "entities", ""),
        (number(build["counts"].get("relations", 0)), "relations", ""),
        (number(len(build["topics"])), "topics", ""),
        (number(sum(count for _, _, count in moves)), "entities moved", ""),
        (f"{broken} broken", "of the rules", "bad") if broken else (number(rules), "rules hold", "good"),
    ]


def _seconds(build: Report) -> dict[str, float]:
    return {name: seconds for name, seconds in build["seconds"].items() if name in build["log"]}


def _stages(build: Report) -> str:
    idle = dict.fromkeys(build["skipped"], "nothing to do: ")
    bars = [Bar(name, took, idle.get(name, "") + build["log"][name]) for name, took in _seconds(build).items()]
    chart = bar_chart("Stages", bars, None, WIDTH, page.seconds)
    return page.section("Stages", "where the time went, and what for", chart)


def _topics(topics: Mapping[str, int], before: Mapping[str, int]) -> str:
    ranked = sorted(topics.items(), key=lambda topic: (-topic[1], topic[0]))
    bars = [Bar(name, size, _change(size, before.get(name))) for name, size in ranked]
    charts = [
        bar_chart("Topics by size", bars[start : start + _COLUMN], largest=bars[0].value)
        for start in range(0, len(bars), _COLUMN)
    ]
    columns = f'<div class="two" style="margin-top:10px">{"".join(f"<div>{one}</div>" for one in charts)}</div>'
    return page.section("Topics by size", "entities in each, and the change since the build before", columns)


def _exam(exam: Report) -> str:
    """How many questions of each kind the corpus supplies, and what came of them where they were asked."""
    taken = exam["taken"]
    if taken is None:
        chart = bar_chart("Exam", [Bar(kind, count) for kind, count in exam["kinds"].items()], None, WIDTH)
        return page.section("Exam", "questions that the corpus supplies, by kind; hades exam asks them", chart)
    about = f"share found among the first five, by kind, when {taken['snapshot']} was asked; exam.html has the worst"
    return page.section("Exam", about, _kinds(taken))


def _kinds(taken: Report) -> str:
    bars = [Bar(kind, row["recall@5"], f"of {row['questions']:,}") for kind, row in taken["kinds"].items()]
    return bar_chart("Exam", bars, 1.0, WIDTH, "{:.0%}".format)


def write_exam_page(path: Path, taken: Report) -> Path:
    """Write the page of an exam that was asked and say where it is."""
    score = taken["score"]
    facts = [(f"{score[name]:.1%}", said, "") for name, said in (("recall@1", "found first"), ("recall@5", "in five"))]
    facts += [] if taken["auroc"] is None else [(f"{taken['auroc']:.2f}", "AUROC of the confidence", "")]
    worst = [(escape(one["kind"]), escape(one["question"]), escape(one["where"])) for one in taken["worst"]]
    body = [
        page.tiles([(number(taken["questions"]), "questions", ""), *facts]),
        page.section("By kind", "share found among the first five", _kinds(taken)),
        page.section("The worst questions", "", page.table(("kind", "question", "wanted"), worst)),
    ]
    return page.write(path, "Exam", f"<code>{escape(taken['snapshot'])}</code> was asked", body, "Written by HADES.")


def _change(now: int, before: int | None) -> str:
    return "new" if before is None else f"{now - before:+,}" if now != before else ""


def _weights(weights: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> str:
    charts = []
    for name in sorted(weights, key=lambda kind: (-sum(weights[kind]), kind)):
        total = f'<span class="soft count">{number(sum(weights[name]))}</span>'
        chart = histogram(f"Weights of {name}", weights[name], before.get(name))
        charts.append(f"<div><h3>{escape(name)} {total}</h3>{chart}</div>")
    about = "how heavy edges are, by type, from 0 to 1; the outline is the build before"
    return page.section("Weights", about, f'<div class="small">{"".join(charts)}</div>')


def _counts(build: Report, before: Report) -> str:
    rows = []
    for name, count in build["counts"].items():
        change = _change(count, before.get("counts", {}).get(name))
        tone = {"+": "up", "-": "down"}.get(change[:1], "soft")
        rows.append((escape(name), number(count), f'<span class="{tone}">{change or "·"}</span>'))
    table = page.table(("collection", "rows", "change"), rows, numeric=(1, 2))
    return page.section("Rows", "in the store, and what this build changed", table)


def _contracts(contracts: Sequence[Report]) -> str:
    rows = [
        (
            escape(one["contract"]),
            str(one["rules"]),
            _state(len(one["broken"]), one["rules"]),
            "<br>".join(f"<code>{escape(rule)}</code>" for rule in one["broken"]) or escape(one["note"]),
        )
        for one in contracts
    ]
    table = page.table(("contract", "rules", "", ""), rows, numeric=(1,))
    return page.section("Contracts", "rules between the stages", table)


def _state(broken: int, checked: int) -> str:
    if broken:
        return badge(f"{broken} broken", "bad")
    return badge("holds", "good") if checked else badge("not checked", "idle")


# The picture of a build as PNG, for places that show no HTML: time by stage and topics by size.


_BLUE, _ORANGE = "#2d6fa3", "#cc7a29"


def draw_build(build: Report) -> bytes | None:
    """The picture; None where matplotlib, which the extras `flows` and `ranker` bring, is not installed."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.figure import Figure

    stages, topics = _seconds(build), {_shorten(name): size for name, size in build["topics"].items()}
    figure = Figure(figsize=(11.0, 1.2 + 0.34 * max(len(stages), len(topics), 3)), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_bars(left, "seconds by stage", stages, _BLUE, "{:.1f}")
    _draw_bars(right, "entities by topic", topics, _ORANGE, "{:,.0f}")
    figure.suptitle(f"{build['build']}: {build['snapshot']}", fontsize=11)
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=90, metadata={"Software": None})
    return drawn.getvalue()


def _draw_bars(panel: Any, title: str, rows: Mapping[str, float], colour: str, form: str) -> None:
    bars = panel.barh(range(len(rows)), list(rows.values()), color=colour)
    panel.bar_label(bars, [form.format(value) for value in rows.values()], padding=3, fontsize=8)
    panel.set_yticks(range(len(rows)), list(rows), fontsize=8)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xticks([])
    for side in ("top", "right", "bottom"):
        panel.spines[side].set_visible(False)


def _shorten(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:35]}…"


# The page of the contracts: which rules hold, and for each that does not, the rows that break it and what to do.


def write_contract_page(path: Path, checked: Sequence[tuple[Contract, ContractResult]]) -> Path:
    """One page over all contracts, the broken ones first."""
    results = [result for _, result in checked]
    broken = sum(len(one.findings) for one in results)
    lead = (
        "Every rule holds; the build may go on."
        if not broken
        else "The build stopped here. The graph that serves was left alone and still answers."
    )
    facts = [
        (str(broken), "broken rules" if broken != 1 else "broken rule", "bad" if broken else "good"),
        (number(sum(one.rules for one in results)), "rules looked at", ""),
        (number(sum(one.rows for one in results)), "rows looked at", ""),
        (page.seconds(sum(one.seconds for one in results)), "spent looking", ""),
    ]
    ordered = sorted(checked, key=lambda one: one[1].is_green)
    body = [page.tiles(facts), *(_section(*one) for one in ordered)]
    return page.write(path, "Contracts", escape(lead), body, "Rules live in <code>hades/build/contracts/</code>.")


def _section(contract: Contract, result: ContractResult) -> str:
    failed = {finding.rule for finding in result.findings}
    rows = [
        (_state(int(rule.id in failed), result.rules), f"<code>{rule.id}</code>", escape(rule.sentence))
        for rule in contract.rules
    ]
    rules = page.table(("", "rule", "what must hold"), rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in result.notes)
    told = f"{contract.about} · {number(result.rows)} rows in {page.seconds(result.seconds)}"
    return (
        f"<section><h2>{escape(result.contract)} {_state(len(failed), result.rules)}</h2>"
        f'<p class="soft">{escape(told)}</p>{notes}{"".join(map(_broken, result.findings))}'
        f"<details><summary>{len(contract.rules)} rules</summary>{rules}</details></section>"
    )


def _broken(finding: Finding) -> str:
    """A broken rule with its first rows; a rule of a whole frame has none."""
    share = f"{number(finding.failed)} of {number(finding.rows)} rows of {finding.frame} break it"
    share = share if finding.keys else f"{finding.frame} has {finding.observed[0]} rows"
    rows = zip(finding.keys or (finding.frame,), finding.observed, strict=True)
    shown = page.table(
        ("row", "what stands there"),
        [(f'<span class="key">{escape(key)}</span>', escape(observed)) for key, observed in rows],
    )
    more = finding.failed - len(finding.observed)
    rest = f'<p class="soft">and {number(more)} more</p>' if more > 0 else ""
    repair = f"<p><b>Next:</b> {page.prose(finding.repair)}</p>" if finding.repair else ""
    return (
        f'<div class="broken"><h3><code>{escape(finding.rule)}</code></h3>'
        f"<p>{escape(finding.sentence[:1].upper() + finding.sentence[1:])}: {escape(share)}.</p>"
        f"{repair}{shown}{rest}</div>"
    )
