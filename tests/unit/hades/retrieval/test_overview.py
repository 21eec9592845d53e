"""The corpus at a glance, and two published graphs beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.night.release.compare import compare_snapshots
from hades.ports.store import scan_rows
from hades.retrieval.answer.overview import asks_overview, describe_corpus, summarise_corpus
from hades.wiring import open_hades, open_view
from tests.homes import settings_of


def test_an_overview_asks_about_the_corpus_and_a_comparison_names_what_came(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "rhine.md").write_text(
        "# Rhine\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n"
    )
    settings = settings_of(tmp_path / "home")
    lock = f"## Setting up a lock\n\n{'A lock lifts ships. ' * 9}\n\nIt is easy to set.\n\n"
    guide = f"{lock}## Breaking changes\n\n{'None at all. ' * 9}\n"
    (pages / "guide.md").write_text(f"# Changelog\n\nNothing.\n\n{guide}")
    with open_hades(settings) as hades:
        hades.ingest.documents(pages)
        before = hades.publish().snapshot
        (pages / "elbe.md").write_text(
            "# Elbe\n\nThe Elbe flows through Dresden to the North Sea.\n"
        )
        hades.ingest.documents(pages)
        after = hades.publish().snapshot
        overview = describe_corpus(hades.store)
    assert overview["formats"] == {"text/markdown": 3}
    assert overview["questions"][0] == "How do I set up a lock?"
    assert "What is Changelog?" not in overview["questions"]
    assert not any("reaking changes work" in one for one in overview["questions"])
    assert "What is Rhine?" in overview["questions"]
    said = {one["name"]: one["summary"] for one in overview["names"]}
    assert said["Rhine"] == "The Rhine flows from Basel to the North Sea."
    found = compare_snapshots(open_view(settings, before), open_view(settings, after))
    assert (found["before"], found["after"]) == (before, after)
    assert "Elbe" in found["nodes"]["entities"]["added_names"]
    assert found["nodes"]["doc_chunks"] | {"added_names": [], "removed_names": []} == {
        "before": 4,
        "after": 5,
        "added": 1,
        "removed": 0,
        "added_names": [],
        "removed_names": [],
    }


@pytest.mark.parametrize(
    ("question", "is_overview"),
    [
        ("what is in here?", True),
        ("What's in this folder", True),
        ("give me an overview", True),
        ("what is this about?", True),
        ("what is in the cache?", False),
        ("what is this error about?", False),
        ("overview of permissions", False),
    ],
)
def test_a_question_about_the_whole_corpus_is_known(question: str, is_overview: bool) -> None:
    assert asks_overview(question) is is_overview


def test_what_is_in_here_is_answered_from_topics_with_counts_and_sources(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for subject in ("Rivers", "Bread", "Release notes"):
        parts = "".join(
            f"## {subject} {n}.1\n\n{subject} of kind {n} are spoken of by many.\n\n"
            for n in range(8)
        )
        (pages / f"{subject.split()[0].lower()}.md").write_text(
            f"# {subject}\n\nAll about them.\n\n{parts}"
        )
    settings = settings_of(tmp_path / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(pages)
        hades.build()
        topics = describe_corpus(hades.store)["topics"]
        sources, sentences = summarise_corpus(hades.store)
        texts = {
            f"doc_chunks/{row['_key']}": row["text"] for row in scan_rows(hades.store, "doc_chunks")
        }
    assert topics
    assert [one.heading for one in sentences] == [one["name"] for one in topics[: len(sentences)]]
    for source, sentence, topic in zip(sources, sentences, topics, strict=False):
        assert sentence.citations == (source.number,)
        assert f"{topic['members']:,} names and passages in {source.document}" in sentence.text
        assert source.text in texts[source.id]
    assert not any("Release" in one["name"] for one in topics[:-1])
