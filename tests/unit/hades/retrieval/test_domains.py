"""Domains: set by ingestion from folder, language, category, corpus or the caller, and kept by
every question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hades.api import Hades
from hades.ports.graph import DocumentFilter
from hades.settings.tree import Settings
from hades.wiring import open_hades

PAPERS = [
    {
        "id": "1",
        "title": "Mercury in lakes",
        "abstract": "Fish of Lake Orta hold mercury.",
        "categories": ["q-bio.PE"],
    },
    {
        "id": "2",
        "title": "Orbits",
        "abstract": "Mercury turns around the Sun.",
        "categories": ["astro-ph", "gr-qc"],
    },
]


@pytest.fixture(scope="module")
def hades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    folder = tmp_path_factory.mktemp("domains")
    for path, text in {
        "notes/chemistry/metals.md": "# Metals\n\nMercury is liquid. Ada Holm weighed Mercury in "
        "Leiden.\n",
        "notes/myths/gods.md": "---\ntags: [myth]\nauthor: Ovid\ndate: 2026-01-05\n---\n"
        "# Gods\n\nMercury carries messages for Jupiter. Jupiter rules Olympus.\n",
        "code/planet.py": 'def orbit():\n    """The orbit of Mercury."""\n    return 1\n',
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "papers.jsonl").write_text("\n".join(map(json.dumps, PAPERS)))
    (folder / "rows.jsonl").write_text(
        json.dumps(
            {"id": "r1", "title": "Freddie", "text": "Mercury sang in London.", "category": "music"}
        )
    )
    with open_hades(Settings(home=folder / "home", embedder="hashing")) as opened:
        opened.ingest.documents(folder / "notes")
        opened.ingest.workspace(folder / "code", domain="simulator")
        opened.ingest.arxiv(folder / "papers.jsonl")
        opened.ingest.passages(folder / "rows.jsonl")
        opened.publish()
        yield opened


@pytest.mark.parametrize(
    ("domain", "documents"),
    [
        ("chemistry", {"chemistry/metals.md"}),
        ("myths", {"myths/gods.md"}),
        ("notes", {"chemistry/metals.md", "myths/gods.md"}),
        ("Python", {"planet.py"}),
        ("simulator", {"planet.py"}),
        ("astro-ph", {"2"}),
        ("gr-qc", {"2"}),
        ("arxiv", {"1", "2"}),
        ("music", {"r1"}),
        ("rows", {"r1"}),
    ],
)
def test_a_question_is_answered_from_its_domain_alone(
    hades: Hades, domain: str, documents: set[str]
) -> None:
    answer = hades.retrieve("what is Mercury?", domain=domain, anyway=True)
    assert {one.document for one in answer.passages} == documents


@pytest.mark.parametrize(
    ("only", "documents"),
    [
        ({"paths": ("*/gods.md", "planet.*")}, {"myths/gods.md", "planet.py"}),
        ({"types": ("markdown",)}, {"chemistry/metals.md", "myths/gods.md"}),
        ({"types": ("py",)}, {"planet.py"}),
        ({"sources": ("arxiv",)}, {"1", "2"}),
        ({"tags": ("Myth",)}, {"myths/gods.md"}),
        ({"authors": ("ovid",), "types": ("md",)}, {"myths/gods.md"}),
        ({"since": datetime(2026, 1, 5, tzinfo=UTC)}, {"myths/gods.md"}),
        ({"until": datetime(2026, 1, 5, tzinfo=UTC)}, set()),
        ({"domain": "notes", "paths": ("chemistry/",)}, {"chemistry/metals.md"}),
        ({"tags": ("nothing",)}, set()),
    ],
)
@pytest.mark.parametrize("recipe", ["auto", "hipporag", "vector", "pathrag"])
def test_a_question_is_limited_to_what_its_filters_name(
    hades: Hades, recipe: str, only: dict[str, Any], documents: set[str]
) -> None:
    limited = DocumentFilter(**only)
    answer = hades.retrieve(
        "Mercury Jupiter Olympus Leiden London orbit", recipe=recipe, only=limited, anyway=True
    )
    shown = {one.document for one in answer.passages}
    assert shown <= documents
    assert shown == documents or recipe == "pathrag"
    assert {edge.provenance.doc for path in answer.paths for edge in path.edges} <= {*documents, ""}
    assert {node.document for path in answer.paths for node in path.nodes} <= {*documents, ""}
    assert answer.excluded == 6 - len(documents)


def test_an_entity_of_several_domains_belongs_to_each(hades: Hades) -> None:
    for domain, other in (("myths", "Leiden"), ("chemistry", "Olympus")):
        answer = hades.retrieve("Mercury Jupiter Olympus Leiden", recipe="pathrag", domain=domain)
        names = {node.name for path in answer.paths for node in path.nodes}
        assert "Mercury" in names
        assert other not in names


def test_memory_is_a_domain_and_so_is_the_first_part_of_a_topic(hades: Hades) -> None:
    hades.memory.add("planets/decision", "We chose Mercury as the first planet.")
    for domain, expected in (("memory", True), ("planets", True), ("chemistry", False)):
        answer = hades.retrieve("which planet did we choose, Mercury?", domain=domain, anyway=True)
        assert any("memory" in one.origins for one in answer.passages) is expected


def test_a_corpus_that_is_read_again_keeps_its_domain(hades: Hades, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Venus\n\nVenus is bright.\n")
    hades.ingest.documents(tmp_path, domain="sky")
    (tmp_path / "page.md").write_text("# Venus\n\nVenus is very bright.\n")
    hades.ingest.again(None)
    rows = [
        row
        for batch in hades.store.scan("documents")
        for row in batch.to_pylist()
        if row["title"] == "Venus"
    ]
    assert [row["domains"][0] for row in rows] == ["sky"]
