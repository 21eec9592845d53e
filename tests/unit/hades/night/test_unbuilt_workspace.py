"""A workspace can be asked before anything is built, and what is excluded is neither ingested nor
searched.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.errors import NothingPublished
from hades.settings.tree import Settings
from hades.wiring import open_answers, open_hades
from schemas.plan import Reason
from tests.unit.hades.ingest.sources.repositories import Repository

CART = "def total_price(cart):\n    return sum(cart)\n"


def test_a_checkout_without_a_build_answers_from_its_files_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CART)
    (tmp_path / "mail.py").write_text("def send(address):\n    return address\n")
    Repository(tmp_path)
    settings = Settings(home=tmp_path / ".hades", embedder="hashing")
    with open_answers(settings) as answers:
        found = answers.retrieve("where is the total price computed?", level="file")
        (tmp_path / "price.py").write_text(
            "def total_price_with_tax(cart):\n    return 2 * sum(cart)\n"
        )
        later = answers.retrieve("`total_price_with_tax`", level="symbol")
        with pytest.raises(NothingPublished):
            answers.retrieve("where is the total price computed?", recipe="pathrag")
    assert found.reasons == (Reason.NOT_BUILT,)
    assert found.ranking[0].id == "shop.py"
    assert (found.passages[0].path, found.passages[0].lines, found.passages[0].symbol) == (
        "shop.py",
        (1, 2),
        "total_price",
    )
    assert "total_price" in found.prompt
    assert later.ranking[0].id == "price.py:total_price_with_tax"
    assert not (tmp_path / ".hades").exists()


def test_a_folder_that_is_no_repository_has_nothing_to_ask(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CART)
    settings = Settings(home=tmp_path / ".hades", embedder="hashing")
    with open_answers(settings) as answers, pytest.raises(NothingPublished):
        answers.retrieve("where is the total price computed?")


def test_excluded_paths_are_left_out_of_ingestion_and_of_search_before_the_build(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    (work / "fixtures" / "deep").mkdir(parents=True)
    (work / "shop.py").write_text(CART)
    (work / "fixtures" / "deep" / "total.sql").write_text("select total_price from cart;\n")
    (work / "fixtures" / ".gitignore").write_text("!deep/\n")
    settings = Settings(home=tmp_path / "home", embedder="hashing")
    with open_hades(settings) as hades:
        report = hades.ingest.workspace(work, exclude=["fixtures/"])
        answer = hades.retrieve("total price of the cart", level="file")
        again = hades.ingest.again(None)
    assert report.read == 1
    assert [one.id for one in answer.ranking] == ["shop.py"]
    assert again[0]["documents"]["removed"] == 0


def test_a_home_that_cannot_be_written_costs_time_and_no_answer(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CART)
    Repository(tmp_path)
    (tmp_path / ".hades").mkdir()
    (tmp_path / ".hades" / "cache").write_text("a file where the folder should be")
    with open_answers(Settings(home=tmp_path / ".hades", embedder="hashing")) as answers:
        found = answers.retrieve("where is the total price computed?", level="file")
    assert [one.id for one in found.ranking] == ["shop.py"]
