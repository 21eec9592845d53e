"""A search that ended early says so and certifies nothing; one that ended says what it saw."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.answer.write_answer import NO_ANSWER, write_answer
from hades.retrieval.answers import Answers
from hades.retrieval.core.types import NAMES_OF_RECIPES, clamp
from hades.retrieval.pipeline import Tools, retrieve
from hades.wiring import open_answers
from schemas.answer import Retrieval, WrittenAnswer
from schemas.plan import Reason
from tests.homes import publish_pages
from tests.properties.test_budgets import NOON, ToyEmbedder
from tests.unit.hades.retrieval.memory_view import MemoryView
from tests.unit.hades.retrieval.test_turn_time import SlowView, town

NOISE = {
    f"field{place}.md": f"# Field {place}\n\nThe turbine of field {place} turns at noon."
    for place in range(12)
}
ANSWERED = "Which turbine did the surveyor Ines Wald repair?"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    settings = publish_pages(tmp_path_factory.mktemp("fields"), NOISE)
    with open_answers(settings) as opened:
        yield opened


def written(found: Retrieval) -> WrittenAnswer:
    return write_answer(found, tokenizer=ByteCeiling(), embedder=None, model=None)


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_turn_whose_time_ran_out_does_not_say_that_the_sources_have_no_answer(
    recipe: str,
) -> None:
    view = SlowView(MemoryView(town()), 45.0)
    tools = Tools(ByteCeiling(), ToyEmbedder(), clock=lambda: view.now)
    plan = clamp({"budget": {"latency_ms": 30}})
    text = "Which turbine did Ines Wald repair?"
    found = retrieve(view, text, tools, at=NOON, recipe=recipe, plan=plan)
    assert Reason.TIMEOUT in found.reasons
    assert Reason.UNFINISHED in found.reasons
    assert Reason.ABSTAINED not in found.reasons
    assert found.absence is None
    answer = written(found)
    assert answer.mode == "no_answer"
    assert NO_ANSWER not in answer.text
    assert answer.text.startswith("Time ran out before the search ended")
    assert answer.absence is None


def test_a_turn_whose_reads_ran_out_does_not_say_so_either(answers: Answers) -> None:
    found = answers.retrieve(ANSWERED, plan={"budget": {"docs_max": 3}})
    assert Reason.BUDGET_DOCS in found.reasons
    assert Reason.ABSTAINED not in found.reasons
    assert found.absence is None
    assert written(found).text.startswith("The plan's reads ran out before the search ended")


def test_a_search_that_ended_certifies_what_it_searched(answers: Answers) -> None:
    found = answers.retrieve(ANSWERED)
    assert Reason.ABSTAINED in found.reasons
    assert Reason.UNFINISHED not in found.reasons
    assert found.absence is not None
    assert found.absence.read > 0
    assert written(found).text.startswith(NO_ANSWER)
