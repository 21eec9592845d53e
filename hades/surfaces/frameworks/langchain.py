"""A LangChain retriever: `pip install 'hades-graphrag[langchain]'`.

from hades.surfaces.frameworks.langchain import HadesRetriever

HadesRetriever(k=4).invoke("which store is the default?")"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from hades.retrieval.core.types import DEFAULT
from hades.surfaces.frameworks.search import Search, describe_passage, find_passages, open_search


class HadesRetriever(BaseRetriever):
    """Passages of a HADES graph as LangChain documents; metadata says where each stands."""

    home: str | None = Field(
        None,
        description="HADES_HOME of the graph; by default that of the settings",
    )
    k: int = Field(6, description="number of documents")
    recipe: str = Field(DEFAULT, description="retrieval recipe")
    filters: dict[str, Any] | None = Field(
        None,
        description="only these documents, as path, source, type, tag, ...",
    )
    search: Any = Field(
        None,
        description="an open graph, in place of `home`",
        exclude=True,
    )

    @cached_property
    def _search(self) -> Search:
        if self.search is not None:
            search: Search = self.search
        else:
            search = open_search(self.home)

        return search

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        limit = self.k if k is None else k
        passages = find_passages(
            self._search,
            query,
            limit,
            self.recipe,
            self.filters,
        )

        relevant_documents = []
        for passage in passages:
            relevant_documents.append(
                Document(
                    id=passage.id,
                    page_content=passage.text,
                    metadata=describe_passage(passage),
                )
            )

        return relevant_documents
