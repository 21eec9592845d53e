"""`hades query` reads memory beside the documents: by every recipe, with the id of the state, at
the mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.api import Hades
from hades.errors import NothingPublished
from hades.settings.tree import Settings
from hades.wiring import open_hades

DECIDED = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def hades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    folder = tmp_path_factory.mktemp("both")
    (folder / "docs").mkdir()
    (folder / "docs" / "rhine.md").write_text(
        "# Rivers\n\nThe Rhine flows through Basel and Cologne.\n"
    )
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
    assert answer.passages[0].id == remembered[0].id, (
        "it speaks more of the question than any document"
    )
    assert answer.model_dump()["passages"][0]["from"] == ("memory",)


def test_a_question_about_documents_is_answered_by_documents(hades: Hades) -> None:
    answer = hades.retrieve("where does the Rhine flow?")
    assert answer.passages
    assert not [one for one in answer.passages if "memory" in one.origins]


def test_memory_is_read_at_the_mask(hades: Hades) -> None:
    hades.memory.add("decision/lexer", "We chose the hand written lexer.", valid_from=DECIDED)
    before = hades.retrieve("which lexer did we choose?", as_of=datetime(2025, 1, 1, tzinfo=UTC))
    since = hades.retrieve("which lexer did we choose?", as_of=datetime(2025, 4, 1, tzinfo=UTC))
    assert [
        any("memory" in one.origins for one in answer.passages) for answer in (before, since)
    ] == [False, True]


def test_a_change_of_memory_is_noticed_by_the_next_question(hades: Hades) -> None:
    memory = hades.answers.tools.memory
    assert memory is not None
    before = memory.version()
    hades.memory.add("decision/cache", "We chose the small cache.")
    assert memory.version() != before
    hades.memory.erase("decision/cache", who="ana", why="asked")
    assert not [
        one
        for one in hades.retrieve("which small cache did we choose?").passages
        if "cache" in one.text
    ]


def test_a_path_leads_from_a_remembered_decision_to_the_code_it_is_about(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "earley.py").write_text(
        'class EarleyParser:\n    """Reads the billing grammar."""\n\n    def parse(self, text):\n '
        "       return text\n"
    )
    with open_hades(Settings(home=tmp_path / "home", embedder="hashing")) as opened:
        opened.ingest.workspace(tmp_path / "code")
        opened.publish()
        state = opened.memory.add(
            "decision/parser", "We keep EarleyParser because it recovers from errors."
        )
        answer = opened.retrieve("why do we keep EarleyParser?")
        symbol = next(
            row["_key"]
            for batch in opened.store.scan("entities")
            for row in batch.to_pylist()
            if row["name"] == "earley.EarleyParser"
        )
        path = answer.paths[0]
        assert [node.id for node in path.nodes][:2] == [
            f"memory_states/{state.key}",
            f"entities/{symbol}",
        ]
        assert path.nodes[-1].document == "earley.py"
        assert path.text.startswith("decision/parser --[mentions")
        assert path.edges[0].provenance.doc == f"memory_states/{state.key}"
        assert path.edges[0].provenance.span == (8, 20)
        assert not opened.retrieve("why do we keep EarleyParser?", max_paths=0).paths
        assert len(opened.retrieve("why do we keep EarleyParser?", max_paths=1).paths) == 1


def test_memory_answers_where_nothing_is_published(tmp_path: Path) -> None:
    with open_hades(Settings(home=tmp_path / "home", embedder="hashing")) as opened:
        with pytest.raises(NothingPublished, match="nothing has been published"):
            opened.retrieve("which database did we choose?")
        opened.memory.add("decision/database", "We chose SQLite as the database.")
        answer = opened.retrieve("which database did we choose?")
        assert [one.title.partition(",")[0] for one in answer.passages] == ["decision/database"]
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.md").write_text(
            "# Database\n\nThe database is backed up every night.\n"
        )
        opened.ingest.documents(tmp_path / "docs")
        opened.publish()
        answer = opened.retrieve("how often is the database backed up?")
        assert [one.document for one in answer.passages if "memory" not in one.origins] == ["a.md"]


def test_weak_documents_raise_no_doubt_about_what_memory_answers(hades: Hades) -> None:
    question = "which vineyard did Ottilie buy in Piedmont?"
    assert "abstained" in hades.retrieve(question).reasons
    hades.memory.add("family/vineyard", "Ottilie bought the vineyard La Morra in Piedmont.")
    answer = hades.retrieve(question)
    assert "abstained" not in answer.reasons
    assert "abstained" not in answer.why
    assert [one.origins for one in answer.passages] == [("memory",)]
    assert "abstained" not in answer.prompt
