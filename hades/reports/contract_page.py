"""The page of the contracts: which rules hold, and for each that does not, the rows that break it and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hades.reports import page
from hades.reports.page import badge, escape, number


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
class Gate:
    """One boundary; `rules` are id and sentence, `checked` how many of them were looked at: none, if it never ran."""

    boundary: str
    about: str
    rules: Sequence[tuple[str, str]]
    hits: Sequence[Hit]
    checked: int
    rows: int
    seconds: float
    notes: Sequence[str] = field(default_factory=tuple)


def write_contract_page(path: Path, gates: Sequence[Gate]) -> Path:
    """One page over all boundaries, the broken ones first."""
    broken = sum(len(gate.hits) for gate in gates)
    rules = sum(gate.checked for gate in gates)
    lead = (
        "Every rule holds; the build may go on."
        if not broken
        else "The build stopped here. The graph that serves was left alone and still answers."
    )
    facts = [
        (str(broken), "broken rules" if broken != 1 else "broken rule", "bad" if broken else "good"),
        (number(rules), "rules looked at", ""),
        (number(sum(gate.rows for gate in gates)), "rows looked at", ""),
        (page.seconds(sum(gate.seconds for gate in gates)), "spent looking", ""),
    ]
    ordered = sorted(gates, key=lambda gate: not gate.hits)
    body = [page.tiles(facts), *(_gate(gate) for gate in ordered)]
    return page.write(path, "Contracts", escape(lead), body, "Rules live in <code>schemas/contracts/</code>.")


def _gate(gate: Gate) -> str:
    failed = {hit.rule for hit in gate.hits}
    passed = badge("holds", "good") if gate.checked else badge("not checked", "idle")
    state = badge(f"{len(gate.hits)} broken", "bad") if gate.hits else passed
    rules = page.table(
        ("", "rule", "what must hold"),
        [
            (badge("broken", "bad") if rule in failed else passed, f"<code>{rule}</code>", escape(said))
            for rule, said in gate.rules
        ],
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in gate.notes)
    told = f"{gate.about} · {number(gate.rows)} rows in {page.seconds(gate.seconds)}"
    return (
        f'<section><h2>{escape(gate.boundary)} {state}</h2><p class="soft">{escape(told)}</p>{notes}'
        f"{''.join(_hit(hit) for hit in gate.hits)}"
        f"<details><summary>{len(gate.rules)} rules</summary>{rules}</details></section>"
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
