"""Jupyter notebooks, with nbformat: one part a cell; code cells keep their first lines of printed
output.
"""

from __future__ import annotations

import warnings
from typing import Any

from hades.ingest.formats.markup import outline_markdown
from hades.ingest.formats.registry import ExtractedDocument, FormatProblem, PartList

_OUTPUT_CHARS = 600  # of each cell: tables and logs are data, a result is short


def read_notebook(text: str) -> list[ExtractedDocument]:
    """Markdown under its headings, code as code, both under `cell N`; notebooks of every
    version.
    """
    import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing cell ids, which reading does not need
            notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    except (nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise FormatProblem("malformed", f"not a notebook: {str(error)[:120]}") from error

    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise FormatProblem("malformed", "not a notebook: it has no list of cells")

    parts = PartList()
    headings: tuple[str, ...] = ()
    title = str(notebook.get("metadata", {}).get("title") or "")

    for number, cell in enumerate(cells, start=1):
        source = cell.get("source", "")
        if cell.get("cell_type") == "markdown":
            outlined = outline_markdown(source)
            title = title or outlined.title
            if outlined.regions:
                headings = outlined.regions[-1].headings

            headings = headings or ((outlined.title,) if outlined.title else ())
            parts.add((*headings, f"cell {number}"), source)
        elif cell.get("cell_type") == "code":
            parts.add(
                (*headings, f"cell {number} (code)"),
                source + _outputs(cell),
                kind="text",
            )

    return [parts.document(title)]


def _outputs(cell: Any) -> str:
    outputs = (
        output.get("data") or {"text/plain": output.get("text")}
        for output in cell.get("outputs") or ()
    )
    shown = (str(output.get("text/plain") or "").strip() for output in outputs)
    joined = "\n".join(filter(None, shown))[:_OUTPUT_CHARS]
    return f"\n# output:\n{joined}" if joined else ""
