"""Names as whole columns are normalised as one name is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hades.snapshot.facts import normalise
from hades.snapshot.files import Folder, hash_texts
from hades.snapshot.write_graph import NameRows, normalise_each


@given(st.lists(st.one_of(st.text(), st.text(st.characters(max_codepoint=127)))))
def test_a_column_of_names_is_normalised_as_each_name_is(names: list[str]) -> None:
    whole = pa.array(names, pa.large_string())
    assert normalise_each(whole).to_pylist() == [normalise(name) for name in names]


def test_every_form_of_an_entity_stands_once_with_its_number(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pylist(
        [
            {"name": "Ada  Lovelace", "canonical_name": "ada lovelace", "aliases": ["Ada", "ADA", "!"]},
            {"name": "Gödel", "canonical_name": None, "aliases": None},
            {"name": "Ada", "canonical_name": "Ada", "aliases": []},
        ],
        schema=pa.schema([("name", pa.string()), ("canonical_name", pa.string()), ("aliases", pa.list_(pa.string()))]),
    )
    rows = NameRows()
    rows.append(5, batch)
    rows.append(8, batch.slice(2))
    with Folder(tmp_path) as folder:
        rows.write(folder)
        written = zip(folder["name.hash"].tolist(), folder["name.number"].tolist(), strict=True)
        expected = [("ada lovelace", 5), ("ada", 5), ("godel", 6), ("ada", 7), ("ada", 8)]
        hashes = hash_texts(form for form, _ in expected).tolist()
        assert sorted(written) == sorted(zip(hashes, (number for _, number in expected), strict=True))
        assert np.all(np.diff(folder["name.hash"].astype(object)) >= 0)
    assert rows.longest == 2
