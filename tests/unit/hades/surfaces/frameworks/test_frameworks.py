"""The retrievers pass the standard tests of their frameworks on a small published graph."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from hades.settings.load import load_settings
from hades.surfaces.frameworks import langchain
from hades.wiring import open_hades
from tests.homes import live_in, publish_pages

QUESTION = "where does the Rhine flow?"
PAGES = {
    "rhine": "The Rhine flows from Basel to the North Sea.",
    "danube": "The Danube flows from the Black Forest to the Black Sea.",
    "po": "The Po flows from the Alps to the Adriatic Sea.",
    "elbe": "The Elbe flows from the Giant Mountains to the North Sea.",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pages = {f"{name}.md": f"# {name.title()}\n\n{text}\n" for name, text in PAGES.items()}
    home = publish_pages(tmp_path_factory.mktemp("frameworks"), pages).home
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        yield str(home)


class TestLangChainRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _published(self, home: str) -> None:
        type(self).home = home

    home = ""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return langchain.HadesRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"home": self.home, "recipe": "vector"}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION

    @pytest.fixture
    def retriever(self, home: str) -> BaseRetriever:
        return langchain.HadesRetriever(home=home, recipe="vector")


def test_a_langchain_document_says_where_it_stands(home: str) -> None:
    first = langchain.HadesRetriever(home=home, k=1).invoke(QUESTION)[0]
    assert "Rhine" in first.page_content
    assert Path(first.metadata["source"]).name == "rhine.md"
    assert first.metadata["found_by"]


def test_the_llama_index_retriever_is_one_and_gives_scored_nodes(home: str) -> None:
    from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever

    from hades.surfaces.frameworks import llama_index

    assert LlamaIndexRetriever.__name__ in [
        base.__name__ for base in llama_index.HadesRetriever.__mro__
    ]
    nodes = llama_index.HadesRetriever(home=home, k=2).retrieve(QUESTION)
    assert len(nodes) == 2
    assert "Rhine" in nodes[0].node.get_content()
    assert nodes[0].score is not None


def test_the_haystack_component_survives_a_pipeline_file(home: str) -> None:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
    from haystack import (
        Pipeline,
    )  # here, not above: it loads torch, which the other workers need not wait for

    from hades.surfaces.frameworks import haystack

    pipeline = Pipeline()
    pipeline.add_component("retriever", haystack.HadesRetriever(home=home, top_k=2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=[haystack.__name__])
    documents = again.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
    assert len(documents) == 2
    assert "Rhine" in documents[0].content


def test_more_passages_than_there_can_be_are_refused(home: str) -> None:
    with pytest.raises(ValueError, match="k is 65; expected 1 to 64"):
        langchain.HadesRetriever(home=home, k=65).invoke(QUESTION)


def test_one_search_serves_several_retrievers(home: str) -> None:
    from hades.surfaces.frameworks import llama_index

    with open_hades(load_settings()) as hades:
        lone = langchain.HadesRetriever(search=hades, k=1).invoke(QUESTION)
        assert (
            lone[0].id
            == llama_index.HadesRetriever(search=hades, k=1).retrieve(QUESTION)[0].node.node_id
        )


def test_a_result_as_arrow_and_as_pandas(home: str) -> None:
    with open_hades(load_settings()) as hades:
        found = hades.retrieve(QUESTION)
    table = found.to_arrow()
    assert table.num_rows == len(found.passages)
    assert table.column("document").to_pylist() == [one.document for one in found.passages]
    frame = found.to_pandas("paths")
    assert list(frame["rank"]) == [one.rank for one in found.paths]
    with pytest.raises(ValueError, match="'nodes' is not a part"):
        found.to_arrow("nodes")


def test_a_filter_limits_the_documents(home: str) -> None:
    found = langchain.HadesRetriever(
        home=home, filters={"path": "po.*", "type": ["markdown"]}
    ).invoke(QUESTION)
    assert {one.metadata["document"] for one in found} == {"po.md"}
    with pytest.raises(ValueError, match="'paths' is no filter"):
        langchain.HadesRetriever(home=home, filters={"paths": "po.*"}).invoke(QUESTION)
