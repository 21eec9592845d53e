"""Documents: their texts, kept once, with the hash each was stored under, and what citations show of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.store import RowStore
from hades.snapshot.arrays import Folder
from hades.snapshot.columns import NOWHERE, Coder, append_texts, integers, join_labels
from hades.snapshot.heaps import Heap, HeapWriter

COLUMNS = ("_key", "origin", "title", "text", "sha256", "domains")
_BATCH_ROWS = 4_096


class DocumentRows:
    """Writes the documents; then finds them by `_id`.

    `document.shift` is the character at which the kept text begins: 0, or where a chunk stands whose document is not
    stored, so that its text and its span are kept all the same.
    """

    def __init__(self, store: RowStore, folder: Folder) -> None:
        self._id, self._origin, self._title, self._sha256 = (
            HeapWriter(folder, f"document.{name}") for name in ("id", "origin", "title", "sha256")
        )
        self._text = HeapWriter(folder, "document.body")
        self._characters = folder.column("document.characters", np.int32)
        self._shift = folder.column("document.shift", np.int32)
        self._folder, self._domains = folder, Coder()
        self._domain = folder.column("document.domain", np.int32)
        self._unstored: dict[str, int] = {}
        keys = [pa.array([], pa.string())]
        for batch in store.scan("documents", columns=COLUMNS, batch_rows=_BATCH_ROWS):
            keys.append(pc.binary_join_element_wise("documents", batch.column("_key"), "/"))
            append_texts(self._id, keys[-1])
            append_texts(self._origin, batch.column("origin"))
            append_texts(self._title, batch.column("title"))
            append_texts(self._sha256, batch.column("sha256"))
            append_texts(self._text, batch.column("text"))
            self._characters.append(integers(pc.utf8_length(pc.fill_null(batch.column("text"), "")), 0))
            self._shift.append(np.zeros(batch.num_rows, np.int32))
            self._domain.append(self._domains.encode(join_labels(batch.column("domains"))))
        self._ids = pa.concat_arrays(keys)
        self.stored = len(self._ids)
        self._bodies = Heap(folder, "document.body")

    def write_domains(self) -> None:
        """Write the names behind the codes of `document.domain`."""
        HeapWriter(self._folder, "document.domain_name").append(self._domains.codes)

    def find(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each document by `_id`, -1 where the column says nothing, a new number for one not stored."""
        places = self.document_numbers(column)
        named = np.asarray(column.is_valid().to_numpy(zero_copy_only=False)) & (places == NOWHERE)
        for row in np.flatnonzero(named).tolist():
            places[row] = self._stand_in(column[row].as_py())
        return places

    def document_numbers(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each document by `_id`, -1 where it is not stored."""
        return integers(pc.index_in(column, value_set=self._ids), NOWHERE).copy()

    def keep_text(self, document: str, text: str, start: int) -> int:
        """Keep the text of a chunk whose document is not stored; the number it is found under."""
        return self._append(document, text, start)

    def check_chunks(
        self,
        keys: list[str],
        numbers: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        bodies: list[str],
    ) -> None:
        """Refuse a chunk that is not the span of its document that it says it is."""
        order = np.argsort(numbers, kind="stable")
        held, text = NOWHERE, ""
        for row in order[numbers[order] >= 0].tolist():
            if numbers[row] != held:
                held = int(numbers[row])
                text = self._bodies[held]
            if starts[row] < 0 or text[starts[row] : ends[row]] != bodies[row]:
                raise SnapshotError(
                    f"doc_chunks/{keys[row]}: characters {starts[row]} to {ends[row]} of its document are not its "
                    "text; run the chunk phase of that document again, nothing was published"
                )

    def _stand_in(self, document: str) -> int:
        """A document that is only named: cited by that name, with no text."""
        if document not in self._unstored:
            self._unstored[document] = self._append(document, "", 0)
        return self._unstored[document]

    def _append(self, document: str, text: str, start: int) -> int:
        number = self._id.count
        self._id.append([document])
        self._origin.append([document.partition("/")[2] or document])
        self._title.append([""])
        self._sha256.append([""])
        self._text.append([text])
        self._characters.append(np.array([len(text)]))
        self._shift.append(np.array([start]))
        self._domain.append(np.array([NOWHERE], np.int32))
        return number
