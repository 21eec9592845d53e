"""A moment in the past shows nothing that was written later, over a snapshot and over AQL."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hades.retrieval.core.types import NAMES_OF_RECIPES
from schemas.ids import Mask
from tests.arango_double.server import ArangoDouble
from tests.contract.test_remote_turns import PASSAGES, QUESTIONS, Views, ask, put_on_both
from tests.patience import examples


@pytest.fixture(scope="module")
def dated_views(tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble) -> Views:
    """The same graph, a passage a year from 2001 on."""
    dates = [datetime(2001 + place, 1, 1, tzinfo=UTC) for place in range(len(PASSAGES))]
    return put_on_both(PASSAGES, tmp_path_factory.mktemp("years"), double, dates)


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_moment_shows_nothing_later_on_both_views(dated_views: Views, recipe: str) -> None:
    later = {f"p{place}" for place in range(4, len(PASSAGES))}
    mask = Mask(as_of=datetime(2004, 6, 1, tzinfo=UTC))
    for question in QUESTIONS[: examples(3)]:
        for view in (dated_views.live, dated_views.snapshot):
            found = ask(view, question, recipe, mask)
            documents = {one.document for one in found.passages}
            documents |= {edge.provenance.doc for path in found.paths for edge in path.edges}
            assert documents
            assert not documents & later
            assert "Thornton was a glazier" not in found.model_dump_json()
