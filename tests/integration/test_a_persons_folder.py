"""A folder as a person has it: pages, letters and tables in office formats, read and asked with the default model."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pytest

from hades.api import Hades
from hades.retrieval.answer.write_answer import write_answer
from hades.settings.tree import Settings
from hades.wiring import open_hades
from schemas.plan import Reason

GUIDE = (
    "<title>Boiler</title><h1>Boiler</h1><h2>Pressure</h2><p>Below 1.0 bar, open the filling tap slowly.</p>"
    "<h2>Fault codes</h2><table><tr><th>Code</th><th>Meaning</th></tr><tr><td>F.22</td><td>Water pressure too low</td>"
    "</tr><tr><td>F.28</td><td>Ignition failed at start</td></tr></table>"
)


def lease() -> bytes:
    document = docx.Document()
    document.add_heading("Rental agreement", 0)
    for heading, text in (
        ("1. Rent", "The monthly rent is 1,240 euros, payable on the third working day of each month."),
        ("2. Deposit", "A deposit of three monthly rents is kept in a savings account in the name of the tenants."),
        ("3. Pets", "Small animals in cages are allowed. Dogs and cats need the written consent of the landlord."),
    ):
        document.add_heading(heading, 1)
        document.add_paragraph(text)
    data = BytesIO()
    document.save(data)
    return data.getvalue()


def insurance() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Policy", "Insurer", "Ends"], ["Liability", "Concordia", "2026-12-31"], ["Car", "Huk", "2027-03-01"]):
        sheet.append(row)
    data = BytesIO()
    book.save(data)
    return data.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    folder: Path = tmp_path_factory.mktemp("person")
    files = {"lease.docx": lease(), "boiler.html": GUIDE.encode(), "insurance.xlsx": insurance()}
    (folder / "files").mkdir()
    for name, data in files.items():
        (folder / "files" / name).write_bytes(data)
    with open_hades(Settings(home=folder / "home")) as hades:
        hades.ingest.documents(folder / "files")
        hades.publish()
        yield hades


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("how much is the deposit?", "A deposit of three monthly rents is kept in a savings account"),
        ("can we get a dog?", "Dogs and cats need the written consent of the landlord."),
        ("what does F.28 mean on the boiler?", "| Code | Meaning |\n|---|---|\n"),
        ("what does F.28 mean on the boiler?", "| F.28 | Ignition failed at start |"),
        ("when does the car insurance end?", "- row 3: Policy: Car | Insurer: Huk | Ends: 2027-03-01"),
    ],
)
def test_what_answers_is_shown_as_it_stands_in_the_file(home: Hades, question: str, shown: str) -> None:
    tools = home.answers.tools
    answer = write_answer(home.retrieve(question), tokenizer=tools.tokenizer, embedder=tools.embedder, model=None)
    assert Reason.ABSTAINED not in answer.reasons
    assert shown in answer.text
