"""A question that means rows of a table is answered by a filter over them, shown and cited; any
other is answered as before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from hades.wiring import open_hades
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of

PLANS = """# Plans

What each plan holds and costs.

| plan | seats | price | region |
|---|---|---|---|
| Free | 1 | $0 | Europe |
| Team | 10 | $20 | Europe |
| Business | 50 | $1,200.50 | Asia |
| Enterprise | 400 | on request | Asia |
"""
PEOPLE = (
    "name,office,birth_date,salary\nAda Holm,Karst,1980-02-01,90\nJan Brod,Orin,1991-05-03,70\n"
)
SITE = (
    "<h1>Rooms</h1><table><tr><th>room</th><th>floor</th></tr>"
    "<tr><td>Elm</td><td>3</td></tr></table>"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    pages = folder / "pages"
    pages.mkdir()
    (pages / "plans.md").write_text(PLANS)
    (pages / "people.csv").write_text(PEOPLE)
    (pages / "rooms.html").write_text(SITE)
    (pages / "notes.md").write_text("# Notes\n\nThe price of Team was discussed by Ada Holm.\n")
    book = openpyxl.Workbook()
    book.active.title = "Stock"
    for row in (("part", "count"), ("Bolt", 30), ("Nut", 12), ("Screw", 12)):
        book.active.append(row)
    book.save(pages / "parts.xlsx")
    with open_hades(settings_of(folder / "home")) as hades:
        hades.ingest.documents(pages)
        hades.build()
    return folder / "home"


@pytest.fixture(autouse=True)
def _live(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(home, monkeypatch)


def ask(question: str) -> tuple[str, str, list[dict[str, Any]]]:
    """The answer, the query that was run and the rows that it cites; no query where none was."""
    document = run_json("answer", question)
    texts = [sentence["text"] for sentence in document["sentences"]]
    if not texts or not texts[-1].startswith("Query: "):
        return "", "", []
    return texts[0], texts[1].removeprefix("Query: "), document["sources"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which plan has more than 10 seats?", "plan: Business, Enterprise"),
        ("which plans have at least 10 seats?", "plan: Team, Business, Enterprise"),
        ("how many plans have fewer than 50 seats?", "2 of 4 rows"),
        ("how many plans have more than 1,000 seats?", "0 of 4 rows"),
        ("how many plans are there?", "4 of 4 rows"),
        ("what does the plan Team cost?", "price: $20"),
        ("what is the price of Business?", "price: $1,200.50"),
        ("how many plans have the region Asia?", "2 of 4 rows"),
        ("which plan has the most seats?", "highest seats: 400 (plan Enterprise)"),
        ("which plan has the highest seats?", "highest seats: 400 (plan Enterprise)"),
        ("what is the total of the seats of all plans?", "total seats: 461 over 4 rows"),
        ("what is the birth date of Ada Holm?", "birth_date: 1980-02-01"),
        ("which name has a birth date after 1990-01-01?", "name: Jan Brod"),
        ("what is the average salary of people?", "average salary: 80 over 2 rows"),
        ("which part has the lowest count?", "lowest count: 12 (part Nut, Screw)"),
        ("what is the floor of the room Elm?", "floor: 3"),
    ],
)
def test_a_question_of_rows_is_answered_from_them(question: str, expected: str) -> None:
    assert ask(question)[0] == expected


def test_the_query_is_shown_and_rows_are_cited() -> None:
    text, query, sources = ask("which part has a count of more than 20?")
    assert text == "part: Bolt"
    assert query == """SELECT "part" FROM "parts.xlsx" WHERE "count" > '20' (1 of 3 rows)"""
    (source,) = sources
    assert (source["document"], source["where"]) == ("parts.xlsx", "Stock, A2:B4, row 2")
    assert source["text"] == "part: Bolt | count: 30"
    shown = run("answer", "which part has a count of more than 20?").stdout
    assert "SELECT" in shown
    assert "parts.xlsx" in shown
    assert run("answer", "how many parts have a count of more than 99?").stdout.startswith("0 of 3")


@pytest.mark.parametrize(
    "question",
    [
        "which plan with support has more than 10 seats?",  # no column says support
        "what is the total price of all plans?",  # a price on request is no number
        "what was discussed by Ada Holm?",
        "who is Ada Holm?",
        "how many people live in Karst?",
        "which plan has more than 10 elephants?",
    ],
)
def test_a_question_that_no_table_explains_is_answered_as_before(question: str) -> None:
    assert ask(question)[1] == ""
