"""Pages are whole without a network, well formed, and say what they were given."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hades.night.contracts.check import write_page
from hades.night.contracts.rule import ContractResult, Finding
from hades.night.report import write_build_page, write_exam_page
from hades.reports.page import Bar, seconds, templates

HOSTILE = '<script>alert("x")</script> & more'
BUILD = {
    "build": "n1",
    "as_of": "2026-03-01T00:00:00+00:00",
    "snapshot": "g2",
    "seconds": {"topics": 61.0, "weights": 0.0, "contracts": 3.0},
    "log": {"topics": "412 topics", "weights": "equal inputs"},
    "skipped": ["weights"],
    "topics": {HOSTILE: 40, "topic 1": 30, "topic 2": 3},
    "histograms": {"cites": [0, 3, 1, 0]},
    "accepted": [],
    "contracts": [
        {"contract": "edges", "rules": 16, "broken": [], "note": ""},
        {"contract": "weights", "rules": 16, "broken": ["weights.cost_given"], "note": ""},
    ],
    "counts": {"entities": 1_234, "relations": 5},
    "exam": {"kinds": {"heading": 12, "link": 3}, "taken": None},
}
TAKEN = {
    "snapshot": "g1",
    "questions": 15,
    "auroc": 0.81,
    "score": {"recall@1": 0.5, "recall@5": 0.9},
    "kinds": {
        "heading": {"questions": 12, "recall@5": 0.91},
        "link": {"questions": 3, "recall@5": 2 / 3},
    },
    "worst": [
        {
            "kind": "link",
            "question": HOSTILE,
            "wanted": "doc_chunks/c1",
            "where": "guide.md › Locks",
            "place": None,
        }
    ],
}
BEFORE = {
    "snapshot": "g1",
    "topics": {HOSTILE: 30},
    "histograms": {"cites": [0, 2, 2, 0]},
    "counts": {"entities": 1_200},
}
MOVES = [(HOSTILE, "topic 1", 7), ("topic 2", "topic 1", 3)]
STANDING = [
    {
        "question": HOSTILE,
        "change": "changed",
        "before": "a",
        "after": "b",
        "cause": "x.md was changed",
    }
]


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


def test_a_build_report_shows_stages_topics_moves_weights_contracts_and_counts(
    tmp_path: Path,
) -> None:
    path = write_build_page(tmp_path / "reports" / "n1.html", BUILD, BEFORE, MOVES, STANDING)
    text = read(path)
    for told in (
        "Build n1",
        "as of 2026-03-01",
        "g2 serves in place of g1",
        "412 topics",
        "nothing to do: equal inputs",
        HOSTILE,
        "40 +10",
        "30 new",
        "weights.cost_given",
        "1,234",
        "+34",
        f"{HOSTILE}topic 17",
        "Standing questions",
        "x.md was changed",
    ):
        assert told in text, told
    again = write_build_page(tmp_path / "again.html", BUILD, BEFORE, MOVES, STANDING)
    assert again.read_bytes() == path.read_bytes()


def test_the_exam_stands_in_the_report_and_on_a_page_of_its_own(tmp_path: Path) -> None:
    asked = {**BUILD, "exam": {**BUILD["exam"], "taken": TAKEN}}
    assert "12" in read(write_build_page(tmp_path / "n1.html", BUILD, BEFORE, MOVES))
    assert "when g1 was asked" in (
        shown := read(write_build_page(tmp_path / "n2.html", asked, BEFORE, MOVES))
    )
    page = read(write_exam_page(tmp_path / "exam.html", TAKEN))
    assert all("67% of 3" in text for text in (shown, page))
    assert all(told in page for told in ("50.0%", "90.0%", "0.81", HOSTILE, "guide.md › Locks"))


def test_the_contract_page_puts_broken_contracts_first_with_rows_and_next_step(
    tmp_path: Path,
) -> None:
    broken = Finding(
        "edges.no_self_loop",
        "relations",
        "it joins two",
        25,
        100,
        ("k1",),
        (HOSTILE,),
        "run `hades ingest`",
    )
    results = [
        ContractResult("nodes", 1, (), 10, 0.1),
        ContractResult("edges", 1, (broken,), 10, 0.1),
        ContractResult("weights", 0, (), 10, 0.1, ("no relation has been weighed yet",)),
    ]
    path = write_page(results, tmp_path)
    text = read(path)
    assert text.index("relations, mentions and the edges") < text.index("what was read: documents")
    for told in (
        "25 of 100 rows of relations break it",
        "k1",
        HOSTILE,
        "and 24 more",
        "no relation has been weighed",
    ):
        assert told in text, told
    assert "<code>hades ingest</code>" in path.read_text()
    assert "not checked" in text


CHARTS = templates().get_template("charts.html").module
bar_chart, histogram = CHARTS.bar_chart, CHARTS.histogram


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
