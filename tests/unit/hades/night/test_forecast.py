"""`hades status` forecasts the time of a build from earlier ones and its cost from the prices of
the settings.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hades.ingest.phases import Phase
from hades.night.forecast import forecast_build, forecast_seconds
from hades.night.report import last_runs
from hades.night.stages import STORE_CONTRACTS
from hades.ports.services import PaidModels
from hades.settings.tree import Settings
from hades.wiring import paid_models
from tests.unit.hades.night.release.small_graphs import MONDAY, opened, write_pages


def run(seconds: dict[str, float], **facts: object) -> dict[str, object]:
    return {"seconds": seconds, "skipped": (), "embedded": None, **facts}


def test_a_stage_takes_the_median_of_the_builds_in_which_it_had_work():
    runs = [
        run({"topics": 0.1}, skipped=("topics",)),
        run({"topics": 4.0}),
        run({"topics": 8.0}),
        run({"topics": 5.0}),
    ]
    assert forecast_seconds("topics", runs, 0) == 5.0
    assert forecast_seconds("bridges", runs, 0) is None


def test_embedding_takes_time_by_the_chunk():
    runs = [run({"embeddings": 2.0}, embedded=100), run({"embeddings": 0.01}, embedded=0)]
    assert forecast_seconds("embeddings", runs, 400) == 8.0
    assert forecast_seconds("embeddings", runs[1:], 400) is None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after one build, with pages that came later and have no vectors yet."""
    folder = tmp_path_factory.mktemp("forecast")
    with opened(folder / "home") as hades:
        hades.ingest.documents(write_pages(folder / "pages", 12))
        hades.build(as_of=MONDAY)
        hades.ingest.documents(
            write_pages(folder / "pages", 16), phases=[Phase.NODES, Phase.CHUNKS]
        )
    return folder / "home"


def test_a_build_leaves_what_the_forecast_needs(built):
    (done,) = last_runs(built)
    assert done["embedded"] == 0  # ingestion had embedded every chunk
    assert done["seconds"]["topics"] > 0.0
    body = json.loads(next((built / "reports").glob("nightly-*.json")).read_text())
    assert body["skipped"] == done["skipped"]


def test_a_build_leaves_a_page_and_a_page_of_every_contract_that_fetch_nothing(built):
    pages = [page.read_text() for page in (built / "reports").glob("*.html")]
    assert len(pages) == 2
    assert not any(re.search(r"(?:src|href)=.https?:|@import|url\(http", page) for page in pages)
    contracts = (built / "reports" / "contracts.html").read_text()
    assert all(f">{name} " in contracts for name in STORE_CONTRACTS)


def test_without_a_paid_model_a_build_costs_nothing(built):
    with opened(built) as hades:
        found = forecast_build(hades.store, built)
    assert found["chunks_to_embed"] > 0
    assert [found["cost"][name] for name in ("price", "embedding_tokens", "calls")] == [0.0, 0, 0]
    assert found["runs"] == 1
    assert found["stages"]["topics"] is not None


def test_paid_models_cost_tokens_times_prices(built):
    paid = PaidModels("e", 2.0, "w", 10.0, 30.0, count_tokens=lambda text: len(text.split()))
    with opened(built) as hades:
        cost = forecast_build(hades.store, built, paid)["cost"]
    assert cost["embedding_tokens"] > 0
    assert cost["calls"] > 0
    assert cost["completion_tokens"] == 120 * cost["calls"]
    expected = (
        2.0 * cost["embedding_tokens"]
        + 10.0 * cost["prompt_tokens"]
        + 30.0 * cost["completion_tokens"]
    )
    assert cost["price"] == pytest.approx(expected / 1e6, abs=1e-6)


def test_a_price_that_is_not_set_is_not_taken_for_zero(built):
    with opened(built) as hades:
        assert forecast_build(hades.store, built, PaidModels("e"))["cost"]["price"] is None


def test_settings_say_which_models_are_paid_for(tmp_path):
    local = paid_models(Settings(home=tmp_path, llm_model="m", embedder_price=1.0))
    assert (local.embedder, local.writer) == ("", "")
    remote = paid_models(
        Settings(
            home=tmp_path,
            embedder="openai",
            llm_base_url="http://localhost:1/v1",
            llm_model="m",
            embedder_model="e",
            embedder_price=1.0,
            llm_input_price=2.0,
            llm_output_price=3.0,
        )
    )
    assert (remote.embedder, remote.writer) == ("e", "m")
    assert (remote.embedder_price, remote.input_price, remote.output_price) == (1.0, 2.0, 3.0)
    assert remote.count_tokens("two words") == 2
