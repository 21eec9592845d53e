"""What a ranker is fitted to: the exported graph holds together, and preferences are between things that were there."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, holds, one_of, some_rows, unique

_EXPORT = "export again: `hades run train_ranker`"
SPLITS = ("fit", "held")
SOURCES = ("file", "feedback")

CONTRACT = Contract(
    "ranker",
    "the export that a ranker is fitted to",
    (
        Rule("ranker.some_nodes", "nodes", "the export has nodes", some_rows(), repair=_EXPORT),
        Rule("ranker.node_unique", "nodes", "a node is there once a graph", unique("graph", "id"), repair=_EXPORT),
        Rule(
            "ranker.node_of_its_kind",
            "nodes",
            "a node's id names the collection of its kind",
            holds("kind_matches"),
            ("id", "kind"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.features_finite",
            "nodes",
            "every feature of a node is a finite number",
            holds("is_finite"),
            ("id",),
            repair="embed again: `hades run embed`",
        ),
        Rule(
            "ranker.degrees_match",
            "nodes",
            "a node has as many edges as it says",
            holds("degree_matches"),
            ("id", "degree", "edges"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.edge_ends_exist",
            "edges",
            "both ends of an edge are nodes of its graph",
            holds("ends_exist"),
            ("source", "target"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.some_questions", "questions", "there are questions", some_rows(), repair="name a file of questions"
        ),
        Rule("ranker.question_has_text", "questions", "a question has words", holds("has_text"), ("text",)),
        Rule("ranker.split_known", "questions", "a question is fitted or held out", one_of("split", SPLITS)),
        Rule(
            "ranker.source_known",
            "questions",
            "a question comes from a file or from feedback",
            one_of("source", SOURCES),
        ),
        Rule(
            "ranker.held_out_is_later",
            "questions",
            "of logged questions the later ones are held out",
            holds("is_in_time"),
            ("at", "split"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_of_a_question",
            "preferences",
            "a preference belongs to a question",
            holds("question_exists"),
            ("question",),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_of_nodes",
            "preferences",
            "both sides of a preference are nodes of the graph",
            holds("nodes_exist"),
            ("better", "worse"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_is_one_way",
            "preferences",
            "nothing is preferred to itself, and nothing both ways",
            holds("is_one_way"),
            ("better", "worse"),
            repair="judge the answer again: `hades feedback`",
        ),
        Rule(
            "ranker.propensity_in_range",
            "preferences",
            "the chance that a passage stood where it stood lies above 0 and not above 1",
            between("propensity", 1e-6, 1),
            repair=_EXPORT,
        ),
    ),
)
