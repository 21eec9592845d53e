"""Prompts: the template to the byte, paths in words, and the order in which models read best."""

from __future__ import annotations

import pytest

from hades.ports.graph import EdgeFacts, Kind, NodeFacts
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.path_text import cite, path_text, rationale, reliability_of
from hades.retrieval.answer.prompt import format_path_prompt, format_paths_for_prompt
from hades.retrieval.walks.flow import calculate_path_score

TOKENS = MiniLmTokenizer()

LAYOUT = """\
Hierarchy context (HiRAG):
- Topic ▸ Subtopic ▸ Section summaries: Networks
▸ Attention

Relational paths (PathRAG):
1) A --[extends; snippet: "A extends B"]--> B --[cites]--> C
2) A <--[cites]-- D

Instructions: Answer using only the information in these paths. Cite path # and node ids."""


def node(key: str, name: str = "") -> NodeFacts:
    return NodeFacts(f"entities/{key}", Kind.ENTITY, name or key, "concept")


def edge(
    kind: str = "extends", snippet: str = "", weight: float | None = None, label: str = ""
) -> EdgeFacts:
    return EdgeFacts(f"relations/{kind}", "", "", kind, weight=weight, snippet=snippet, label=label)


def test_the_prompt_is_the_template_to_the_byte():
    abc = path_text(
        TOKENS,
        [node("A"), node("B"), node("C")],
        [edge("extends", "A extends B"), edge("cites")],
        [True] * 2,
    )
    ad = path_text(TOKENS, [node("A"), node("D")], [edge("cites")], [False])
    assert (
        format_path_prompt([abc, ad], "Networks\n▸ Attention", tokenizer=TOKENS).encode()
        == LAYOUT.encode()
    )


def test_without_paths_and_topics_the_frame_stands():
    assert format_path_prompt([], "").splitlines() == [
        "Hierarchy context (HiRAG):",
        "- Topic ▸ Subtopic ▸ Section summaries:",
        "",
        "Relational paths (PathRAG):",
        "",
        "",
        "Instructions: Answer using only the information in these paths. Cite path # and node ids.",
    ]


def test_the_hierarchy_is_held_to_300_tokens_at_a_word():
    summary = "\n".join(["topic " * 100, "chapter " * 100, "section " * 300, "never reached"])
    prompt = format_path_prompt([], summary, tokenizer=TOKENS)
    told = prompt.split("summaries: ")[1].split("\n\n")[0]
    assert TOKENS.count(told) <= 300
    assert told.startswith("topic topic")
    assert told.endswith("section…")


def test_a_path_that_cannot_be_shown_whole_is_left_out():
    prompt = format_path_prompt(["x " * 121, "A --[cites]--> B"], "", tokenizer=TOKENS)
    assert "\n2) A --[cites]--> B\n" in prompt, "its place among the paths given"
    assert "x x" not in prompt


def test_a_path_with_nodes_is_told_with_their_ids_where_they_fit():
    nodes = [{"id": "entities/a"}, {"id": "entities/b"}]
    path = {"text": "A --[cites]--> B", "nodes": nodes}
    assert "1) A --[cites]--> B (entities/a, entities/b)\n" in format_path_prompt(
        [path], "", tokenizer=TOKENS
    )
    full = {"text": "x " * 118, "nodes": nodes}
    assert "entities/" not in format_path_prompt([full], "", tokenizer=TOKENS)


def test_long_snippets_are_cut_before_names_and_the_longest_first():
    long, short = "word " * 300, "a short one"
    nodes = [node("a", "First Name"), node("b", "Second Name"), node("c", "Third Name")]
    text = path_text(TOKENS, nodes, [edge("cites", long), edge("extends", short)], [True, False])
    assert TOKENS.count(f"99) {text}{cite(node.id for node in nodes)}") <= 120
    assert TOKENS.count(f"99) {text}{cite(node.id for node in nodes)}") > 110
    assert text.startswith('First Name --[cites; snippet: "word word')
    assert text.endswith('word…"]--> Second Name <--[extends; snippet: "a short one"]-- Third Name')


def test_names_are_cut_only_when_there_is_no_other_way():
    nodes = [node(str(place), f"n{place} " + "long " * 60) for place in range(4)]
    text = path_text(TOKENS, nodes, [edge("cites", "a snippet")] * 3, [True] * 3)
    assert TOKENS.count(text) <= 120
    assert text.count("]-->") == 3
    assert all(f"n{place} long" in text for place in range(4))


def test_quotes_line_breaks_and_arrows_in_names_do_not_break_the_form():
    text = path_text(
        TOKENS,
        [node("a", "f() --> g"), node("b", "x\ny")],
        [edge("calls", 'say "hi"\nnow]--> there')],
        [True],
    )
    assert text == "f() –> g --[calls; snippet: \"say 'hi' now]–> there\"]--> x y"


def test_a_stated_relation_is_shown_in_its_own_words():
    assert path_text(
        TOKENS, [node("A"), node("B")], [edge("related_to", label="was born in")], [True]
    ) == ("A --[was born in]--> B")


def test_the_rationale_names_the_start_the_search_and_the_weakest_edge():
    why = rationale(
        [edge("cites", "said", 0.9), edge("extends", "", 0.25)],
        seed="A",
        origin="beam",
        reliability=0.31,
    )
    assert why == (
        "2 hops from A by beam, reliability 0.31; weakest edge extends (0.25); 1 of 2 edges quote "
        "their source"
    )
    assert (
        rationale([], seed="A", origin="vector", reliability=1.0) == "A itself matches the question"
    )


def test_paths_stand_in_ascending_reliability_behind_the_query():
    paths = [
        {"path": "A -> B", "reliability": 0.9, "vertices": [{"name": "A", "description": "first"}]},
        {"path": "C -> D", "reliability": 0.2},
        {"path": "E -> F", "reliability": 0.5},
    ]
    assert format_paths_for_prompt(paths, "who?") == (
        "Query: who?\n\nRelevant information:\n\n"
        "Path (0.20): C -> D\n\nPath (0.50): E -> F\n\nMost relevant path (0.90): A -> B\n- A: "
        "first\n"
    )


def test_a_missing_reliability_is_computed_from_the_weights():
    edges = [{"_from": "A", "_to": "B", "weight": 0.5}, {"_from": "B", "_to": "C", "weight": None}]
    path = {"path": "A -> B -> C", "vertices": ["A", "B", "C"], "edges": edges}
    assert reliability_of(path) == pytest.approx((0.85 * 0.5 + 0.85 * 0.5 * 0.85) / 2)
    assert "Most relevant path (0.39): A -> B -> C" in format_paths_for_prompt([path], "who?")
    assert reliability_of({"path": "A", "edges": edges}) == calculate_path_score(None, None)


def test_the_least_reliable_paths_are_left_out_first():
    paths = [{"path": f"path{place} " + "x " * 20, "reliability": place / 10} for place in range(5)]
    prompt = format_paths_for_prompt(
        paths, "who?", max_tokens=100, reserve_tokens=20, tokenizer=TOKENS
    )
    assert TOKENS.count(prompt) <= 80
    assert "path4" in prompt
    assert "path0" not in prompt


def test_a_query_larger_than_the_window_is_refused():
    with pytest.raises(ValueError, match="the query takes"):
        format_paths_for_prompt([], "x " * 100, max_tokens=50, reserve_tokens=0, tokenizer=TOKENS)
