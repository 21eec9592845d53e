"""Rights come from the folder that documents were read from, and hold before anything is built."""

from __future__ import annotations

import json
import mailbox
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import numpy as np
import pytest

from hades.api import Hades
from hades.errors import HadesError
from hades.ingest.stated_rights import FILE, SourceRights
from hades.ports.graph import DocumentFilter, Kind
from hades.retrieval.walks.pagerank import personalized_pagerank
from hades.snapshot.rights_file import OWNER, RightsError, RightsFile, asker_of
from hades.wiring import open_hades
from schemas.ids import Mask
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.repositories import commit, start

PAGES = {
    "open/office.md": "# Office\n\nThe office opens at nine. Ada Holm keeps the key.\n",
    "hr/salaries.md": "# Salaries\n\nThe salary of the Zorblat director is 90000 euros.\n",
}
QUESTION = "what is the salary of the Zorblat director?"


def write(folder: Path, pages: dict[str, str]) -> None:
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "pages", {**PAGES, FILE: "hr/: [HR, user:Anna]\n"})
    return tmp_path / "pages"


@pytest.fixture
def hades(folder: Path) -> Iterator[Hades]:
    with open_hades(settings_of(folder.parent / "home")) as opened:
        opened.ingest.documents(folder)
        opened.publish()
        yield opened


def shown(hades: Hades, **asker: object) -> set[str]:
    answer = hades.retrieve(QUESTION, anyway=True, **asker)
    return {passage.document for passage in answer.passages}


def test_a_question_sees_what_is_public_or_names_who_asks(hades: Hades) -> None:
    everything = set(PAGES)
    assert shown(hades) == shown(hades, as_user="bob", groups=("legal",)) == {"open/office.md"}
    assert shown(hades, as_user="anna") == shown(hades, groups=["hr"]) == everything
    assert shown(hades, as_owner=True) == everything


def test_a_part_of_the_corpus_is_neither_counted_nor_described(hades: Hades) -> None:
    answer = hades.retrieve(QUESTION)
    assert answer.absence is not None
    assert answer.absence.passages == 1
    assert (answer.excluded, answer.hierarchy, answer.telemetry.reads) == (None, (), 0)
    whole = hades.retrieve(QUESTION, as_owner=True)
    assert whole.telemetry.reads > 0


def test_changed_rights_hold_once_the_source_was_read_again(hades: Hades, folder: Path) -> None:
    (folder / FILE).write_text("hr/: legal\nopen/: hr\n")
    assert shown(hades) == {"open/office.md"}
    hades.ingest.documents(folder)
    assert shown(hades) == set()
    assert shown(hades, groups=("legal",)) == {"hr/salaries.md"}
    (folder / FILE).unlink()
    hades.ingest.documents(folder)
    assert shown(hades) == set(PAGES)


def test_a_page_that_went_stays_hidden_while_a_snapshot_shows_it(
    hades: Hades, folder: Path
) -> None:
    (folder / "hr/salaries.md").unlink()
    hades.ingest.documents(folder)
    assert shown(hades) == {"open/office.md"}
    assert "hr/salaries.md" in shown(hades, groups=("hr",))


def test_the_last_rule_that_fits_counts_and_inner_folders_come_last(tmp_path: Path) -> None:
    write(tmp_path, {FILE: '"*": staff\n"*.md": [hr]\n', f"a/{FILE}": "open.md: public\n"})
    write(tmp_path, {"a/b/x.md": "x", "a/b/x.txt": "x", "a/open.md": "x"})
    rights = SourceRights(str(tmp_path / "a"))
    assert rights.of_origin("b/x.md") == ("hr",)
    assert rights.of_origin("b/x.txt") == ("staff",)
    assert rights.of_origin("open.md") == ("public",)


def test_a_message_has_the_rights_of_its_mailbox(tmp_path: Path) -> None:
    write(tmp_path, {FILE: "box.mbox: hr\n'odd#name.md': legal\n", "odd#name.md": "x"})
    box = mailbox.mbox(tmp_path / "box.mbox")
    message = EmailMessage()
    message["Message-ID"] = "<one@x>"
    message.set_content("Hello.")
    box.add(message)
    box.flush()
    rights = SourceRights(str(tmp_path))
    assert rights.of_origin("box.mbox#one@x") == ("hr",)
    assert rights.of_origin("odd#name.md") == ("legal",)


@pytest.mark.parametrize(
    "text", ["*: hr\n", "- hr\n", "hr/: 3\n", "'!hr/': public\n", "hr/: [a, b\n", "hr/: '*'\n"]
)
def test_rights_that_cannot_be_read_stop_the_reading(hades: Hades, folder: Path, text: str) -> None:
    (folder / FILE).write_text(text)
    (folder / "hr/bonus.md").write_text("# Bonus\n\nA bonus for all.\n")
    with pytest.raises(RightsError):
        hades.ingest.documents(folder)
    assert hades.store.count("documents") == len(PAGES)
    assert shown(hades) == {"open/office.md"}


def test_a_damaged_file_of_rights_shows_nobody_anything(hades: Hades) -> None:
    (hades.home / "rights.json").write_text("{")
    with pytest.raises(RightsError, match="nobody can be shown anything"):
        hades.retrieve(QUESTION)


def test_no_commit_is_shown_where_some_file_has_rights(tmp_path: Path) -> None:
    repository = start(tmp_path / "code")
    commit(repository, {"hr/zorblat_pay.py": "def pay():\n    return 1\n"})
    commit(repository, {FILE: "hr/: hr\n", "open.py": "def door():\n    return 2\n"})
    with open_hades(settings_of(tmp_path / "home")) as hades:
        hades.ingest.workspace(tmp_path / "code")
        hades.publish()
        question = "which change touched the pay?"
        public = hades.retrieve(question, groups=("hr",), anyway=True)
        assert {passage.document for passage in public.passages} <= {"hr/zorblat_pay.py", "open.py"}
        assert "zorblat" not in hades.retrieve(question, anyway=True).model_dump_json()
        whole = hades.retrieve(question, as_owner=True, anyway=True)
        assert any(passage.document.startswith("commit:") for passage in whole.passages)


def test_walks_do_not_pass_through_hidden_texts(hades: Hades, folder: Path) -> None:
    write(folder, {"hr/link.md": "# Link\n\nAda Holm met Jan Brod in Karst.\n"})
    write(folder, {"open/karst.md": "# Karst town\n\nKarst is a town. Vesta lives in Karst.\n"})
    hades.ingest.documents(folder)
    hades.publish()
    view = hades.view()
    start = view.match_names("Ada Holm").numbers
    passages = view.lexical("Karst town", kind=Kind.CHUNK, limit=1).numbers

    def score(asker: tuple[str, ...]) -> float:
        within = DocumentFilter(readers=asker)
        adjacency = view.adjacency() if asker == OWNER else view.adjacency_within(within)
        walk = personalized_pagerank(adjacency, start, np.ones(len(start)), mask=Mask())
        return dict(zip(walk.numbers.tolist(), walk.scores.tolist(), strict=True)).get(
            int(passages[0]), 0.0
        )

    assert score(OWNER) > 0
    assert score(asker_of("anna")) > 0
    assert score(asker_of(None)) == 0


def test_a_branch_keeps_the_rights_of_its_home(hades: Hades) -> None:
    branch = RightsFile(hades.home / "branches" / "trial")
    assert branch.current().readers == RightsFile(hades.home).current().readers


def test_what_a_plan_brings_has_its_rights_once_applied(
    hades: Hades, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(hades.home, monkeypatch)
    hades.build()
    hades.close()
    write(folder, {"hr/bonus.md": "# Bonus\n\nThe Zorblat director has a bonus of 7000 euros.\n"})
    plan = json.loads(run("plan", "--json").stdout)["plan"]
    run_json("apply", plan)
    question = ("query", "which bonus has the Zorblat director?", "--anyway")
    asked = {
        who: {passage["document"] for passage in run_json(*question, "--groups", who)["passages"]}
        for who in ("hr", "legal")
    }
    assert "hr/bonus.md" in asked["hr"]
    assert asked["legal"] == {"open/office.md"}


def test_a_home_without_rights_has_no_file_of_them(tmp_path: Path) -> None:
    write(tmp_path / "pages", PAGES)
    with open_hades(settings_of(tmp_path / "home")) as hades:
        hades.ingest.documents(tmp_path / "pages")
        hades.publish()
        assert shown(hades) == set(PAGES)
        assert not (hades.home / "rights.json").exists()


@pytest.mark.parametrize("groups", [("user:anna",), ("*",), ("x" * 300,)])
def test_nobody_asks_by_a_name_that_no_group_has(groups: tuple[str, ...]) -> None:
    with pytest.raises(HadesError):
        asker_of("bob", groups)
