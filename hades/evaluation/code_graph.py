"""A graph that follows a repository from commit to commit, so that every recipe can rank its files and symbols."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hades.evaluation.code_metrics import CodeRanking
from hades.evaluation.rankings import MOMENT, PLAN
from hades.ingest.phases import IngestContext, ingest
from hades.ingest.source_document import Material
from hades.ingest.sources.git_tree import GitTreeSource
from hades.ports.view import GraphView
from hades.retrieval.turn.pipeline import Tools, retrieve
from hades.settings.hipporag import HippoSettings
from hades.settings.hirag import HiragPathrag
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish

CORPUS = "repository"


class CodeGraph:
    """The store and snapshots of one repository; the next commit writes only what changed.

    `rules` and `walk` are the sections `hirag_pathrag` and `hipporag` of the settings, which its questions follow.
    """

    def __init__(
        self,
        context: IngestContext,
        home: Path,
        rules: HiragPathrag = HiragPathrag(),
        walk: HippoSettings = HippoSettings(),
    ) -> None:
        self._context, self._home = context, home
        self._tools = Tools(context.tokenizer, context.embedder, rules, walk)
        self._parsed: dict[str, Material] = {}

    def rank(self, git_dir: Path, commit: str, question: str, recipes: Sequence[str]) -> dict[str, CodeRanking]:
        """What each recipe finds at a commit."""
        with self._at(git_dir, commit) as view:
            return {recipe: self._rank(view, question, recipe) for recipe in recipes}

    @contextmanager
    def _at(self, git_dir: Path, commit: str) -> Iterator[GraphView]:
        ingest(self._context, GitTreeSource(git_dir, commit, CORPUS, self._parsed))
        publish(self._context.store, self._home)
        view = open_snapshot(self._home)
        try:
            yield view
        finally:
            view.close()

    def _rank(self, view: GraphView, question: str, recipe: str) -> CodeRanking:
        began = time.perf_counter()
        answer = retrieve(view, question, self._tools, at=MOMENT, recipe=recipe, plan=PLAN)
        taken = (time.perf_counter() - began) * 1000
        cited = [one for one in answer.passages if one.path]
        files = tuple(dict.fromkeys(one.path for one in cited))
        symbols = tuple(dict.fromkeys(f"{one.path}:{one.symbol}" for one in cited if one.symbol))
        return CodeRanking(files, symbols, taken, abstained=not files)
