"""A question that stands at a moment shows nothing that was written later, whatever the recipe.

Each passage of a random corpus holds a word of its own, so the oracle is a filter of the input: no
word of a later passage is anywhere in the answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.api import Hades
from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.core.types import NAMES_OF_RECIPES
from hades.wiring import open_hades
from schemas.answer import Retrieval
from schemas.plan import Reason
from tests.homes import settings_of
from tests.patience import examples

NAMES = ("Ada Holm", "Jan Brod", "Lea Moor", "Ivo Kern", "Lake Orin", "Tarn Abbey")
FIRST = datetime(2010, 1, 1, tzinfo=UTC)
DAYS = 3650


@dataclass(frozen=True)
class DatedPassage:
    """A passage with a word that no other has; `date` is None where it states none."""

    word: str
    text: str
    date: datetime | None


def random_corpus(seed: int, size: int = 40) -> list[DatedPassage]:
    chance = random.Random(seed)
    corpus = []
    for place in range(size):
        word = f"Zq{place}x"
        one, other, third = chance.sample(NAMES, 3)
        text = (
            f"{one} met {other} near {third}. The {word} Treaty was signed by {one}. "
            f"{other} read the {word} Treaty at {third}."
        )
        date = FIRST + timedelta(days=chance.randrange(DAYS)) if chance.random() < 0.8 else None
        corpus.append(DatedPassage(word, text, date))
    return corpus


def write_rows(path: Path, corpus: list[DatedPassage]) -> Path:
    rows = []
    for passage in corpus:
        row = {"id": passage.word, "title": f"{passage.word} Report", "text": passage.text}
        if passage.date is not None:
            row["date"] = passage.date.isoformat()
        rows.append(json.dumps(row) + "\n")
    path.write_text("".join(rows), encoding="utf-8")
    return path


CORPUS = random_corpus(7)


@pytest.fixture(scope="module")
def hades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    """The corpus with topics, weights and bridges, published for real."""
    home = tmp_path_factory.mktemp("dated")
    with open_hades(settings_of(home / "home")) as opened:
        opened.ingest.passages(write_rows(home / "corpus.jsonl", CORPUS))
        opened.build()
        yield opened


def words_in(hades: Hades, found: Retrieval) -> set[str]:
    """The words of passages that stand anywhere in the result or in the answer made of it."""
    answer = write_answer(
        found, tokenizer=hades.answers.tools.tokenizer, embedder=hades.embedder, model=None
    )
    shown = (found.model_dump_json() + answer.model_dump_json()).casefold()
    return {passage.word for passage in CORPUS if passage.word.casefold() in shown}


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_nothing_later_than_the_moment_is_shown(hades: Hades, recipe: str) -> None:
    chance = random.Random(recipe)
    shown_at_all = set()
    for _ in range(examples(8)):
        moment = FIRST + timedelta(days=chance.randrange(-30, DAYS))
        axis = chance.choice(["as_of", "known_at"])
        text = f"Which treaty did {' and '.join(chance.sample(NAMES, 2))} sign?"
        found = hades.retrieve(text, recipe=recipe, **{axis: moment})
        shown = words_in(hades, found)
        later = {passage.word for passage in CORPUS if passage.date and passage.date > moment}
        assert not shown & later, f"{axis} {moment.date()}: {text}"
        shown_at_all |= shown
        undated = {passage.word for passage in CORPUS if passage.date is None}
        documents = {passage.document for passage in found.passages}
        assert (Reason.UNDATED in found.reasons) == bool(documents & undated)
        assert (found.excluded or 0) == len(later)
    assert shown_at_all


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_moment_after_everything_answers_as_without_one(hades: Hades, recipe: str) -> None:
    text = "Which treaty did Ada Holm and Jan Brod sign?"
    now = hades.retrieve(text, recipe=recipe)
    later = hades.retrieve(text, recipe=recipe, as_of="2030-01-01")
    assert [passage.id for passage in later.passages] == [passage.id for passage in now.passages]
    assert [path.text for path in later.paths] == [path.text for path in now.paths]
    assert later.hierarchy == now.hierarchy


def test_topics_that_speak_of_later_texts_are_not_shown(hades: Hades) -> None:
    text = "Which treaty did Ada Holm and Jan Brod sign?"
    assert hades.retrieve(text, recipe="hirag").hierarchy
    found = hades.retrieve(text, recipe="hirag", as_of="2013-12-31")
    assert not found.hierarchy
    assert Reason.TOPICS_LATER in found.reasons
