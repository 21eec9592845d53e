"""Pages are whole without a network, well formed, and say what they were given."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hades.reports.build_page import (
    BuildFacts,
    Contract,
    ContractSection,
    Hit,
    Move,
    Stage,
    TopicRow,
    write_build_report,
    write_contract_page,
)
from hades.reports.page import Bar, bar_chart, histogram, seconds

HOSTILE = '<script>alert("x")</script> & more'
FACTS = BuildFacts(
    build="n1",
    as_of=datetime(2026, 3, 1, tzinfo=UTC),
    snapshot_before="g1",
    snapshot_after="g2",
    stages=[Stage("hierarchy", 61.0, "412 topics"), Stage("weights", 0.0, "equal inputs", skipped=True)],
    topics=[TopicRow(HOSTILE, 40, 30), *(TopicRow(f"topic {number}", number) for number in range(1, 31))],
    weights={"cites": [0, 3, 1, 0]},
    weights_before={"cites": [0, 2, 2, 0]},
    moved=[Move(HOSTILE, "topic 1", 7), Move("topic 2", "topic 1", 3)],
    contracts=[Contract("edges", 16), Contract("weights", 16, ["weights.cost_given"])],
    counts={"entities": 1_234, "relations": 5},
    counts_before={"entities": 1_200},
    standing=[{"question": HOSTILE, "change": "changed", "before": "a", "after": "b", "cause": "x.md was changed"}],
)


class Whole(HTMLParser):
    """Checks that elements close in order and that nothing is fetched or run."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not [name for name, _ in attrs if name in ("src", "href") or name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "line")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> str:
    """The text of a page that is well formed."""
    parser = Whole()
    parser.feed(path.read_text("utf-8"))
    parser.close()
    assert parser.open == []
    assert "http" not in path.read_text("utf-8")
    assert "url(" not in path.read_text("utf-8")
    return parser.text


def test_a_build_report_shows_stages_topics_moves_weights_contracts_and_counts(tmp_path: Path) -> None:
    text = read(write_build_report(tmp_path / "reports" / "n1.html", FACTS))
    for told in (
        "Build n1", "as of 2026-03-01", "g2 serves in place of g1", "412 topics", "nothing to do: equal inputs",
        HOSTILE, "40 +10", "30 new", "and 7 smaller ones with 28 entities together", "weights.cost_given",
        "1,234", "+34", f"{HOSTILE}topic 17", "Standing questions", "x.md was changed",
    ):  # fmt: skip
        assert told in text, told


def test_a_build_that_stopped_says_why_and_what_still_serves(tmp_path: Path) -> None:
    facts = BuildFacts("n2", FACTS.as_of, snapshot_before="g1", problem="weights.cost_given: 3 rows")
    text = read(write_build_report(tmp_path / "n2.html", facts))
    assert "not published; g1 still serves" in text
    assert "weights.cost_given: 3 rows" in text


def test_the_same_facts_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_build_report(tmp_path / name, FACTS).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_the_contract_page_puts_broken_boundaries_first_with_rows_and_next_step(tmp_path: Path) -> None:
    hit = Hit("edges.no_self_loop", "it joins two", "relations", 25, 100, [("k1", HOSTILE)], "run `hades ingest`")
    sections = [
        ContractSection("nodes", "what was read", [("nodes.a", "a")], [], 1, 10, 0.1),
        ContractSection("edges", "relations", [("edges.no_self_loop", "it joins two")], [hit], 1, 100, 0.2),
        ContractSection(
            "weights", "weights", [("weights.a", "a")], [], 0, 0, 0.0, ("no relation has been weighed yet",)
        ),
    ]
    path = write_contract_page(tmp_path / "contracts.html", sections)
    text = read(path)
    assert text.index("it joins two") < text.index("what was read")
    for told in ("25 of 100 rows of relations break it", "k1", HOSTILE, "and 24 more", "no relation has been weighed"):
        assert told in text, told
    assert "<code>hades ingest</code>" in path.read_text()
    assert "not checked" in text


@pytest.mark.parametrize(
    "chart",
    [
        bar_chart("Topics", [Bar(HOSTILE, 3, "+1"), Bar("b", 0)]),
        bar_chart("Nothing", []),
        bar_chart("Stages", [Bar("a", 0.0), Bar("b", 2.0, HOSTILE)], write_value=seconds),
        histogram("Weights", [0, 0, 0]),
        histogram("Weights", [1, 2, 3], [3, 2, 1]),
    ],
)
def test_a_chart_is_well_formed_and_says_its_title_to_those_who_cannot_see_it(chart: str) -> None:
    root = ElementTree.fromstring(chart)
    assert root.get("role") == "img"
    assert root.find("title") is not None
    assert root.find("desc") is not None


def test_bars_are_as_long_as_their_amounts() -> None:
    root = ElementTree.fromstring(bar_chart("Topics", [Bar("a", 100), Bar("b", 25)]))
    long, short = (float(rect.get("width", "0")) for rect in root.iter("rect"))
    assert short == pytest.approx(long / 4, abs=0.1)
