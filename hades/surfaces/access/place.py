"""A passage at its place: the text of its document around it, and the page of a PDF as a picture."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from hades.errors import HadesError
from hades.ingest.manifest import known
from hades.ingest.sources.confined import ConfinedPool, ParserStopped
from hades.ports.store import RowStore

Row = dict[str, Any]
AROUND_CHARS = 3_000
_PDF, _PAGE = "application/pdf", re.compile(r"page (\d+)$")
_DRAWING_SECONDS = 10.0


def show_source(store: RowStore, passage: str, *, picture: bool) -> dict[str, Any]:
    """The text before and after a passage, its lines, and its page in a PDF."""
    chunk = _row(store, passage)
    document = _row(store, chunk["document"])
    text, (start, end) = document["text"], chunk["span"]
    page = _PAGE.match(chunk["headings"][0]) if document["mime"] == _PDF and chunk["headings"] else None
    shown = {
        "id": passage,
        "document": document["origin"],
        "title": document["title"],
        "mime": document["mime"],
        "headings": chunk["headings"],
        "before": text[text.rfind("\n", 0, max(0, start - AROUND_CHARS)) + 1 : start],
        "text": text[start:end],
        "after": text[end : end + AROUND_CHARS],
        "lines": [text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1],
        "page": int(page[1]) if page else None,
    }
    if picture and shown["page"] is not None:
        try:
            shown["picture"] = _draw(_file_of(store, document), shown["page"], shown["text"])
        except HadesError as problem:
            shown["problem"] = str(problem)
    return shown


def _row(store: RowStore, identifier: str) -> Row:
    collection, _, key = identifier.partition("/")
    found = store.get(collection, [key]).to_pylist() if collection in ("doc_chunks", "documents") else []
    if not found:
        raise HadesError(f"{identifier} is no passage of a document, expected an id as answers name it; ask again")
    return dict(found[0])


def _file_of(store: RowStore, document: Row) -> Path:
    """The file that a document was read from; never one outside the folder that was read."""
    for spec in known(store):
        root = Path(spec.path).resolve()
        folder = root.parent if root.is_file() else root
        path = folder.joinpath(str(document["origin"])).resolve()
        if spec.source == document["source"] and path.is_file() and path.is_relative_to(folder):
            return path
    raise HadesError(f"{document['origin']} is no longer where it was read; its text is still there, without the page")


def _draw(path: Path, page: int, text: str) -> str:
    """The page as a `data:` address, drawn in a confined process: a file may be hostile."""
    with ConfinedPool("hades.ingest.formats.pdf:draw_page") as pool:
        try:
            drawn = pool.call(path.read_bytes(), page, text, cpu_seconds=_DRAWING_SECONDS)
        except ParserStopped as stopped:
            raise HadesError(f"page {page} of {path.name} cannot be drawn: {stopped.reason}") from None
    return "data:image/png;base64," + base64.b64encode(drawn).decode("ascii")
