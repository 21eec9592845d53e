"""Notes that link to each other: links become edges between documents, tags and properties become
facts.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.ingest.phases import ingest
from hades.ingest.sources import documents as vault
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.material import Material
from tests.unit.hades.ingest.corpora import new_context


def notes(root: Path, **texts: str) -> dict[str, Material]:
    for name, text in texts.items():
        path = root / name.replace("IN", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_name(f"{path.name}.md").write_text(text)
    return {one.origin: one for one in DocumentsSource(root).read() if isinstance(one, Material)}


def test_links_find_notes_by_name_path_and_alias(tmp_path: Path) -> None:
    found = notes(
        tmp_path,
        index="See [[Pump]], [[deep/Valve#Seals|the valve]], [[PM]], [[Nowhere]], "
        "[x](deep/Valve.md#x). ![[Pump]]",
        Pump="---\naliases: [PM, pumping unit]\n---\nbody",
        deepINValve="body two",
    )
    links = {link.target: link.count for link in found["index.md"].links}
    assert links == {"Pump.md": 3, "deep/Valve.md": 2}
    assert ("index", "links to", "Nowhere") in found["index.md"].triples


def test_tags_and_properties_of_front_matter_are_facts(tmp_path: Path) -> None:
    text = (
        "---\ntitle: Pump\ntags: [hydraulics, plant/north]\ndate: 2026-03-02\n"
        "owner: '[[Maria Silva]]'\nauthor: Ann Lee\n---\n"
        "A note #urgent with colour #ff0044 and code:\n```\n#include [[no]]\n```\n"
    )
    found = notes(tmp_path, pump=text)["pump.md"]
    assert found.created == datetime(2026, 3, 2, tzinfo=UTC)
    assert set(found.triples) == {
        ("Pump", "tagged", "hydraulics"),
        ("Pump", "tagged", "plant/north"),
        ("Pump", "tagged", "urgent"),
        ("Pump", "owner", "Maria Silva"),
    }
    assert found.text == text
    assert found.metadata == {
        "tags": ["hydraulics", "plant/north", "urgent"],
        "authors": ["Ann Lee"],
    }


def test_chunks_know_their_file_and_its_date(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "pump.md").write_text(
        "---\ndate: 2026-03-02\n---\nThe pump of Maria Silva works."
    )
    context = new_context(tmp_path)
    ingest(context, DocumentsSource(tmp_path / "vault"))
    moment = datetime(2026, 3, 2, tzinfo=UTC)
    chunk = next(iter(context.store.scan("doc_chunks"))).to_pylist()[0]
    assert (chunk["file_path"], chunk["timestamp"]) == ("pump.md", moment)
    for name in ("mentions", "relations"):
        dates = [
            row
            for batch in context.store.scan(name)
            for row in batch.column("valid_from").to_pylist()
        ]
        assert set(dates) == {moment}


def test_logseq_pages_have_properties_and_namespaces(tmp_path: Path) -> None:
    found = notes(
        tmp_path,
        pagesINProject___Pump="tags:: [[hydraulics]], spare\nlead:: [[Maria]]\n- see #[[big idea]]",
        journalsINday="- worked on [[Project/Pump]]",
    )
    assert [link.target for link in found["journals/day.md"].links] == ["pages/Project___Pump.md"]
    assert {
        (relation, target) for _, relation, target in found["pages/Project___Pump.md"].triples
    } >= {
        ("tagged", "hydraulics"),
        ("tagged", "spare"),
        ("tagged", "big idea"),
        ("lead", "Maria"),
    }


@pytest.mark.parametrize(
    "front", ["---\n[[[[[\n---\n", "---\n" + "[" * 5000 + "\n---\n", "---\n- a\n---\n", "---\na: 1"]
)
def test_damaged_front_matter_is_no_front_matter(tmp_path: Path, front: str) -> None:
    assert notes(tmp_path, a=front + "body #tag")["a.md"].triples[-1] == ("a", "tagged", "tag")


def test_brackets_that_the_yaml_reader_would_take_long_for_are_not_handed_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed: list[str] = []
    monkeypatch.setattr(vault.yaml, "safe_load", handed.append)
    assert vault.front_matter("---\na: " + "[" * 301 + "\n---\n") == {}
    assert handed == []
    vault.front_matter("---\na: " + "[]{}" * 400 + "\n---\n")
    assert len(handed) == 1


def test_a_note_of_nothing_but_brackets_takes_linear_time(tmp_path: Path) -> None:
    start = time.process_time()
    notes(tmp_path, a="[[a|" * 20_000 + "\n" * 10 + "```\n" * 20_000 + "[a](" * 20_000)
    assert time.process_time() - start < 20
