"""The exam of a corpus: what asks for what, what is hidden, and that the same corpus gives the same
bytes.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hades.api import Hades
from hades.night.exam.questions import (
    Corpus,
    Draft,
    ExamPassage,
    ExamQuestion,
    StatedLink,
    write_exam,
)
from hades.night.exam.stage import (
    ExamAnswer,
    build_exam,
    grade_exam,
    path_of,
    read_corpus,
    read_exam,
    take_exam,
)
from hades.night.release.publish import release
from hades.ports.services import utc_now
from hades.retrieval.turn_result import judge
from hades.snapshot.open import open_snapshot
from schemas.nodes import CHANGED_FILES, ChunkKind
from schemas.telemetry import JudgedRanks
from tests.contract.examples import everything
from tests.unit.hades.night.release.small_graphs import MONDAY, opened


def passage(
    name: str,
    text: str,
    *headings: str,
    title: str = "",
    kind: ChunkKind = ChunkKind.PROSE,
    symbol: str = "",
):
    origin = name.partition("#")[0]
    return ExamPassage(name, f"documents/{origin}", origin, title, headings, text, kind, symbol)


def asked(*passages: ExamPassage, links: tuple[StatedLink, ...] = ()) -> dict[str, ExamQuestion]:
    return {one.kind: one for one in write_exam(Corpus(passages, links)) if one.is_answerable}


def test_a_heading_asks_for_its_section_without_the_word_said_most():
    one = asked(
        passage("a.md", "Proxies forward. Proxies are slow.", "Advanced", "Routing proxies around")
    )["heading"]
    assert (one.text, one.gold, one.hidden) == ("how about advanced routing?", (("a.md",),), ())


def test_a_link_asks_for_its_target_and_the_passage_with_the_link_is_hidden():
    source = passage(
        "docs/a.md", "You tune waiting for slow servers by [limits](b.md#set-timeouts) of seconds."
    )
    one = asked(
        source,
        passage("docs/b.md", "Ten.", "Set timeouts"),
        passage("docs/b.md#2", "Else.", "Other"),
    )["link"]
    assert one.text == "You tune waiting for slow servers by limits of seconds."
    assert (one.gold, one.hidden) == ((("docs/b.md",),), ("docs/a.md",))


def test_a_sentence_that_names_a_section_asks_for_it_without_the_name():
    tells = passage(
        "news.md",
        "The `connect_timeout` says after how many patient minutes slow servers are given up.",
        "Waiting",
    )
    pages = (passage("b.md", "Ten seconds.", "connect_timeout"), passage("c.md", "Else.", "Usage"))
    one = asked(tells, *pages)["mention"]
    assert one.text == "what says after how many patient minutes slow servers are given up?"
    assert (one.gold, one.hidden) == ((("b.md",),), ("news.md",))
    assert "mention" not in asked(
        tells, *pages, passage("d.md", "Other.", "connect_timeout")
    )  # which of the two?


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        (
            "A task pool limits how many workers may run at the same moment.",
            "what limits how many workers may run at the same moment?",
        ),
        (
            "The returned dictionary is passed on to the task pool scheduler in whole batches.",
            "The returned dictionary is passed on to the scheduler in whole batches.",
        ),
        ("Installing task pool requires careful workers and a slow server at the least.", ""),
        ("To limit how many workers run, make use of the existing mechanism of task pool.", ""),
        ("Prefer queues or task pool with careful workers over starting threads yourself.", ""),
        ("When sending a task pool, the content header must be sent along as well.", ""),
        ("Instead of the task pool there is a second object that stores information.", ""),
    ],
)
def test_a_sentence_with_a_hole_is_not_asked(sentence, question):
    news, pool = passage("news.md", sentence, "Waiting"), passage("b.md", "Ten.", "Task pool")
    mention = asked(news, pool, passage("c.md", "Else.", "Usage")).get("mention")
    assert (mention.text if mention else "") == question


def test_roles_of_a_folder_ask_for_the_pages_and_sections_that_they_lead_to(tmp_path):
    pages = tmp_path / "pages"
    (pages / "guide").mkdir(parents=True)
    (pages / "guide" / "pools.rst").write_text(ROLES)
    (pages / "reference.rst").write_text(REFERENCE)
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(pages)
        questions = write_exam(read_corpus(hades.store))
        chunks = {f"doc_chunks/{row['_key']}": row for row in everything(hades.store, "doc_chunks")}
    links = {one.text: one for one in questions if one.kind == "link" and one.is_answerable}
    wanted = {
        text: {tuple(chunks[key]["headings"][-1:]) for key in question.gold[0]}
        for text, question in links.items()
    }
    assert wanted == {
        "Patient workers wait for slow servers as reference tells operators.": {
            ("Reference",),
            ("Waiting for slots",),
            ("Classes",),
            ("Words",),
        },
        "Operators who lack free slots should read about waiting before midnight.": {
            ("Waiting for slots",)
        },
        "Custom executors inherit all that they schedule from core.base.Executor in small steps.": {
            ("Classes",)
        },
        "Every finished run leaves a deferred trigger behind in the metadata database.": {
            ("Words",)
        },
    }
    hidden = {chunks[key]["file_path"] for one in links.values() for key in one.hidden}
    assert hidden == {"guide/pools.rst"}


ROLES = """Pools
=====

Patient workers wait for slow servers as :doc:`/reference` tells operators. Nothing else matters.

Operators who lack free slots should read about :ref:`waiting` before midnight.

* Custom executors inherit all that they schedule from :class:`~core.base.Executor` in small
  steps.
* Every finished run leaves a :term:`deferred trigger` behind in the metadata database.

See :doc:`elsewhere:index` for what another project says about its unrelated matters today.
"""
REFERENCE = """Reference
=========

Ten minutes pass.

.. _waiting:

Waiting for slots
-----------------

Slots are given out in turn.

Classes
-------

.. currentmodule:: core.base

.. class:: Executor(parallelism)

   Runs things.

Words
-----

.. glossary::

   deferred trigger
      Something that fires later.
"""


def test_a_label_of_sphinx_is_a_target():
    source = passage(
        "a.rst",
        "Parameters can be counted several times over, see :ref:`the flags <counting>` there.",
    )
    assert asked(source, passage("b.rst", ".. _counting:\n\nCounting flags\n\nUse count=True."))[
        "link"
    ].gold == (("b.rst",),)


def test_a_definition_asks_for_its_subject():
    one = asked(
        passage(
            "a",
            "Ada Lovelace was a mathematician who wrote programs of an engine.",
            title="Ada Lovelace",
        )
    )
    assert one["definition"].text == "what was a mathematician who wrote programs of an engine?"


def test_an_acronym_asks_for_the_passages_that_spell_it_out():
    one = asked(passage("a", "It sends Server Sent Events (SSE)."), passage("b", "SSE again."))[
        "acronym"
    ]
    assert (one.text, one.gold) == ("what does SSE stand for?", (("a",),))


def test_a_docstring_asks_for_its_function_and_a_commit_for_its_files():
    code = 'def open_door():\n    """Open the iron gate before midnight comes."""\n'
    held = passage("src/door.py", code, kind=ChunkKind.FUNCTION, symbol="open_door")
    commit = passage(
        "c1", f"Close doors quietly after midnight{CHANGED_FILES}src/door.py", kind=ChunkKind.COMMIT
    )
    found = asked(held, commit)
    assert "open" not in found["docstring"].text.lower()
    assert found["docstring"].gold == (("src/door.py",),)
    assert (found["commit"].gold, found["commit"].hidden) == ((("src/door.py",),), ("c1",))


def test_a_citation_asks_for_the_paper_and_two_names_for_both():
    pages = [passage(name, f"{name} text.", title=name) for name in ("Vienna", "Kurt Goedel")]
    joins = passage("page", "In winter Kurt Goedel left Vienna by train.", title="Trains")
    cites = StatedLink("documents/page", "Vienna", ("Proofs were shown by clever students [4].",))
    found = asked(*pages, joins, links=(cites,))
    assert found["citation"].gold == (("Vienna",),)
    assert (set(found["names"].gold), found["names"].hidden) == (
        {("Vienna",), ("Kurt Goedel",)},
        ("page",),
    )


def test_quotations_fill_up_what_other_questions_leave_and_ambiguous_ones_are_left_out():
    pages = [
        passage(f"{place}.md", f"Body {place}.", f"Common case{place} heading")
        for place in range(60)
    ]
    again = [passage(f"again{place}.md", "Body.", "Twice told") for place in range(2)]
    judged = [Draft("judged", f"who knows thing{place}?", (("1.md",),)) for place in range(20)]
    found = [
        one for one in write_exam(Corpus([*pages, *again]), judged, most=30) if one.is_answerable
    ]
    assert len(found) == 30
    assert sum(one.kind == "judged" for one in found) == 20
    assert not any("told" in one.text for one in found)


def test_an_unanswerable_question_hides_the_documents_that_answer_it():
    pages = [
        passage(f"{place}.md", f"Body {place}.", f"Rare case{place} heading") for place in range(60)
    ]
    without = [one for one in write_exam(Corpus(pages)) if not one.is_answerable]
    assert 0 < len(without) < 30
    assert all(set(one.gold[0]) <= set(one.hidden) for one in without)


def write_manual(folder: Path) -> Path:
    folder.mkdir()
    for place, name in enumerate(
        ("timeouts", "proxies", "cookies", "redirects", "certificates", "streaming")
    ):
        text = (
            f"# Client {name}\n\nThe client has {name} by number{place}.\n\n## Tuning {name} "
            f"level{place}\n\n"
        )
        (folder / f"{name}.md").write_text(
            f"{text}Set the {name} value before sending anything to slow servers.\n"
        )
    return folder


@pytest.fixture
def manual(tmp_path: Path):
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(write_manual(tmp_path / "docs"))
        yield hades


def test_the_same_corpus_gives_the_same_bytes_and_a_judged_answer_is_asked(
    manual: Hades, tmp_path: Path
):
    first = build_exam(manual.build_context)
    written = path_of(manual.home).read_bytes()
    assert build_exam(manual.build_context)["skipped"]
    with opened(tmp_path / "other") as other:
        other.ingest.documents(tmp_path / "docs")
        assert build_exam(other.build_context)["data_hash"] == first["data_hash"]
        assert path_of(other.home).read_bytes() == written
    release(manual.build_context, MONDAY, 3)
    answer = manual.retrieve("how are redirects tuned?")
    judge(manual.store, answer.query_id, good=JudgedRanks(passages=(1,)), at=utc_now())
    build_exam(manual.build_context)
    assert [one.text for one in read_exam(manual.home) if one.kind == "judged"][:1] == [
        "how are redirects tuned?"
    ]


def test_the_exam_is_taken_and_hidden_passages_are_not_found(manual: Hades):
    build_exam(manual.build_context)
    release(manual.build_context, MONDAY, 3)
    questions = read_exam(manual.home)
    assert manual.build_context.open_tools is not None
    with closing(open_snapshot(manual.home)) as view:
        answers = take_exam(view, manual.build_context.open_tools(), questions)
        assert not any(set(one.passage_ids) & set(one.question.hidden) for one in answers)
    document = grade_exam(answers)
    assert document["score"]["recall@5"] > 0.8
    assert document["questions"] == len(questions)


def test_recall_counts_parts_and_worst_questions_come_first():
    both = ExamQuestion("names", "who?", (("a", "b"), ("c",)), key="1")
    good, bad = ExamAnswer(both, ("b", "x", "c"), 0.9), ExamAnswer(both, ("x",), 0.1)
    assert (good.recall(1), good.recall(5), bad.recall(5), good.reciprocal_rank) == (
        0.5,
        1.0,
        0.0,
        1.0,
    )
    late = ExamAnswer(both, ("x", "y", "a"), 0.1)
    worst = grade_exam([good, late, bad])["worst"]
    assert [(one["found"], one["place"]) for one in worst] == [(["x"], None), (["x", "y", "a"], 3)]
