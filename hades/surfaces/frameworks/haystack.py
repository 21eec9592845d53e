"""A Haystack component: `pip install 'hades-graphrag[haystack]'`.

from hades.surfaces.frameworks.haystack import HadesRetriever

pipeline.add_component("retriever", HadesRetriever(top_k=4))"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from haystack import Document, component

from hades.retrieval.core.types import DEFAULT
from hades.surfaces.frameworks.search import Search, describe_passage, find_passages, open_search


@component
class HadesRetriever:
    """Passages of a HADES graph as Haystack documents."""

    def __init__(
        self,
        home: str | None = None,
        top_k: int = 6,
        recipe: str = DEFAULT,
        search: Search | None = None,
        filters: dict[str, Any] | None = None,
    ) -> None:
        # as a pipeline file has them
        self.home = home
        self.top_k = top_k
        self.recipe = recipe
        self.filters = filters
        self._open_graph = search

    @cached_property
    def _search(self) -> Search:
        return self._open_graph or open_search(self.home)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Find the documents of a question."""
        limit = self.top_k if top_k is None else top_k
        passages = find_passages(
            self._search,
            query,
            limit,
            self.recipe,
            self.filters,
        )
        return {
            "documents": [
                Document(
                    id=passage.id,
                    content=passage.text,
                    meta=describe_passage(passage),
                    score=passage.score,
                )
                for passage in passages
            ]
        }
