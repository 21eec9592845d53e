"""A folder as a person has it: pages, letters and tables in office formats, read and asked with the
default model.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pytest
from PIL import Image

from hades.api import Hades
from hades.ingest.manifest import known
from hades.retrieval.answer.write_answer import write_answer
from hades.settings.tree import Settings
from hades.surfaces.capabilities.graph import show_source
from hades.wiring import open_hades
from schemas.plan import Reason
from tests.unit.hades.ingest.sources.pdf_files import pdf_of_streams

GUIDE = (
    "<title>Boiler</title><h1>Boiler</h1><h2>Pressure</h2><p>Below 1.0 bar, open the filling tap "
    "slowly.</p>"
    "<h2>Fault codes</h2><table><tr><th>Code</th><th>Meaning</th></tr><tr><td>F.22</td><td>Water "
    "pressure too low</td>"
    "</tr><tr><td>F.28</td><td>Ignition failed at start</td></tr></table>"
)


BILL = pdf_of_streams(
    [
        (
            b"BT /F1 10 Tf 20 180 Td (Customer 5512) Tj ET BT /F1 10 Tf 20 140 Td (Pay by Friday) "
            b"Tj ET",
            "",
        ),
        (b"BT /F1 10 Tf 20 180 Td (The meter shows 50977 units of electricity) Tj ET", ""),
    ],
    "Electricity bill",
)


def lease() -> bytes:
    document = docx.Document()
    document.add_heading("Rental agreement", 0)
    for heading, text in (
        (
            "1. Rent",
            "The monthly rent is 1,240 euros, payable on the third working day of each month.",
        ),
        (
            "2. Deposit",
            "A deposit of three monthly rents is kept in a savings account in the name of the "
            "tenants.",
        ),
        (
            "3. Pets",
            "Small animals in cages are allowed. Dogs and cats need the written consent of the "
            "landlord.",
        ),
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
    for row in (
        ["Policy", "Insurer", "Ends"],
        ["Liability", "Concordia", "2026-12-31"],
        ["Car", "Huk", "2027-03-01"],
    ):
        sheet.append(row)
    data = BytesIO()
    book.save(data)
    return data.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    folder: Path = tmp_path_factory.mktemp("person")
    files = {
        "lease.docx": lease(),
        "boiler.html": GUIDE.encode(),
        "insurance.xlsx": insurance(),
        "bill.pdf": BILL,
    }
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
        (
            "how much is the deposit?",
            "A deposit of three monthly rents is kept in a savings account",
        ),
        ("can we get a dog?", "Dogs and cats need the written consent of the landlord."),
        ("what does F.28 mean on the boiler?", "| Code | Meaning |\n|---|---|\n"),
        ("what does F.28 mean on the boiler?", "| F.28 | Ignition failed at start |"),
        (
            "when does the car insurance end?",
            "- row 3: Policy: Car | Insurer: Huk | Ends: 2027-03-01",
        ),
    ],
)
def test_what_answers_is_shown_as_it_stands_in_the_file(
    home: Hades, question: str, shown: str
) -> None:
    tools = home.answers.tools
    answer = write_answer(
        home.retrieve(question), tokenizer=tools.tokenizer, embedder=tools.embedder, model=None
    )
    assert Reason.ABSTAINED not in answer.reasons
    assert shown in answer.text


def test_a_passage_is_shown_at_its_place_among_what_stands_around_it(home: Hades) -> None:
    passage = next(
        one for one in home.retrieve("how much is the deposit?").passages if "deposit" in one.text
    )
    shown = show_source(home.store, passage.id, picture=True)
    assert (shown["document"], shown["page"], shown["text"]) == ("lease.docx", None, passage.text)
    assert shown["before"].startswith("# 1. Rent\n\nThe monthly rent")
    assert "# 3. Pets" in shown["after"]
    assert shown["lines"] == [5, 7]
    assert "picture" not in shown


def test_the_page_of_a_pdf_is_a_picture_with_the_passage_marked(home: Hades) -> None:
    passage = home.retrieve("how many units does the electricity meter show?").passages[0]
    shown = show_source(home.store, passage.id, picture=True)
    assert (shown["document"], shown["page"]) == ("bill.pdf", 2)
    picture = Image.open(
        BytesIO(base64.b64decode(shown["picture"].removeprefix("data:image/png;base64,")))
    )
    colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or []}
    assert {(255, 255, 255), (255, 236, 130)} <= colours  # paper, and the ground of the passage


def test_a_page_whose_file_is_gone_keeps_its_text_and_says_so(home: Hades) -> None:
    passage = home.retrieve("how many units does the electricity meter show?").passages[0]
    (spec,) = known(home.store)
    file = Path(spec.path) / "bill.pdf"
    kept = file.read_bytes()
    file.unlink()
    shown = show_source(home.store, passage.id, picture=True)
    file.write_bytes(kept)
    assert "50977" in shown["text"]
    assert "bill.pdf is no longer where it was read" in shown["problem"]
