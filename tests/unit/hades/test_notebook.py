"""What a notebook does with the public object: answers beside retrievals, and tables of both."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator

import pandas as pd
import pytest

from hades import DocumentFilter, open_hades
from hades.api import Hades
from hades.errors import HadesError
from hades.settings.tree import Settings
from tests.homes import publish_pages

QUESTION = "where does the Rhine flow?"
PAGES = {
    "rhine.md": "---\ndate: 2025-03-01\n---\n# Rhine\n\n## Course\n\n"
    "The Rhine flows from Basel to the North Sea. See [the Danube](danube.md).\n",
    "danube.md": "# Danube\n\nThe Danube flows from the Black Forest to the Black Sea.\n",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return publish_pages(tmp_path_factory.mktemp("rivers"), PAGES)


@pytest.fixture(scope="module")
def hades(settings: Settings) -> Iterator[Hades]:
    with open_hades(settings) as hades:
        hades.build()
        yield hades


def test_an_answer_has_sentences_with_the_sources_that_state_them(hades: Hades) -> None:
    answer = hades.answer(QUESTION)
    assert "from Basel to the North Sea" in answer.text
    assert answer.sources[answer.sentences[0].citations[0] - 1].document == "rhine.md"


def test_an_answer_and_a_retrieval_are_limited_to_the_same_documents(hades: Hades) -> None:
    only = DocumentFilter(paths=("danube.*",))
    retrieval = hades.retrieve("where does the Danube flow?", only=only)
    answer = hades.answer("where does the Danube flow?", only=only)
    assert {passage.document for passage in retrieval.passages} == {"danube.md"}
    assert {source.document for source in answer.sources if source.kind == "passage"} == {
        "danube.md"
    }


@pytest.mark.parametrize("method", [Hades.answer, Hades.retrieve])
def test_every_option_has_a_name_and_a_type(method: object) -> None:
    assert callable(method)
    parameters = inspect.signature(method).parameters.values()
    assert all(option.kind is not inspect.Parameter.VAR_KEYWORD for option in parameters)
    assert all(option.annotation for option in parameters if option.name != "self")


def test_the_passages_of_a_result_are_a_frame_as_people_read_them(hades: Hades) -> None:
    frame = hades.retrieve(QUESTION).to_pandas()
    first = frame.iloc[0]
    assert list(frame["rank"]) == list(range(1, len(frame) + 1))
    assert (first["document"], first["heading"]) == ("rhine.md", "Rhine › Course")
    assert first["source"] == "rhine.md"
    assert isinstance(frame["timestamp"].dtype, pd.DatetimeTZDtype)


def test_relations_name_what_they_join_and_where_they_were_read(hades: Hades) -> None:
    relations = hades.frame("relations")
    pairs = set(zip(relations["source"], relations["target"], strict=True))
    assert ("Rhine", "Danube") in pairs
    assert set(relations["document"].dropna()) <= set(PAGES)
    assert isinstance(relations["recorded_at"].dtype, pd.DatetimeTZDtype)


def test_passages_and_documents_are_joined_by_the_name_of_the_document(hades: Hades) -> None:
    documents = hades.frame("documents")
    passages = hades.frame("passages")
    assert set(passages["document"]) == set(documents["document"]) == set(PAGES)
    dated = documents.set_index("document")["created"]
    assert dated["rhine.md"] == pd.Timestamp("2025-03-01", tz="UTC")
    assert "embedding" not in passages


@pytest.mark.parametrize("name", ["entities", "topics", "mentions", "memory", "questions"])
def test_a_frame_has_an_id_for_each_row_of_the_store(hades: Hades, name: str) -> None:
    collections = {"topics": "clusters", "memory": "memory_states", "questions": "query_logs"}
    frame = hades.frame(name)
    assert frame["id"].is_unique
    assert len(frame) == hades.store.count(collections.get(name, name))


def test_any_collection_is_a_frame_without_its_vectors(hades: Hades) -> None:
    frame = hades.frame("doc_chunks")
    assert len(frame) == hades.store.count("doc_chunks")
    assert "text" in frame
    assert "embedding" not in frame


def test_a_frame_that_there_is_not_names_those_there_are(hades: Hades) -> None:
    with pytest.raises(HadesError, match=r"no frame 'nodes'; use one of documents, passages"):
        hades.frame("nodes")


def test_without_pandas_the_missing_extra_is_named(settings: Settings) -> None:
    code = (
        "import sys\n"
        "class NoPandas:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoPandas())\n"
        "from hades import open_hades\n"
        "with open_hades() as hades:\n    hades.frame('relations')\n"
    )
    environment = {**os.environ, "HADES_HOME": str(settings.home), "HADES_EMBEDDER": "hashing"}
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert child.stderr.splitlines()[-1] == (
        "ImportError: a frame needs pandas, which is not installed; run `pip install "
        "'hades-graphrag[flows]'`, or use to_arrow()"
    )
