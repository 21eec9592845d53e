"""What the last derivation found in code, kept by document: edges, the questions they follow from, and its answers.

Every document has a signature of all that its own edges are made from. Where it is the same, and none of the questions
that its edges follow from has another answer now, its edges are taken from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code.code_document import NAMED, Answers
from hades.ingest.code.names import CodeNames
from hades.ingest.derivation_digest import DERIVE_VERSION
from hades.ingest.increment.kept_tables import KeptTables
from hades.ingest.readings.signatures import Signatures

_DOCUMENTS = pa.schema(
    [("document", pa.string()), ("high", pa.uint64()), ("low", pa.uint64()), ("answers", pa.binary())]
)
_ASKED = pa.schema([("document", pa.string()), ("question", pa.string())])


@dataclass(frozen=True)
class FormerCode:
    """Edges by collection, each with the document that states it as provenance, and what they follow from."""

    documents: pa.Table  # document, high, low, answers as JSON
    asked: pa.Table  # document, question
    edges: Mapping[str, pa.Table]

    @classmethod
    def nothing(cls, edges: Mapping[str, pa.Table]) -> FormerCode:
        """Before the first derivation; `edges` are empty."""
        return cls(_DOCUMENTS.empty_table(), _ASKED.empty_table(), edges)

    def without(self, documents: Iterable[str]) -> FormerCode:
        """What is kept of all other documents."""
        gone = pa.array(documents, pa.string())
        owners = pc.binary_join_element_wise("documents", gone, "/")

        def others(table: pa.Table, owner: pa.ChunkedArray, names: pa.Array) -> pa.Table:
            return table.filter(pc.invert(pc.is_in(owner, value_set=names)))

        return FormerCode(
            others(self.documents, self.documents.column("document"), gone),
            others(self.asked, self.asked.column("document"), gone),
            {
                name: others(table, pc.struct_field(table.column("provenance"), "doc"), owners)
                for name, table in self.edges.items()
            },
        )

    def joined(self, other: FormerCode) -> FormerCode:
        """What is kept of both, the edges in order of their keys."""
        return FormerCode(
            pa.concat_tables([self.documents, other.documents]),
            pa.concat_tables([self.asked, other.asked]),
            {name: pa.concat_tables([table, other.edges[name]]).sort_by("_key") for name, table in self.edges.items()},
        )

    def differing(self, keys: pa.Array, signatures: Signatures) -> tuple[list[str], list[str]]:
        """Documents that are new or have another signature, and those that are here no longer."""
        place = pc.fill_null(pc.index_in(keys, value_set=self.documents.column("document").combine_chunks()), -1)
        rows = place.to_numpy().astype(np.int64)
        known = np.flatnonzero(rows >= 0)
        high, low = (self.documents.column(name).to_numpy() for name in ("high", "low"))
        same = np.zeros(len(rows), dtype=np.bool_)
        same[known] = Signatures(high[rows[known]], low[rows[known]]).equal(signatures.take(known))
        gone = pc.invert(pc.is_in(self.documents.column("document"), value_set=keys))
        return keys.filter(pa.array(~same)).to_pylist(), self.documents.column("document").filter(gone).to_pylist()

    def answers(self) -> dict[str, Answers]:
        """What each document answers."""
        columns = (self.documents.column(name).to_pylist() for name in ("document", "answers"))
        return {document: orjson.loads(told) if told else {} for document, told in zip(*columns, strict=True)}

    def asking(self, questions: Collection[str]) -> list[str]:
        """The documents whose edges follow from any of these questions."""
        asked = pc.is_in(self.asked.column("question"), value_set=pa.array(sorted(questions), pa.string()))
        documents: list[str] = pc.unique(self.asked.column("document").filter(asked)).to_pylist()
        return documents


def document_rows(documents: pa.Array, signatures: Signatures, answers: Mapping[str, Answers]) -> pa.Table:
    """Documents as they are kept."""
    told = [orjson.dumps(answers[key]) if answers.get(key) else b"" for key in documents.to_pylist()]
    columns = [documents, pa.array(signatures.high), pa.array(signatures.low), pa.array(told, pa.binary())]
    return pa.Table.from_arrays(columns, schema=_DOCUMENTS)


def question_rows(asked: Mapping[str, Collection[str]]) -> pa.Table:
    """The questions of each document as they are kept."""
    documents = [document for document, questions in asked.items() for _ in questions]
    listed = [question for questions in asked.values() for question in sorted(questions)]
    return pa.Table.from_arrays([pa.array(documents, pa.string()), pa.array(listed, pa.string())], schema=_ASKED)


def find_changed_questions(before: Mapping[str, Answers], after: Mapping[str, Answers], names: CodeNames) -> set[str]:
    """The questions that some of these documents answer otherwise than before."""
    changed: set[str] = set()
    for document in {*before, *after}:
        old, new = before.get(document, {}), after.get(document, {})
        changed.update(one for one in {*old, *new} if old.get(one) != new.get(one))
    told = Counter(one for answers in after.values() for one in answers)
    elsewhere = {one for one in changed if one.startswith(NAMED) and names.count_answers(one) > told[one]}
    return changed - elsewhere  # that anything is called so is the same whether one file says it or many


def open_kept_code(scratch: Path) -> KeptTables:
    """The folder of what is kept; it counts for the code that made it."""
    return KeptTables(scratch / "code-edges", f"{DERIVE_VERSION} {_makers_digest()}")


@cache
def _makers_digest() -> str:
    """A digest of the code that makes edges of code."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"\x00".join(file.read_bytes() for file in files)).hexdigest()
