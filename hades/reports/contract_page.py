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
class ContractSection:
    """One contract; `rules` are id and sentence, `checked` how many of them were looked at: none, if it never ran.

    `rows` were checked now, `carried` earlier: neither they nor what they refer to has changed since.
    """

    contract: str
    about: str
    rules: Sequence[tuple[str, str]]
    hits: Sequence[Hit]
    checked: int
    rows: int
    seconds: float
    notes: Sequence[str] = field(default_factory=tuple)
    carried: int = 0


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
        (number(sum(section.carried for section in sections)), "rows carried from an earlier check", ""),
        (page.seconds(sum(section.seconds for section in sections)), "spent looking", ""),
    ]
    ordered = sorted(sections, key=lambda section: not section.hits)
    body = [page.tiles(facts), *(_section(section) for section in ordered)]
    return page.write(path, "Contracts", escape(lead), body, "Rules live in <code>schemas/contracts/</code>.")


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
    carried = f", {number(section.carried)} unchanged since an earlier check" if section.carried else ""
    told = f"{section.about} · {number(section.rows)} rows in {page.seconds(section.seconds)}{carried}"
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
