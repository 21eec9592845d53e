"""A LlamaIndex retriever: `pip install 'hades-graphrag[llama-index]'`.

from hades.surfaces.frameworks.llama_index import HadesRetriever

HadesRetriever(k=4).retrieve("which store is the default?")"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hades.retrieval.core.types import DEFAULT
from hades.surfaces.frameworks.search import Search, describe_passage, find_passages, open_search


class HadesRetriever(BaseRetriever):
    """Passages of a HADES graph as LlamaIndex nodes with scores."""

    def __init__(
        self,
        home: str | None = None,
        k: int = 6,
        recipe: str = DEFAULT,
        search: Search | None = None,
        filters: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._search = search or open_search(home)
        self._k = k
        self._recipe = recipe
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        passages = find_passages(
            self._search,
            query_bundle.query_str,
            self._k,
            self._recipe,
            self._filters,
        )
        return [
            NodeWithScore(
                node=TextNode(
                    id_=passage.id,
                    text=passage.text,
                    metadata=describe_passage(passage),
                ),
                score=passage.score,
            )
            for passage in passages
        ]
