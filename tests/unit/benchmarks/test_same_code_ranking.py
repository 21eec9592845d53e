"""A published checkout ranks files and symbols as the evaluation does for its commit, and so does a
folder unbuilt.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.evaluation.code import CodeRepository
from hades.api import Hades
from hades.night.code_workspace import index_workspace
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.search import collect_evidence, file_columns, search_code
from hades.retrieval.search.code_passages import code_of
from hades.text.code_questions import read_code_question
from tests.homes import empty_store
from tests.unit.hades.ingest.sources.repositories import Repository

REPORT = """Refund fails for open orders

`Gateway.refund` in pay/gateway.py returns nothing when the order is open.

```python
Gateway().refund(order)
```
"""
PAGE = (
    "# Payment\n\n"
    + "How a card is charged and how an order is refunded, in long words. " * 60
    + "\n"
)
FIRST = {
    "pay/gate.py": (
        "import json\n\n\nclass Gateway:\n    def refund(self, order):\n"
        '        raise ValueError("the order is still open")\n'
    ),
    "pay/orders.py": "from pay.gateway import Gateway\n\nOPEN = 1\n\n\ndef is_open(order):\n    "
    "return order == OPEN\n",
    "tests/test_gateway.py": "from pay.gateway import Gateway\n\n\ndef test_refund():\n    "
    "Gateway().refund(1)\n",
    "docs/payment.md": PAGE,
    "setup.cfg": "[metadata]\nname = pay\n",
    ".vscode/settings.json": '{"order": 1}\n',
}


def test_a_published_checkout_and_an_unbuilt_folder_rank_as_the_evaluation_does(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "shop"
    _make_repository(folder)
    evaluated = CodeRepository(folder, MiniLmTokenizer()).at("HEAD")[0]
    home = tmp_path / "home"
    with Hades(empty_store(home / "graph.db"), HashingEmbedder(), MiniLmTokenizer(), home) as hades:
        hades.ingest.workspace(folder)
        hades.publish()
        view = hades.view()
        published = code_of(view)
        assert published is not None
        answers = {
            level: hades.retrieve(REPORT, level=level).ranking for level in ("file", "symbol")
        }
        view.close()
    _assert_equal(evaluated, published.index)
    _assert_equal(evaluated, index_workspace(folder, MiniLmTokenizer()))
    hits = search_code(evaluated, REPORT, 50)
    assert [one.id for one in answers["file"]] == [one.id for one in hits.files]
    assert [one.id for one in answers["symbol"]] == [one.id for one in hits.symbols]
    assert hits.files[0].id == "pay/gateway.py"


def _make_repository(folder: Path) -> None:
    """Three commits: the second renames a file, the third changes two."""
    repository = Repository(folder)
    repository.commit("First version\n\nSigned-off-by: Ada <ada@example.org>", dict(FIRST))
    repository.commit(
        "Gateway has its name", {"pay/gate.py": None, "pay/gateway.py": FIRST["pay/gate.py"]}
    )
    orders = FIRST["pay/orders.py"] + "\n\ndef close(order):\n    return 0\n"
    repository.commit(
        "Refund " * 300, {"pay/orders.py": orders, "setup.cfg": "[metadata]\nname = payment\n"}
    )


def _assert_equal(first: CodeIndex, second: CodeIndex) -> None:
    assert first.units == second.units
    assert [(one.id, one.paths) for one in first.history.commits] == [
        (one.id, one.paths) for one in second.history.commits
    ]
    question = read_code_question(REPORT)
    names, columns = file_columns(collect_evidence(first, question))
    _, others = file_columns(collect_evidence(second, question))
    for place, name in enumerate(names):
        np.testing.assert_allclose(
            columns[:, place], others[:, place], rtol=1e-5, atol=1e-6, err_msg=name
        )
