"""`hades query` reads memory beside the documents: by every recipe, with the id of the state, at the mask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.api import Hades
from hades.settings import Settings
from hades.wiring import open_hades

DECIDED = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def hades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    folder = tmp_path_factory.mktemp("both")
    (folder / "docs").mkdir()
    (folder / "docs" / "rhine.md").write_text("# Rivers\n\nThe Rhine flows through Basel and Cologne.\n")
    (folder / "docs" / "parser.md").write_text("# Parser\n\nThe parser reads grammar files.\n")
    with open_hades(Settings(home=folder / "home", embedder="hashing")) as opened:
        opened.ingest.documents(folder / "docs")
        opened.publish()
        yield opened


@pytest.mark.parametrize("recipe", ["auto", "lexical", "hipporag"])
def test_what_was_remembered_is_among_the_passages(hades: Hades, recipe: str) -> None:
    state = hades.memory.add(
        "decision/parser", "We chose the Earley parser for the billing grammar.", valid_from=DECIDED
    )
    answer = hades.retrieve("which parser did we choose for the billing grammar?", recipe=recipe)
    remembered = [one for one in answer.passages if "memory" in one.origins]
    assert [one.id for one in remembered] == [f"memory_states/{state.key}"]
    assert "Earley" in remembered[0].text
    assert "Earley" in answer.prompt
    assert [one.rank for one in answer.passages] == list(range(1, len(answer.passages) + 1))
    assert answer.passages[0].id == remembered[0].id, "it speaks more of the question than any document"
    assert answer.model_dump()["passages"][0]["from"] == ("memory",)


def test_a_question_about_documents_is_answered_by_documents(hades: Hades) -> None:
    answer = hades.retrieve("where does the Rhine flow?")
    assert answer.passages
    assert not [one for one in answer.passages if "memory" in one.origins]


def test_memory_is_read_at_the_mask(hades: Hades) -> None:
    hades.memory.add("decision/lexer", "We chose the hand written lexer.", valid_from=DECIDED)
    before = hades.retrieve("which lexer did we choose?", as_of=datetime(2025, 1, 1, tzinfo=UTC))
    since = hades.retrieve("which lexer did we choose?", as_of=datetime(2025, 4, 1, tzinfo=UTC))
    assert [any("memory" in one.origins for one in answer.passages) for answer in (before, since)] == [False, True]


def test_a_change_of_memory_is_noticed_by_the_next_question(hades: Hades) -> None:
    memory = hades.answers.tools.memory
    assert memory is not None
    before = memory.version()
    hades.memory.add("decision/cache", "We chose the small cache.")
    assert memory.version() != before
    hades.memory.erase("decision/cache", who="ana", why="asked")
    assert not [one for one in hades.retrieve("which small cache did we choose?").passages if "cache" in one.text]


def test_documents_of_a_folder_are_found_beside_memory(hades: Hades, tmp_path: Path) -> None:
    answer = hades.retrieve("the parser reads grammar files")
    assert {"memory"} != {origin for one in answer.passages for origin in one.origins}
