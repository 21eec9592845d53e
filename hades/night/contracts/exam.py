"""The contracts of the exam, of standing questions and of the ranker."""

from __future__ import annotations

from hades.night.contracts.rule import (
    between,
    contract,
    has_text,
    holds,
    unique,
)

STANDING_CONTRACT = contract(
    "standing",
    "answers that must cite a source, before the pointer moves",
    "bring the source back, or drop the requirement: `hades standing remove`",
    {
        "questions": [
            (
                "cites_its_source",
                "the answer to a standing question cites the source that it requires",
                holds("cites"),
                "question",
                "requires",
                "cited",
            ),
        ],
    },
)
EXAM_CONTRACT = contract(
    "exam",
    "the questions that the corpus supplies",
    "write it again: remove HADES_HOME/exam and run `hades build`",
    {
        "questions": [
            ("question_unique", "a question is asked once", unique("_key")),
            ("question_has_text", "a question has words", has_text("text")),
            (
                "answer_known",
                "a question that can be answered names the passages that answer it",
                "text",
            ),
            ("weight_positive", "a question counts for something", between("weight", 1e-9)),
        ],
    },
)
RANKER_CONTRACT = contract(
    "ranker",
    "the graph that states of nodes are fitted to",
    "publish a graph first: `hades build`",
    {
        "graphs": [
            ("some_nodes", "a graph has nodes", between("nodes", 1)),
            ("features_finite", "every feature of a node is a finite number", "nodes"),
        ],
    },
    {"features_finite": "embed again: `hades run embed`"},
)
