"""Topics of a folder follow its pages, folders and headings; code is quoted by its
documentation.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from hades.night.topics.cluster import Hierarchy
from hades.night.topics.inputs import HierarchyRules
from hades.night.topics.wording import (
    Quote,
    Wording,
    Writer,
    _describe_super_topics,
    _quotes,
)
from hades.ports.store import GraphStore
from schemas.ids import edge_key, sha256_text
from tests.contract.examples import entity, everything, put
from tests.homes import empty_store
from tests.unit.hades.night.topics.worlds import MODEL, build, paper_vector, topic_of


def put_page(
    store: GraphStore,
    origin: str,
    title: str,
    sections: dict[str, int],
    direction: int,
    **fields: Any,
) -> None:
    """A page with so many chunks below each heading; each heading has three names of its own, said
    in its chunks.
    """
    key = re.sub(r"\W", "_", origin)
    text = {"text": title, "sha256": sha256_text(title)}
    put(
        store,
        "documents",
        {"_key": key, "origin": origin, "source": "documents", "title": title, **text, **fields},
    )
    vector = {"embedding": paper_vector(direction, 0), "embedding_model": MODEL}
    put(store, "entities", entity(f"page_{key}", name=title, vector_of="document", **vector))
    number = 0
    for heading, count in sections.items():
        names = [f"{heading or title} {one}" for one in ("alpha", "beta", "gamma")]
        keys = [re.sub(r"\W", "_", name.lower()) for name in names]
        put(
            store,
            "entities",
            *(
                entity(one, name=name, vector_of="name")
                for one, name in zip(keys, names, strict=True)
            ),
        )
        for _ in range(count):
            chunk = {
                "_key": f"{key}_{number}",
                "document": f"documents/{key}",
                "chunk_index": number,
                **text,
                **vector,
            }
            headings = [title, heading] if heading else [title]
            put(
                store,
                "doc_chunks",
                {**chunk, "span": [0, len(title)], "token_count": 1, "headings": headings},
            )
            tail = f"doc_chunks/{key}_{number}"
            edges = [
                (edge_key(tail, "mentions", f"entities/{one}"), f"entities/{one}") for one in keys
            ]
            rows = [
                {"_key": edge, "_from": tail, "_to": head, "type": "mentions", "count": 1}
                for edge, head in edges
            ]
            put(store, "mentions", *rows)
            number += 1


def names_of_topics(store: GraphStore) -> dict[str, str]:
    """The name of the topic of each entity."""
    names = {row["_key"]: row["name"] for row in everything(store, "clusters")}
    return {key: names[topic or ""] for key, topic in topic_of(store).items()}


def test_a_long_page_is_divided_at_its_headings_and_short_pages_are_joined_by_folder(
    tmp_path: Path,
) -> None:
    store = empty_store(tmp_path / "graph.db")
    put_page(store, "docs/guide.md", "Guide", {"Install": 8, "Use": 3, "Ask": 6, "Stop": 1}, 0)
    for number in range(3):
        put_page(store, f"docs/api/p{number}.md", f"Call {number}", {"": 2}, 1)
        put_page(store, f"docs/faq/p{number}.md", f"Question {number}", {"": 2}, 2)
    assert build(store, "one").topics == 4
    found = names_of_topics(store)
    assert found["install_alpha"] == "Guide: Install"
    assert (
        found["use_alpha"]
        == found["stop_gamma"]
        == found["page_docs_guide_md"]
        == "Guide: Use; Ask"
    )
    assert {found[f"call_{number}_beta"] for number in range(3)} == {"api: Call 0; Call 1"}
    assert {found[f"page_docs_faq_p{number}_md"] for number in range(3)} == {
        "faq: Question 0; Question 1"
    }


def test_one_more_page_moves_nobody(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    for number in range(6):
        put_page(store, f"a/p{number}.md", f"Page {number}", {"": 2}, number % 2)
    build(store, "one")
    before = topic_of(store)
    put_page(store, "a/new.md", "New page", {"": 1}, 0)
    assert (build(store, "two", on=2).moved, {**topic_of(store), **before}) == (0, topic_of(store))


def test_a_module_is_called_by_its_dotted_name(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    put_page(store, "shop/orders.py", "shop/orders.py", {"": 3}, 0, source="workspace")
    chunks = [{**row, "headings": ["shop.orders"]} for row in everything(store, "doc_chunks")]
    put(store, "doc_chunks", *chunks)
    build(store, "one")
    assert set(names_of_topics(store).values()) == {"shop.orders"}


def test_code_is_quoted_by_its_documentation_and_pages_by_sentences_beside_their_examples() -> None:
    text = (
        'def open(path):\n    """Opens a river by its path.\n\n    Raises nothing."""\n    '
        "return connect(path)\n"
    )
    fenced = "```python\nriver = open('river').\n```\nOne is the first of all numbers."
    rows = [
        {
            "_key": key,
            "document": key,
            "text": body,
            "span": [10, 10 + len(body)],
            "kind": kind,
            "sha256": "",
        }
        for key, body, kind in (
            ("a", text, "function"),
            ("b", "x = 1\n", "module"),
            ("c", fenced, "prose"),
        )
    ]
    quotes = _quotes(rows, {"river": 1.0}, 3)
    assert [(quote.doc, quote.text) for quote in quotes] == [
        ("a", "Opens a river by its path."),
        ("c", "One is the first of all numbers."),
    ]
    assert quotes[0].span == (10 + text.index("Opens"), 10 + text.index("\n\n"))


def test_super_topics_are_several_and_each_has_a_name_of_its_own(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    for direction, folder in enumerate(("guide", "api")):
        for number in range(8):
            origin, title = f"{folder}/p{number}.md", f"{folder.title()} {number}"
            put_page(store, origin, title, {"": 8}, direction)
    build(store, "one")
    above = [row["name"] for row in everything(store, "clusters") if row["level"] == 2]
    assert 3 <= len(above) <= 12
    assert len(set(above)) == len(above)
    clusters = {row["_key"]: row for row in everything(store, "clusters")}
    for folder in ("guide", "api"):
        topics = [
            row
            for row in clusters.values()
            if row["level"] == 1 and row["name"].startswith(f"{folder}: ")
        ]
        assert topics
        for topic in topics:
            assert clusters[topic["parent"]]["name"].startswith(folder)


def test_change_logs_are_one_topic_and_keep_only_what_no_page_says(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    for number in range(4):
        put_page(store, f"docs/p{number}.md", f"Page {number}", {"": 4}, number)
    versions = {f"Version 1.{number}": 6 for number in range(6)}
    put_page(store, "CHANGES.md", "Version 1.5", versions, 5)
    for number in range(6):  # every version speaks of the first page as well
        tail, head = f"doc_chunks/CHANGES_md_{6 * number}", "entities/page_0_alpha"
        edge = {"_from": tail, "_to": head, "type": "mentions", "count": 50}
        put(store, "mentions", {"_key": edge_key(tail, "mentions", head), **edge})
    build(store, "one")
    found = names_of_topics(store)
    assert {name for key, name in found.items() if key.startswith("version")} == {"Release notes"}
    assert found["page_0_alpha"].startswith("Page 0")
    above = [row["name"] for row in everything(store, "clusters") if row["level"] == 2]
    assert "Release notes" in above


def test_a_numbered_section_is_no_version(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    sections = {f"1.{number} Part": 6 for number in range(6)}
    put_page(store, "report.md", "Report", sections, 0)
    build(store, "one")
    assert all(name.startswith("Report") for name in names_of_topics(store).values())


def test_a_page_is_summed_up_by_the_first_sentence_that_is_clear_by_itself() -> None:
    text = (
        "# Rivers\n\nThis is a stub. Only `river_downstream` can: consume\n\n"
        '"""Only one_task can consume events from this task."""\n\n'
        "Rivers carry water from mountains to the sea. A river begins at a spring."
    )
    row = {"_key": "a", "document": "a", "text": text, "span": [0, len(text)], "kind": "prose"}
    quotes = _quotes([{**row, "sha256": ""}], {}, 3)
    assert [quote.text for quote in quotes] == ["Rivers carry water from mountains to the sea."]


def test_topics_of_one_size_are_quoted_in_the_same_order_whatever_their_keys() -> None:
    wordings = [
        Wording(name, quotes=(Quote(f"{name} is here.", "documents/d", (0, 1), "c", ""),))
        for name in ("Ports", "Cats")
    ]
    summaries = []
    for keys in (
        ["t1_a", "t1_b"],
        ["t1_b", "t1_a"],
    ):  # as a clean build and a later night call them
        hierarchy = Hierarchy(
            labels=np.array([0, 0, 1, 1]),
            noise=np.zeros(4, bool),
            is_core=np.ones(4, bool),
            topics=keys,
            centroids=np.zeros((2, 2), np.float32),
            parents=np.array([0, 0]),
            above=["t2_a"],
            above_centroids=np.zeros((1, 2), np.float32),
            outline=[],
        )
        writer = Writer(None, None, hierarchy, {}, HierarchyRules(), MODEL)
        (above,) = _describe_super_topics(writer, wordings, [{"here": 1.0}])
        summaries.append([quote.text for quote in above.quotes])
    assert summaries == [["Ports is here.", "Cats is here."]] * 2
