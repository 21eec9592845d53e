"""Questions about code find the file and the function, by each kind of evidence that they may
hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hades.api import Hades
from hades.compat.functions import paths_before_cut
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.code.index import CodeIndex, CodeUnit, Commit, History
from hades.retrieval.code.search import CodeHits, search_code
from hades.retrieval.code.words import code_terms
from hades.retrieval.pipeline import BadQuestion
from schemas.plan import Reason
from tests.homes import empty_store
from tests.unit.hades.ingest.sources.repositories import Repository

FILES = {
    "shop/cart.py": (
        "def add_item(cart, item):\n    cart.append(item)\n\n\ndef totalPrice(cart):\n    return "
        "sum(cart)\n"
    ),
    "shop/payment.py": (
        "from shop.cart import totalPrice\n\n\nclass Gateway:\n    def charge(self, card, "
        "amount):\n"
        '        if amount <= 0:\n            raise ValueError("the amount to charge must be '
        'positive")\n'
        "        return self.send(card, amount)\n\n    def refund(self, card):\n        return "
        "None\n"
    ),
    "shop/mail.py": "def send_receipt(address):\n    return address\n",
    "tests/test_payment.py": (
        "from shop.payment import Gateway\n\n\ndef test_charge_card():\n    "
        "Gateway().charge('card', 1)\n"
    ),
    "docs/payment.md": "# Payment\n\nHow to charge a card with the gateway.\n",
}
UNITS = [
    CodeUnit(
        "shop/cart.py", "add_item", "function", 1, 2, FILES["shop/cart.py"].split("\n\n\n")[0]
    ),
    CodeUnit(
        "shop/cart.py", "totalPrice", "function", 5, 6, FILES["shop/cart.py"].split("\n\n\n")[1]
    ),
    CodeUnit("shop/payment.py", "", "module", 1, 1, "from shop.cart import totalPrice"),
    CodeUnit(
        "shop/payment.py",
        "Gateway.charge",
        "method",
        5,
        8,
        FILES["shop/payment.py"].split("\n\n")[1][15:],
    ),
    CodeUnit(
        "shop/payment.py",
        "Gateway.refund",
        "method",
        10,
        11,
        "    def refund(self, card):\n        return None",
    ),
    CodeUnit("shop/mail.py", "send_receipt", "function", 1, 2, FILES["shop/mail.py"]),
    CodeUnit(
        "tests/test_payment.py",
        "test_charge_card",
        "function",
        4,
        5,
        FILES["tests/test_payment.py"],
    ),
]


@pytest.mark.parametrize(
    ("question", "path", "symbol"),
    [
        ("Where is the total price computed?", "shop/cart.py", "totalPrice"),
        ("`Gateway.refund` returns nothing", "shop/payment.py", "Gateway.refund"),
        (
            "Crash\nValueError: the amount to charge must be positive",
            "shop/payment.py",
            "Gateway.charge",
        ),
        (
            'Crash\n  File "/lib/site-packages/shop/mail.py", line 2, in send_receipt',
            "shop/mail.py",
            "send_receipt",
        ),
        ("The address in shop/mail.py is wrong", "shop/mail.py", "send_receipt"),
        ("shop.cart.add_item drops items", "shop/cart.py", "add_item"),
    ],
)
def test_each_kind_of_evidence_finds_its_code(question: str, path: str, symbol: str) -> None:
    hits = search_code(CodeIndex(UNITS), question, 5)
    assert hits.files[0].id == path
    assert hits.symbols[0].id == f"{path}:{symbol}"
    assert UNITS[hits.units[0][0]].path == path


def test_a_test_stands_behind_the_code_that_it_tests() -> None:
    names = [one.id for one in search_code(CodeIndex(UNITS), "charge a card", 9).files]
    assert names.index("shop/payment.py") < names.index("tests/test_payment.py")


def test_commits_like_the_question_bring_up_the_files_that_they_touched() -> None:
    past = History([Commit("a", 1.0, "Round the invoice to cents", ("shop/mail.py",))])
    assert search_code(CodeIndex(UNITS), "invoice shows fractions of cents", 9).files == ()
    found = search_code(CodeIndex(UNITS, past), "invoice shows fractions of cents", 9)
    assert found.files[0].id == "shop/mail.py"


def test_a_plain_sentence_finds_the_nearest_function_and_one_that_spells_a_name_finds_that() -> (
    None
):
    index = CodeIndex(UNITS)
    cosines = np.array([0.8 if unit.symbol == "send_receipt" else 0.1 for unit in UNITS])
    plain, named = (
        "how does a customer hear of the price of a card",
        "`Gateway.refund` of a card returns nothing",
    )
    assert search_code(index, plain, 5).symbols[0].id != "shop/mail.py:send_receipt"
    assert search_code(index, plain, 5, cosines).symbols[0].id == "shop/mail.py:send_receipt"
    assert search_code(index, plain, 5, cosines).files[0].id == "shop/mail.py"
    assert search_code(index, named, 5, cosines).symbols[0].id == "shop/payment.py:Gateway.refund"


def test_past_changes_equal_a_plain_count_commit_by_commit() -> None:
    random = np.random.default_rng(7)
    names = [f"f{number}.py" for number in range(40)]
    row = {name: place for place, name in enumerate(names)}
    sizes = random.integers(
        1, 36, 500
    )  # some touch more files than a commit may that says something
    commits = [
        Commit(
            f"c{n:03}", float(random.random()), "", tuple(random.choice(names, size, replace=False))
        )
        for n, size in enumerate(sizes.tolist())
    ]
    history, weights = History(commits), random.random(len(names))
    often, recent, lent, total = (np.full(len(names), start) for start in (0.0, 0.0, 0.0, 1.0))
    for place, commit in enumerate(history.commits):
        own = [row[path] for path in commit.paths]
        for one in own if len(own) <= 30 else ():
            often[one] += place < 300
            recent[one] = recent[one] or 1.0 / (1.0 + place / 20.0)
            if len(own) > 1:
                worth = 0.998**place / (len(own) - 1)
                total[one] += worth
                lent[one] += worth * sum(weights[other] for other in own if other != one)
    found = history.changes_of(row)
    np.testing.assert_allclose(found.frequency, np.log1p(often))
    np.testing.assert_allclose(found.recency, recent)
    np.testing.assert_allclose(found.together(weights), lent / total**0.5)
    assert not History(()).changes_of(row).together(weights).any()


def test_an_empty_index_and_a_question_without_words_find_nothing_and_do_not_fail() -> None:
    assert search_code(CodeIndex([]), "anything", 5).files == ()
    assert search_code(CodeIndex(UNITS), "?!", 5) == CodeHits((), (), ())


def test_near_duplicates_are_shown_once() -> None:
    body = "def load(path):\n" + "".join(
        f"    value_{name} = read_{name}(path, mode_{name})\n" for name in "abcdefgh"
    )
    units = [
        CodeUnit("one/load.py", "load", "function", 1, 9, body),
        CodeUnit("two/load.py", "load", "function", 1, 10, body + "    return path\n"),
        CodeUnit(
            "three/load.py",
            "load",
            "function",
            1,
            2,
            "def load(path):\n    return open_archive(path)\n",
        ),
    ]
    hits = search_code(CodeIndex(units), "load a value from a path", 5)
    assert {units[row].path for row, _ in hits.units} in (
        {"one/load.py", "three/load.py"},
        {"two/load.py", "three/load.py"},
    )
    assert len(hits.units) == 2
    assert len(hits.files) == 3


def test_blocks_of_imports_are_not_shown_and_other_regions_are() -> None:
    units = [
        CodeUnit(
            "shop/all.py",
            "",
            "module",
            1,
            3,
            "from shop.cart import cart_total\nimport cart_tax\nimport cart\n",
        ),
        CodeUnit(
            "shop/rates.py",
            "",
            "module",
            1,
            2,
            'CART_TAX = {"cart": 0.2}\nCART_TOTAL = 7 + len(CART_TAX)\n',
        ),
    ]
    hits = search_code(CodeIndex(units), "cart total and cart tax", 5)
    assert [units[row].path for row, _ in hits.units] == ["shop/rates.py"]
    assert {one.id for one in hits.files} == {"shop/all.py", "shop/rates.py"}


def test_identifiers_are_found_whole_and_in_parts() -> None:
    assert code_terms("parseHTTPHeader") == ["pars", "http", "header", "parsehttpheader"]
    assert code_terms("max_retries") == ["max", "retri", "max_retries"]
    index = CodeIndex([CodeUnit("a.py", "f", "function", 1, 1, 'raise E("no such file here")')])
    assert len(index.phrases[0]) == 2
    assert len(index.phrase_terms(["there is no such file"])) == 1
    assert not index.phrase_terms(["no such folder", "such file"])


def test_a_published_workspace_answers_with_path_lines_symbol_and_code(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    with published(workspace) as hades:
        answer = hades.retrieve("Where is a card charged?", level="file")
        symbols = hades.retrieve("Where is a card charged?", level="symbol")
        with pytest.raises(BadQuestion, match="no level is called 'line'"):
            hades.retrieve("anything", level="line")
    first = answer.passages[0]
    assert (first.path, first.symbol, first.kind) == ("shop/payment.py", "Gateway.charge", "method")
    assert first.lines == (5, 8)
    assert "def charge" in first.text
    assert answer.ranking[0].id == "shop/payment.py"
    assert symbols.ranking[0].id == "shop/payment.py:Gateway.charge"
    assert [one.rank for one in answer.ranking] == list(range(1, len(answer.ranking) + 1))
    scores = [one.score for one in answer.ranking]
    assert scores == sorted(scores, reverse=True)
    assert np.isfinite(scores).all()


def test_paths_lead_to_the_code_that_is_shown_and_an_answer_says_where_it_stands(
    tmp_path: Path,
) -> None:
    workspace = make_workspace(tmp_path)
    with published(workspace) as hades:
        found = hades.retrieve("Where is a card charged?")
    assert paths_before_cut(found) >= len(found.paths) > 0
    ranks = {path.rank: path for path in found.paths}
    assert all((one.explained_by in ranks) != bool(one.no_path) for one in found.passages)
    first = found.passages[0]
    assert first.symbol == "Gateway.charge"
    assert first.explained_by is not None
    assert "shop.payment.Gateway.charge" in {node.name for node in ranks[first.explained_by].nodes}
    assert f"leads to passage {first.rank}" in ranks[first.explained_by].why
    answer = write_answer(found, tokenizer=MiniLmTokenizer(), embedder=None, model=None)
    lines = answer.text.split("\n")
    assert (
        lines[0] == "shop/payment.py:5 Gateway.charge (method): def charge(self, card, amount): [1]"
    )
    assert len(lines) == len(answer.sentences)
    assert all(one.quote in answer.sources[one.citations[0] - 1].text for one in answer.sentences)


def test_a_page_that_says_clearly_more_of_a_plain_question_stands_before_code(
    tmp_path: Path,
) -> None:
    workspace = make_workspace(tmp_path)
    said = "Support for the Fjord terminal was dropped, since nobody paid with it after 2019."
    (workspace / "CHANGES.md").write_text(f"# Changes\n\n{said}\n")
    with published(workspace) as hades:
        asked = hades.retrieve("Why was support for the Fjord terminal dropped?")
        code = hades.retrieve("Where is a card charged?")
        named = hades.retrieve("`Gateway.charge` dropped support for the Fjord terminal")
    assert asked.passages[0].path == "CHANGES.md"
    assert code.passages[0].symbol == "Gateway.charge"
    assert named.passages[0].symbol == "Gateway.charge"


@contextmanager
def published(workspace: Path) -> Iterator[Hades]:
    home = workspace.parent / "home"
    with Hades(
        empty_store(home / "graph.db"), HashingEmbedder(4096), MiniLmTokenizer(), home
    ) as hades:
        hades.ingest.workspace(workspace)
        hades.publish()
        yield hades


def make_workspace(folder: Path) -> Path:
    for path, text in FILES.items():
        (folder / "work" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / path).write_text(text)
    return folder / "work"


def test_commits_of_a_published_repository_count_for_its_files(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    repository = Repository(workspace)
    for path, message in (
        ("shop/cart.py", "Baskets"),
        ("shop/mail.py", "Invoices carry fractions of cents"),
    ):
        repository.git("add", path)
        repository.git("commit", "-q", "-m", message)
    with published(workspace) as hades:
        answer = hades.retrieve("fractions of cents in invoices", level="file")
    assert answer.ranking[0].id == "shop/mail.py"


def test_a_repository_answers_from_its_manual_and_from_its_code(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    manual = {
        "refunds": "Money goes back to the card within five days. Charge nothing for it.",
        "trouble": "When you see AttributeError of requests.Session, the charge of a card needs a "
        "newer client.",
        "hours": "The office answers from nine to five.",
    }
    (workspace / "docs").mkdir(exist_ok=True)
    for name, said in manual.items():
        (workspace / "docs" / f"{name}.md").write_text(f"# {name.title()}\n\n{said}\n")
    (workspace / "shop" / "single.py").write_text(
        "def bring_just_one(card, quickly):\n    return quickly(card)\n"
    )
    with published(workspace) as hades:

        def first(question: str) -> str:
            passages = hades.retrieve(question).passages
            scores = [one.score for one in passages]
            assert scores == sorted(scores, reverse=True)
            return passages[0].path

        assert first("bring money back to just one card quickly") == "docs/refunds.md"

        assert first("how long until money is back on my card after a charge?") == "docs/refunds.md"
        assert first("AttributeError: requests.Session cannot charge a card") == "docs/trouble.md"
        assert first("Where is a card charged?") == "shop/payment.py"
        assert first("`charge` fails with five cards") == "shop/payment.py"
        assert first("payment.Gateway.charge fails with five cards") == "shop/payment.py"


def test_a_manual_beside_a_little_code_says_how_sure_an_answer_is(tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    for number in range(20):
        (folder / f"page{number}.md").write_text(
            f"# Part {number}\n\nPart {number} tells how kilns are fired.\n"
        )
    (folder / "conf.py").write_text("project = 'kilns'\n")
    with published(folder) as hades:
        found = hades.retrieve("how are kilns fired?")
        stranger = hades.retrieve("who was Queen Zenobia of Palmyra?")
    assert found.confidence is not None
    assert stranger.confidence is not None
    assert Reason.ABSTAINED in stranger.reasons
    assert Reason.ABSTAINED not in found.reasons
