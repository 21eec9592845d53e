"""Triples through a language model: estimated, capped, asked once, gone with the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from hades.ingest.edges import derive_edges
from hades.ingest.forget import forget_documents
from hades.ingest.phases import IngestContext
from hades.ingest.stated_edges import estimate, extract, parse
from hades.providers.openai import OpenAILanguageModel
from tests.loopback import Answer, answering
from tests.unit.hades.ingest.corpora import TOKENIZER, contents, people_context

TRIPLE = ["Ada Lovelace", "was inspired by", "Mary Somerville"]


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[str]]]:
    """An OpenAI-compatible endpoint on loopback that reads the same fact everywhere; its address,
    what it was asked.
    """
    asked: list[str] = []

    def answer(path: str, headers: Message, content: bytes) -> Answer:
        asked.append(json.loads(content)["messages"][-1]["content"])
        read = {
            "entities": ["Mary Somerville"],
            "triples": [TRIPLE] if "Ada Lovelace" in asked[-1] else [],
        }
        said = {"message": {"role": "assistant", "content": f"```json\n{json.dumps(read)}\n```"}}
        usage = {"prompt_tokens": 50, "completion_tokens": 20}
        reply = json.dumps({"choices": [said], "usage": usage}).encode()
        return 200, {"Content-Type": "application/json", "Content-Length": str(len(reply))}, [reply]

    with answering(answer) as address:
        yield f"{address}/v1", asked


@pytest.fixture
def context(tmp_path: Path) -> IngestContext:
    return people_context(tmp_path)


def test_the_cost_is_known_before_anything_is_asked(context: IngestContext) -> None:
    guess = estimate(context.store, TOKENIZER, "m")
    assert guess["calls"] == 4
    assert guess["prompt_tokens"] > 4 * 60
    assert guess["already_known"] == 0


def test_no_more_calls_than_allowed_and_the_rest_is_counted(
    context: IngestContext, endpoint: tuple[str, list[str]]
) -> None:
    address, asked = endpoint
    bill = extract(context.store, OpenAILanguageModel(address, "m"), max_calls=3)
    assert len(asked) == bill["calls"] == 3
    assert (bill["not_asked"], bill["prompt_tokens"], bill["completion_tokens"]) == (1, 150, 60)


def test_a_text_is_asked_once_and_its_triples_become_relations(
    context: IngestContext, endpoint: tuple[str, list[str]]
) -> None:
    address, asked = endpoint
    model = OpenAILanguageModel(address, "m")
    extract(context.store, model, max_calls=10)
    assert extract(context.store, model, max_calls=10)["calls"] == 0
    assert len(asked) == 4
    derive_edges(context.store, context.embedder)
    names = {row["name"] for row in contents(context.store)["entities"]}
    assert "Mary Somerville" in names
    assert "was inspired by" in {row["label"] for row in contents(context.store)["relations"]}


def test_what_was_read_goes_with_the_text(
    context: IngestContext, endpoint: tuple[str, list[str]]
) -> None:
    extract(context.store, OpenAILanguageModel(endpoint[0], "m"), max_calls=10)
    forget_documents(context.store, context.embedder, ["p1", "p2", "p3", "p4"])
    assert context.store.count("extractions") == 0
    assert "Mary Somerville" not in str(contents(context.store))


@pytest.mark.parametrize("answer", ["", "no idea", "{", '{"entities": }', "[1, 2]"])
def test_an_unusable_answer_says_why(answer: str) -> None:
    names, triples, problem = parse(answer)
    assert (names, triples) == ([], [])
    assert problem


def test_only_whole_triples_of_text_are_kept() -> None:
    names, triples, problem = parse(
        '{"entities": ["A", 3, " "], "triples": [["a", "b"], ["a", "b", 1], ["a", "b", "c"]]}'
    )
    assert (names, triples, problem) == (["A"], [["a", "b", "c"]], "")
