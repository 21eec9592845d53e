"""What is saved is published with its words and vectors before the graph that follows from it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hades.api import Hades
from hades.errors import ContractBroken
from hades.night.history import changes_of, moves_of
from hades.night.standing import add_standing
from hades.ports.services import utc_now
from hades.settings.load import load_settings
from hades.snapshot.pointer import newer_documents, served, snapshots
from hades.wiring import open_hades
from schemas.answer import Retrieval
from schemas.plan import Reason
from tests.patience import examples

PAGES = {
    "rota.md": "# Rota\n\nThe quokka rota is signed by Ermintrude in Hobart.\n",
    "pools.md": "# Pools\n\nA pool limits how many tasks run at once. See [Rota](rota.md).\n",
    "gate.md": "# Gate\n\nThe east gate is opened by Balthazar. See [Pools](pools.md).\n",
}
QUESTIONS = ("Who signs the quokka rota?", "Who opens the east gate?", "What does a pool limit?")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    return pages


def opened(home: Path) -> Hades:
    return open_hades(load_settings({"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}))


def evidence(answer: Retrieval) -> list[object]:
    """What an answer shows, without when and of which snapshot."""
    passages = [(passage.document, passage.text, passage.origins) for passage in answer.passages]
    paths = [[(node.id, node.name) for node in path.nodes] for path in answer.paths]
    return [passages, paths, answer.reasons]


def test_a_saved_page_is_answered_before_its_graph_and_the_answer_says_so(folder, tmp_path):
    between: list[Retrieval] = []
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(folder, "documents")
        (folder / "rota.md").write_text("# Rota\n\nThe quokka rota is signed by Peregrine.\n")

        def ask(_: float) -> None:
            between.extend(map(hades.retrieve, QUESTIONS))

        hades.refresh_folder(folder, "documents", ask)
        after = hades.retrieve(QUESTIONS[0])
    changed, unchanged, _ = between
    assert "Peregrine" in changed.passages[0].text
    assert "vector" in changed.passages[0].origins
    assert Reason.GRAPH_FOLLOWS in changed.reasons
    cites_changed = any("rota.md" in passage.document for passage in unchanged.passages)
    assert (Reason.GRAPH_FOLLOWS in unchanged.reasons) == cites_changed
    assert "Peregrine" in after.passages[0].text
    assert Reason.GRAPH_FOLLOWS not in after.reasons


def test_the_history_has_what_a_saved_page_changed_and_forgets_a_page_that_went(folder, tmp_path):
    home = tmp_path / "home"
    with opened(home) as hades:
        hades.refresh_folder(folder, "documents")
        (folder / "rota.md").write_text("# Rota\n\nThe quokka rota is signed by Peregrine.\n")
        hades.refresh_folder(folder, "documents")
        newest = moves_of(home)[-1]
        rows = {row.name: row for row in changes_of(home, newest)}
        assert rows["rota.md"].came == ("The quokka rota is signed by Peregrine.",)
        assert rows["rota.md"].gone == ("The quokka rota is signed by Ermintrude in Hobart.",)
        (folder / "rota.md").unlink()
        hades.refresh_folder(folder, "documents")
        hades.forget(["rota.md"])
    assert not any(b"Peregrine" in path.read_bytes() for path in (home / "history").iterdir())


def test_a_removed_page_is_gone_before_the_graph_follows(folder, tmp_path):
    between: list[Retrieval] = []
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(folder, "documents")
        (folder / "gate.md").unlink()
        hades.refresh_folder(
            folder, "documents", lambda _: between.append(hades.retrieve(QUESTIONS[1]))
        )
    (answer,) = between
    assert all("Balthazar" not in passage.text for passage in answer.passages)


def test_only_whole_graphs_can_be_gone_back_to(folder, tmp_path):
    home = tmp_path / "home"
    with opened(home) as hades:
        first = hades.refresh_folder(folder, "documents")["snapshot"]
        (folder / "rota.md").write_text("# Rota\n\nThe rota is signed by Peregrine.\n")
        second = hades.refresh_folder(folder, "documents")["snapshot"]
    assert [entry.snapshot for entry in snapshots(home)] == [second, first]


def test_nothing_is_published_between_where_nothing_changed(folder, tmp_path):
    calls: list[float] = []
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(folder, "documents")
        hades.refresh_folder(folder, "documents", calls.append)
    assert calls == []


def test_standing_questions_are_compared_between_whole_graphs(folder, tmp_path):
    calls: list[float] = []
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(folder, "documents")
        add_standing(hades.store, [(QUESTIONS[0], "")], utc_now())
        (folder / "rota.md").write_text("# Rota\n\nThe rota is signed by Peregrine.\n")
        hades.refresh_folder(folder, "documents", calls.append)
    assert calls == []


def test_pages_whose_graph_failed_stay_marked_until_one_is_built(folder, tmp_path, monkeypatch):
    home = tmp_path / "home"
    with opened(home) as hades:
        hades.refresh_folder(folder, "documents")
        (folder / "rota.md").write_text("# Rota\n\nThe rota is signed by Peregrine.\n")
        with monkeypatch.context() as broken:
            broken.setattr("hades.api.build", refuse)
            with pytest.raises(ContractBroken):
                hades.refresh_folder(folder, "documents")
        assert len(newer_documents(home)) == 1
        (folder / "gate.md").write_text("# Gate\n\nThe east gate is opened by Kunigunde.\n")
        marked: list[int] = []
        hades.refresh_folder(
            folder, "documents", lambda _: marked.append(len(newer_documents(home)))
        )
    assert marked == [2]
    assert newer_documents(home) == set()


def refuse(*_: object) -> None:
    raise ContractBroken("a rule is broken")


@pytest.mark.parametrize("seed", range(examples(1)))
def test_what_was_published_between_changes_no_graph_that_follows(seed, folder, tmp_path):
    """The same edits, once with pages first and once without: the very same snapshots; and the
    answers of a graph that is built of the last pages from nothing.
    """
    random = Random(seed)
    quick, plain, fresh = (tmp_path / name for name in ("quick", "plain", "fresh"))
    with opened(quick) as quick_hades, opened(plain) as plain_hades:
        plain_hades._publish_pages = lambda context, known: ""  # type: ignore[method-assign]
        for _ in range(4):
            edit(folder, random)
            for hades in (quick_hades, plain_hades):
                hades.refresh_folder(folder, "documents")
            assert served(quick) == served(plain)
        answers = [evidence(quick_hades.retrieve(text)) for text in QUESTIONS]
    with opened(fresh) as hades:
        hades.refresh_folder(folder, "documents")
        assert [evidence(hades.retrieve(text)) for text in QUESTIONS] == answers


def edit(folder: Path, random: Random) -> None:
    """Change, add or remove pages, at least one of them."""
    names = ("Ermintrude", "Balthazar", "Peregrine", "Kunigunde")
    for name in random.sample([*PAGES, "spare.md"], 2):
        page = folder / name
        if name == "spare.md" and page.exists():
            page.unlink()
            continue
        text = PAGES.get(name, "# Spare\n\nA spare key is kept. See [Gate](gate.md).\n")
        page.write_text(f"{text}\n{random.choice(names)} was here {random.randrange(99)} times.\n")
