"""The page of a plan, for people who approve it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from hades.night.summary import markdown_table
from hades.reports import page


def write_page(path: Path, plan: Mapping[str, Any]) -> Path:
    """Write what a plan would change as one HTML page, old and new side by side; where it is."""
    return page.write(
        path,
        "plan.html",
        f"Plan {plan['plan']}",
        plan=plan,
        kinds=kind_rows(plan),
        rollback=rollback_sentence(plan),
    )


def kind_rows(plan: Mapping[str, Any]) -> list[tuple[str, int, int, int, int]]:
    """What came, changed and went of each kind of row, and what only counts otherwise."""
    rows = []
    for name, kind in plan["rows"]["kinds"].items():
        counts = []
        for change in ("added", "changed", "removed", "figures"):
            counts.append(kind.get(change, 0))

        if any(counts):
            rows.append((name, counts[0], counts[1], counts[2], counts[3]))

    return rows


def from_difference(
    old: str,
    new: str,
    width: int,
) -> tuple[str, str]:
    """Two texts of at most this width that begin shortly before they differ."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    if max(len(old), len(new)) > width:
        start = max(0, same - width // 3)
    else:
        start = 0

    lead = "…" if start else ""
    return lead + old[start : start + width], lead + new[start : start + width]


def rollback_sentence(plan: Mapping[str, Any]) -> str:
    """What a plan after a rollback is compared with; empty where the store is what serves."""
    if not plan.get("store_is_at") or plan["after"] == plan["before"]:
        return ""
    return (
        f"{plan['before']} serves since a rollback, and the store is still at "
        f"{plan['store_is_at']}: rows are compared with the store, answers with what serves; "
        "applying this plan publishes both changes"
    )


def headline(plan: Mapping[str, Any]) -> str:
    """What a plan would change, in a sentence."""
    if not plan["changes"]:
        return "nothing would change"

    documents = plan["rows"]["kinds"]["documents"]
    renamed = len(plan["rows"]["renamed"])
    counts = {
        "added": documents["added"] - renamed,
        "changed": documents["changed"],
        "renamed": renamed,
        "removed": documents["removed"] - renamed,
    }

    parts = []
    for word, count in counts.items():
        if count:
            parts.append(f"{count:,} {word}")

    standing = plan["standing"]
    if parts:
        sentence = f"documents: {', '.join(parts)}"
    else:
        sentence = "no document changes"

    rows = sum(sum(counts.values()) for counts in plan["rows"]["collections"].values())
    sentence += f"; {rows:,} rows in all"
    if standing:
        sentence += f"; {standing['changed']} of {standing['asked']} standing answers"

    return sentence


def price_sentence(plan: Mapping[str, Any]) -> str:
    """What was embedded, asked and paid for the plan; an application of it pays nothing again."""
    cost = plan["cost"]
    seconds = plan["seconds"]

    texts = []
    for kind, count in cost["texts"].items():
        if count:
            texts.append(f"{count:,} {kind}")

    if texts:
        embedded = f"{' and '.join(texts)} embedded"
    else:
        embedded = "no text to embed"

    if cost["price"]:
        money = f"{cost['price']:,.4f} paid"
    else:
        money = "nothing to pay"

    if cost["price"] is None:
        money = "paid at a price that is not set"

    return (
        f"{embedded}, {cost['calls']:,} model calls, {money}, {_time(seconds['plan'])}; "
        f"to apply: 0 texts, 0 calls, about {_time(seconds['apply'])}"
    )


def markdown(plan: Mapping[str, Any]) -> str:
    """The plan as a page of the Prefect UI, for who approves it."""
    lines = [f"### {plan['plan']}: {headline(plan)}", ""]
    heads = ("", "added", "changed", "removed", "figures")
    lines += [markdown_table(heads, kind_rows(plan)), "", rollback_sentence(plan), ""]
    standing = plan["standing"]

    if standing and standing["answers"]:
        lines += ["#### Standing questions whose answer changes", ""]
        answers = []
        for answer in standing["answers"]:
            answers.append(
                (answer["question"], answer["before"], answer["after"], answer["source_after"])
            )

        heads_of_answers = ("question", "now", "then", "source then")
        lines += [markdown_table(heads_of_answers, answers), ""]

    for rule in plan["contracts"]["broken"]:
        lines.append(f"**{rule['rule']} would break**: {rule['sentence']}")

    lines += [price_sentence(plan), "", f"Old and new side by side: `{plan['folder']}/plan.html`"]
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    if seconds >= 90:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s"
