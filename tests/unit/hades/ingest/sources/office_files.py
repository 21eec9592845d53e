"""Small files of every format, whole and damaged, made by the libraries that write them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO

OLE_HEADER = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
)  # how an encrypted office file begins


def word_file() -> bytes:
    import docx

    document = docx.Document()
    document.core_properties.title = "Handbook"
    document.add_heading("Safety", 1)
    document.add_paragraph("Wear gloves in the laboratory.")
    document.add_heading("Storage", 2)
    document.add_paragraph("Keep acids below the bench.", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        [c for row in table.rows for c in row.cells], ("Acid", "Shelf", "HCl", "3"), strict=True
    ):
        cell.text = text
    return _saved(document.save)


def slides_file() -> bytes:
    import pptx

    deck = pptx.Presentation()
    for title, body, notes in (
        ("Quarterly plan", "Ship the parser", ""),
        ("Risks", "Supplier delay", "Ask Maria about the contract"),
    ):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _saved(deck.save)


def workbook_file(rows: int = 2) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["Item", "Price"])
    for number in range(rows):
        sheet.append([f"valve {number}", 12.5 + number])
    return _saved(book.save)


def book_file(chapters: dict[str, str] | None = None, rights: str = "") -> bytes:
    pages = (
        chapters
        if chapters is not None
        else {"one": "<h1>Departure</h1><p>The ship left Genoa.</p>"}
    )
    items = "".join(
        f'<item id="{one}" href="{one}.xhtml" media-type="application/xhtml+xml"/>' for one in pages
    )
    spine = "".join(f'<itemref idref="{one}"/>' for one in pages)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>The Voyage</dc:title><dc:date>1901-05-04</dc:date></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
    )
    files = {"META-INF/container.xml": container, "OEBPS/content.opf": package}
    files |= {
        f"OEBPS/{one}.xhtml": f"<html><body>{page}</body></html>" for one, page in pages.items()
    }
    return archive(files | ({"META-INF/encryption.xml": rights} if rights else {}))


def notebook_file(*cells: tuple[str, str]) -> bytes:
    made = cells or (("markdown", "# Heat\nConduction in rods."), ("code", "k = 0.5\nprint(k)"))
    printed = {
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "0.5\n"}],
        "execution_count": 1,
    }
    written = [
        {"cell_type": kind, "metadata": {}, "source": source, **(printed if kind == "code" else {})}
        for kind, source in made
    ]
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": written}
    ).encode()


def message(
    subject: str, body: str, *, identity: str = "a@x", reply_to: str = "", sender: str = "Ann Lee"
) -> bytes:
    head = f"Subject: {subject}\nFrom: {sender} <s@example.org>\nTo: Bob Ray <b@example.org>\n"
    head += f"Date: Mon, 02 Mar 2026 10:00:00 +0000\nMessage-ID: <{identity}>\n"
    head += f"In-Reply-To: <{reply_to}>\n" if reply_to else ""
    return f"{head}\n{body}\n".encode()


def mailbox_file(*messages: bytes) -> bytes:
    return b"".join(
        b"From s@example.org Mon Mar  2 10:00:00 2026\n" + one + b"\n" for one in messages
    )


def encrypted_zip() -> bytes:
    """A container whose members are marked as encrypted."""
    data = bytearray(archive({"word/document.xml": "secret", "META-INF/container.xml": "secret"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = data.find(mark)
        while position >= 0:
            data[position + offset] |= 1
            position = data.find(mark, position + 4)
    return bytes(data)


def zip_bomb(name: str, size: int = 300 << 20) -> bytes:
    """A small container with one member that unpacks to `size` bytes."""
    stream = BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
        made.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size >> 20):
            member.write(b" " * (1 << 20))
    return stream.getvalue()


def archive(files: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return stream.getvalue()


def _saved(save: Callable[[BytesIO], object]) -> bytes:
    stream = BytesIO()
    save(stream)
    return stream.getvalue()
