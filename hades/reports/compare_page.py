"""Two published graphs beside each other as a page, with a picture of what became of the topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hades.reports import page
from hades.reports.page import WIDTH, escape, histogram, number

Found = Mapping[str, Any]
_ROWS = 15
_BANDS = 30  # moves between topics that are drawn
_SIDES = ("before", "after")
_LEFT, _RIGHT, _BOX, _GAP = 300.0, WIDTH - 300.0, 12.0, 6.0


def write_comparison_page(path: Path, found: Found) -> Path:
    """Write the page of a comparison and say where it is."""
    before, after = (f"<code>{escape(found[side])}</code>" for side in _SIDES)
    decide = page.prose(f"Let it serve: `hades promote {found['after']}`; remove it: `hades discard {found['after']}`.")
    return page.write(path, "Two graphs compared", f"{before} → {after}", _body(found), decide)


def _body(found: Found) -> Iterator[str]:
    documents, topics, standing = found["documents"], found["topics"], found["standing"]
    changed = [f"{number(documents[one]['count'])} {one}" for one in documents if documents[one]["count"]]
    yield page.tiles(
        [
            (number(sum(one["count"] for one in documents.values())), "documents differ", ""),
            (*_came("nodes", found["nodes"]), ""),
            (*_came("edges", found["relations"]), ""),
            (number(found["weights"]["moved"]), "weights moved", ""),
            (number(topics["moved"]), "entities moved topic", ""),
            (number(standing.get("changed", 0)), f"of {standing.get('asked', 0)} standing answers changed", ""),
        ]
    )
    if standing.get("answers"):
        columns = ("question", "change", "before", "after")
        rows = [tuple(escape(one[name]) for name in columns) for one in standing["answers"]]
        yield page.section("Standing questions", "answers that differ", page.table(columns, rows))
    yield _topics(topics)
    yield _weights(found["weights"])
    yield '<div class="two">' + _counts("Nodes", found["nodes"]) + _counts("Edges", found["relations"]) + "</div>"
    about = ", ".join(changed) or "both graphs are of the same documents"
    rows = [(escape(change), escape(name)) for change, one in documents.items() for name in one["names"][:_ROWS]]
    yield page.section("Documents", about, page.table(("change", "document"), rows) if rows else "")


def _came(what: str, counts: Found) -> tuple[str, str]:
    came, went = (number(sum(one[side] for one in counts.values())) for side in ("added", "removed"))
    return came, f"{what} came, {went} went"


def _counts(title: str, counts: Found) -> str:
    heads = ("before", "after", "added", "removed")
    present = {kind: one for kind, one in counts.items() if one["before"] or one["after"]}
    rows = [(escape(kind), *(number(one[head]) for head in heads)) for kind, one in present.items()]
    return page.section(title, "by kind", page.table(("", *heads), rows, numeric=(1, 2, 3, 4)))


def _weights(weights: Found) -> str:
    charts = [
        f"<div><h3>{escape(kind)}</h3>{histogram(f'Weights of {kind}', both['after'], both['before'])}</div>"
        for kind, both in sorted(weights["spread"].items())
    ]
    rows = [
        (escape(one["from"]), escape(one["type"]), escape(one["to"]), f"{one['before']:.3f}", f"{one['after']:.3f}")
        for one in weights["most"][:_ROWS]
    ]
    moved = page.table(("from", "relation", "to", "before", "after"), rows, numeric=(3, 4)) if rows else ""
    about = "those that moved most; in the charts the outline is the older graph" if rows else "no weight moved"
    return page.section("Weights", about, f'<div class="small">{"".join(charts)}</div>', moved)


def _topics(topics: Found) -> str:
    sides = [
        [(escape(one["name"]), number(one["entities"])) for one in topics[side][:_ROWS]] for side in ("came", "went")
    ]
    changes = [came + went for came, went in zip_longest(*sides, fillvalue=("", ""))]
    merged = [
        (escape(", ".join(one["topics"])), escape(one["into"]), number(one["entities"]))
        for one in topics["merged"][:_ROWS]
    ]
    about = f"{number(topics['before'])} before, {number(topics['after'])} after"
    moves = [one for one in topics["flows"] if not one["stays"]][:_BANDS]
    listed = page.table(("came", "entities", "went", "entities"), changes, numeric=(1, 3)) if changes else ""
    listed += page.table(("merged", "into", "entities"), merged, numeric=(2,)) if merged else ""
    drawn = f'<p class="soft">where entities that changed their topic went</p>{flow_chart(moves)}' if moves else ""
    return page.section("Topics", about, drawn, listed)


def flow_chart(moves: Sequence[Found]) -> str:
    """Bands from the topics of the older graph, left, to those of the newer one, as wide as what moved."""
    sizes = [_sum_by(moves, side) for side in ("from", "to")]
    height = max(len(of_side) for of_side in sizes) * 26.0 + 120.0
    unit = (height - max(len(of_side) for of_side in sizes) * (_GAP + 14.0)) / max(1, sum(sizes[0].values()))
    tops = [_stack(of_side, unit) for of_side in sizes]
    marks = []
    for place, (names, x, anchor) in enumerate(((sizes[0], _LEFT, "end"), (sizes[1], _RIGHT, "start"))):
        for name, size in names.items():
            top, tall = tops[place][name], max(2.0, size * unit)
            text = x - 8 if anchor == "end" else x + _BOX + 8
            marks.append(
                f'<rect class="mark" x="{x:.0f}" y="{top:.1f}" width="{_BOX:.0f}" height="{tall:.1f}" rx="2"/>'
            )
            marks.append(f'<text x="{text:.0f}" y="{top + tall / 2 + 4:.1f}" text-anchor="{anchor}">'
                         f'{escape(name[:38])} <tspan class="soft">{number(size)}</tspan></text>')  # fmt: skip
    for move in moves:
        wide = max(1.0, move["entities"] * unit)
        left, right = (tops[place][move[side]] + wide / 2 for place, side in enumerate(("from", "to")))
        for place, side in enumerate(("from", "to")):
            tops[place][move[side]] += wide
        middle, told = WIDTH / 2, f"{move['from']} → {move['to']}: {number(move['entities'])}"
        marks.append(
            f'<path d="M{_LEFT + _BOX:.0f} {left:.1f}C{middle:.0f} {left:.1f} {middle:.0f} {right:.1f} {_RIGHT:.0f} '
            f'{right:.1f}" fill="none" stroke="var(--mark2)" stroke-opacity=".45" stroke-width="{wide:.1f}">'
            f"<title>{escape(told)}</title></path>"
        )
    bottom = max(value for of_side in tops for value in of_side.values()) + 24
    return page.svg("Moves between topics", f"{len(moves)} moves", WIDTH, bottom, marks)


def _sum_by(moves: Sequence[Found], side: str) -> dict[str, int]:
    """What moved by topic of one side, the largest first."""
    sizes: dict[str, int] = {}
    for move in moves:
        sizes[move[side]] = sizes.get(move[side], 0) + move["entities"]
    return dict(sorted(sizes.items(), key=lambda one: (-one[1], one[0])))


def _stack(sizes: Mapping[str, int], unit: float) -> dict[str, float]:
    """Where the box of each topic begins, one below the other with room for its name."""
    tops, top = {}, 8.0
    for name, size in sizes.items():
        tops[name] = top
        top += max(14.0, size * unit) + _GAP
    return tops
