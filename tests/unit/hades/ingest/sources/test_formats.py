"""Files of every format become documents whose parts name their place; a damaged one is a row of
the report.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.files import MAX_TEXT_BYTES
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from tests.unit.hades.ingest.sources import office_files as made
from tests.unit.hades.ingest.sources.pdf_files import pdf_of_streams, pdf_with


def read(root: Path) -> dict[str, Material | RejectedInput]:
    outcomes = list(DocumentsSource(root).read())
    return {one.origin if isinstance(one, Material) else one.uri: one for one in outcomes}


def read_one(root: Path, name: str, data: bytes) -> Material:
    (root / name).write_bytes(data)
    (outcome,) = read(root / name).values()
    assert isinstance(outcome, Material), outcome
    return outcome


def parts(material: Material) -> list[tuple[tuple[str, ...], str]]:
    return [(one.headings, material.text[one.start : one.end]) for one in material.sections]


def test_a_word_document_has_a_part_a_section_with_lists_and_tables(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.docx", made.word_file())
    assert found.title == "Handbook"
    assert parts(found) == [
        (("Safety",), "# Safety\n\nWear gloves in the laboratory."),
        (
            ("Safety", "Storage"),
            "## Storage\n\n- Keep acids below the bench.\n\n| Acid | Shelf |\n|---|---|\n| HCl | 3 "
            "|",
        ),
    ]


def test_a_slide_is_cited_by_its_number_and_keeps_its_notes(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.pptx", made.slides_file())
    assert parts(found) == [
        (("slide 1: Quarterly plan",), "# Quarterly plan\n\nShip the parser"),
        (("slide 2: Risks",), "# Risks\n\nSupplier delay\n\nNotes: Ask Maria about the contract"),
    ]


def test_rows_of_a_sheet_are_written_with_their_columns_and_cited_by_cells(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.xlsx", made.workbook_file())
    text = "- row 2: Item: valve 0 | Price: 12.5\n- row 3: Item: valve 1 | Price: 13.5"
    assert parts(found) == [(("Prices", "A2:B3"), text)]
    many = read_one(tmp_path, "b.xlsx", made.workbook_file(100))
    assert [headings[1] for headings, _ in parts(many)][:2] == ["A2:B27", "A28:B52"]


def test_a_table_of_text_is_read_as_a_sheet(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.csv", b"Name;City\nAda;London\n")
    assert parts(found) == [(("A2:B2",), "- row 2: Name: Ada | City: London")]


def test_headings_and_paragraphs_of_a_pdf_are_told_by_their_letters_and_the_space_between_lines(
    tmp_path: Path,
) -> None:
    def page(number: int, *lines: tuple[int, int, str]) -> str:
        marked = [*lines, (10, 20, f"Harbour rules, page {number}")]
        return " ".join(
            f"BT /F1 {size} Tf 20 {height} Td ({text}) Tj ET" for size, height, text in marked
        )

    content = [
        page(
            1,
            (24, 180, "Harbour rules"),
            (10, 150, "Boats give way to ferries."),
            (10, 138, "Always."),
        ),
        page(
            2,
            (16, 180, "Fees"),
            (10, 160, "A night costs 12."),
            (10, 148, "A week costs 60."),
            (10, 110, "Pay at noon."),
        ),
        page(
            3,
            (10, 180, "Cards are accepted."),
            (16, 150, "Noise"),
            (10, 130, "Engines off at ten."),
        ),
    ]
    found = read_one(
        tmp_path, "a.pdf", pdf_of_streams([(one.encode(), "") for one in content], "rules_v2.doc")
    )
    assert found.title == "Harbour rules"
    assert parts(found) == [
        (("page 1", "Harbour rules"), "# Harbour rules\n\nBoats give way to ferries.\nAlways."),
        (
            ("page 2", "Harbour rules", "Fees"),
            "# Fees\n\nA night costs 12.\nA week costs 60.\n\nPay at noon.",
        ),
        (("page 3", "Harbour rules", "Fees"), "Cards are accepted."),
        (("page 3", "Harbour rules", "Noise"), "# Noise\n\nEngines off at ten."),
    ]


def test_a_line_that_blanks_push_to_the_middle_of_its_page_is_read(tmp_path: Path) -> None:
    material = read_one(
        tmp_path, "title.pdf", pdf_with(f"{chr(160) * 30}Rivers", "The Rhine is long.")
    )
    assert "Rivers" in material.text
    assert "The Rhine is long." in material.text


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    chapters = {"two": "<h1>Second</h1><p>later</p>", "one": "<h1>First</h1><p>early</p>"}
    found = read_one(tmp_path, "a.epub", made.book_file(chapters))
    assert (found.title, found.created) == ("The Voyage", datetime(1901, 5, 4, tzinfo=UTC))
    assert [headings for headings, _ in parts(found)] == [("Second",), ("First",)]


def test_cells_of_a_notebook_are_parts_with_their_output(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.ipynb", made.notebook_file())
    assert found.title == "Heat"
    assert parts(found) == [
        (("Heat", "cell 1"), "# Heat\nConduction in rods."),
        (("Heat", "cell 2 (code)"), "k = 0.5\nprint(k)\n# output:\n0.5"),
    ]


def test_a_message_names_its_people_and_date(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.eml", made.message("Pump", "It leaks."))
    assert found.title == "Pump"
    assert found.created == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert [name for name, _ in found.names] == ["Ann Lee", "Bob Ray"]
    assert found.text.startswith("# Pump\n\n- From: Ann Lee\n- To: ")
    assert found.text.endswith("- Date: 2026-03-02 10:00\n\nIt leaks.")


def test_a_mailbox_is_one_document_a_message_joined_to_what_it_answers(tmp_path: Path) -> None:
    first = made.message("Pump", "It leaks.\n>From the valve.", identity="1@x")
    second = made.message(
        "Re: Pump", "On Monday Ann wrote:\n> It leaks.\nReplace it.", identity="2@x", reply_to="1@x"
    )
    (tmp_path / "in.mbox").write_bytes(made.mailbox_file(first, second))
    found = read(tmp_path)
    assert list(found) == ["in.mbox#1@x", "in.mbox#2@x"]
    question, reply = found.values()
    assert isinstance(question, Material)
    assert isinstance(reply, Material)
    assert "From the valve." in question.text
    assert [link.target for link in reply.links] == ["in.mbox#1@x"]
    assert "It leaks." not in reply.text
    assert reply.text.endswith("Replace it.")


def test_mail_in_html_and_unknown_charsets_is_read(tmp_path: Path) -> None:
    head = b'Subject: S\nContent-Type: text/html; charset="x-none"\n\n'
    assert read_one(tmp_path, "a.eml", head + b"<p>bold <b>claim</b></p>").text.endswith(
        "bold claim"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:03,000\nGood morning.\n\n2\n00:01:05,000 --> "
            "00:01:07,000\n<i>Bye.</i>\n",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n00:01.000 --> 00:03.000\nGood morning.\n\n00:02.000 --> 00:03.000\nGood "
            "morning.\n\n"
            "01:05.000 --> 01:07.000 align:left\nBye.\n",
        ),
    ],
)
def test_subtitles_are_cited_by_time(tmp_path: Path, name: str, text: str) -> None:
    assert parts(read_one(tmp_path, name, text.encode())) == [
        (("00:00:01-00:01:05",), "Good morning."),
        (("00:01:05-00:01:07",), "Bye."),
    ]


def test_a_speaker_of_a_transcript_is_named(tmp_path: Path) -> None:
    said = "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Maria>We ship on Friday.\n"
    assert read_one(tmp_path, "a.vtt", said.encode()).text == "Maria: We ship on Friday."


WHOLE = {
    ".pdf": pdf_with("First page"),
    ".docx": made.word_file(),
    ".pptx": made.slides_file(),
    ".xlsx": made.workbook_file(),
    ".epub": made.book_file(),
    ".ipynb": made.notebook_file(),
    ".eml": made.message("Pump", "It leaks."),
    ".mbox": made.mailbox_file(made.message("Pump", "It leaks.")),
    ".vtt": b"WEBVTT\n\n00:01.000 --> 00:03.000\nGood morning.\n",
    ".srt": b"1\n00:00:01,000 --> 00:00:03,000\nGood morning.\n",
    ".csv": b"Name,City\nAda,London\n",
}


def test_a_damaged_or_empty_file_of_any_format_is_a_row_of_the_report(tmp_path: Path) -> None:
    for suffix, data in WHOLE.items():
        (tmp_path / f"cut{suffix}").write_bytes(data[: len(data) // 2])
        (tmp_path / f"flipped{suffix}").write_bytes(bytes(byte ^ 0x5A for byte in data))
        (tmp_path / f"empty{suffix}").write_bytes(b"")
    found = read(tmp_path)
    for suffix in WHOLE:
        emptied = found[f"empty{suffix}"]
        assert isinstance(emptied, RejectedInput), suffix
        assert emptied.reason is RejectReason.EMPTY, suffix
        broken = found[f"flipped{suffix}"]
        assert isinstance(broken, RejectedInput), suffix
        assert broken.detail, suffix
    for suffix in (".docx", ".pptx", ".xlsx", ".epub", ".ipynb"):
        cut = found[f"cut{suffix}"]
        assert isinstance(cut, RejectedInput), suffix
        assert cut.reason is RejectReason.MALFORMED, suffix


def test_a_file_without_any_text_is_set_aside_as_empty(tmp_path: Path) -> None:
    import docx
    import openpyxl
    import pptx

    docx.Document().save(str(tmp_path / "a.docx"))
    pptx.Presentation().save(str(tmp_path / "a.pptx"))
    openpyxl.Workbook().save(str(tmp_path / "a.xlsx"))
    (tmp_path / "a.epub").write_bytes(made.book_file({}))
    (tmp_path / "a.ipynb").write_bytes(made.notebook_file(("markdown", " ")))
    found = read(tmp_path)
    assert {
        name: one.reason for name, one in found.items() if isinstance(one, RejectedInput)
    } == dict.fromkeys(("a.docx", "a.epub", "a.ipynb", "a.pptx", "a.xlsx"), RejectReason.EMPTY)


def test_an_encrypted_file_says_so(tmp_path: Path) -> None:
    for suffix in (".docx", ".pptx", ".xlsx"):
        (tmp_path / f"ole{suffix}").write_bytes(made.OLE_HEADER)
    for suffix in (".docx", ".epub"):
        (tmp_path / f"zip{suffix}").write_bytes(made.encrypted_zip())
    rights = '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"/>'
    (tmp_path / "rights.epub").write_bytes(made.book_file(rights=rights))
    for name, outcome in read(tmp_path).items():
        assert isinstance(outcome, RejectedInput), name
        assert outcome.reason is RejectReason.UNREADABLE, (name, outcome)
        assert "encrypted" in outcome.detail, name


def test_a_huge_file_or_bomb_is_set_aside(tmp_path: Path) -> None:
    bomb = made.zip_bomb("word/document.xml")
    for suffix in (".docx", ".pptx", ".xlsx", ".epub"):
        (tmp_path / f"bomb{suffix}").write_bytes(bomb)
    for suffix in (".ipynb", ".vtt", ".csv"):
        (tmp_path / f"long{suffix}").write_bytes(b"a,b\n" * (MAX_TEXT_BYTES // 4 + 1))
    for name, outcome in read(tmp_path).items():
        assert isinstance(outcome, RejectedInput), name
        assert outcome.reason is RejectReason.OVERSIZED, (name, outcome)


def test_archives_and_old_formats_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(made.archive({"x.txt": "text"}))
    (tmp_path / "b.doc").write_bytes(made.OLE_HEADER)
    (tmp_path / "c.py").write_text("x = 1\n")
    found = read(tmp_path)
    details = {name: one.detail for name, one in found.items() if isinstance(one, RejectedInput)}
    assert details == {
        "a.zip": ".zip archives are not opened; unpack it into the folder",
        "b.doc": ".doc files are not read; save it as .docx",
        "c.py": ".py files are code, which `hades ingest workspace PATH` reads; this command reads "
        "documents",
    }
