"""Topics of a workspace are finer than those of a corpus of texts, and quote sentences instead of code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hades.build.topics.cluster import grain
from hades.build.topics.inputs import HierarchyRules, Material
from hades.build.topics.wording import _quotes, code_topic_name, code_topics, common_module, words_of_names
from models.topics.describe import characteristic_terms, term_counts


def material(symbols: int, others: int) -> Material:
    count = symbols + others
    nothing = np.zeros(count, bool)
    is_symbol = np.arange(count) < symbols
    graph = sparse.csr_matrix((count, count), dtype=np.float32)
    names = [str(number) for number in range(count)]
    vectors = np.zeros((count, 2), np.float32)
    return Material(names, names, vectors, nothing, nothing, nothing, is_symbol, graph, [None] * count, [""] * count)


def test_a_workspace_of_160_files_is_divided_five_times_as_finely_as_160_texts() -> None:
    rules = HierarchyRules()
    assert grain(material(0, 1000), np.arange(160), rules) == (5, pytest.approx(1.265, abs=0.01))
    assert grain(material(900, 300), np.arange(160), rules) == (3, pytest.approx(6.325, abs=0.01))
    assert grain(material(0, 0), np.arange(0), rules) == (5, 1.0)


def test_code_is_quoted_by_the_sentences_of_its_documentation() -> None:
    text = 'def open(path):\n    """Opens a river by its path.\n\n    Raises nothing."""\n    return connect(path)\n'
    rows = [
        {"_key": key, "document": key, "text": body, "span": [10, 10 + len(body)], "kind": kind, "sha256": ""}
        for key, body, kind in (("a", text, "function"), ("b", "x = 1\n", "module"), ("c", "One is a number.", "prose"))
    ]
    quotes = _quotes(rows, {"river": 1.0}, 3)
    assert [(quote.doc, quote.text) for quote in quotes] == [
        ("a", "Opens a river by its path."),
        ("c", "One is a number."),
    ]
    assert quotes[0].span == (10 + text.index("Opens"), 10 + text.index("\n\n"))


def test_a_topic_of_code_is_named_by_its_module_and_by_what_its_functions_do() -> None:
    symbols = [
        "shop.orders.cancel_order",
        "shop.orders.refund_order",
        "shop.orders.Order.cancel_order",
        "shop.orders.Order.__init__",
        "shop.mail.send_receipt",
    ]
    world = replace(material(5, 2), names=[*symbols, "Order history", "shop.orders"])
    words = words_of_names(world)
    assert words == ["cancel order", "refund order", "cancel order", "", "send receipt", "Order history", "shop.orders"]
    labels = np.zeros(7, np.int64)
    assert code_topics(world, labels, 1).tolist() == [True]
    terms = characteristic_terms(term_counts(words[:5]), labels[:5], 1, 20)[0]
    assert code_topic_name(terms, symbols) == "shop.orders: cancel order, send receipt"


@pytest.mark.parametrize(
    ("symbols", "module"),
    [
        ([], ""),
        (["a.f"], "a"),
        (["a.b.C.f", "a.b.C.g", "x.y"], "a.b"),
        (["a.f", "b.f", "c.f"], ""),
        (["project.part.inner.f", "project.part.inner.g"], "part.inner"),
    ],
)
def test_the_module_of_a_topic_is_the_longest_that_half_of_its_symbols_share(symbols: list[str], module: str) -> None:
    assert common_module(symbols) == module
