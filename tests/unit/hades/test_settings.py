"""The environment wins over hades.yaml, which wins over the defaults; what is wrong is named."""

import json

import pytest

from hades.errors import SettingsError
from hades.settings.load import load_settings, unknown_variables
from hades.settings.tree import DEFAULT_BOOSTS, PathSettings, Settings, variable_of
from schemas.nodes import RelationType
from schemas.plan import Plan

C59 = """
hirag_pathrag:
  topic_k: 8
  beam: [8,4,2]
  cand_cap: 500
  path:
    M: 6
    L: 5
    lambda: 0.3
    eps: 1e-6
    relation_boost: {refers_to: 0.8, implements: 0.7, cites: 0.6, derives_from: 0.6, coref: 0.4}
  beam_demote:
    deg_alpha: 0.005
"""


@pytest.fixture
def load(tmp_path):
    def load(yaml="", **env):
        (tmp_path / "hades.yaml").write_text(yaml, encoding="utf-8")
        return load_settings({"HADES_TRUST_FOLDER": "1", **env}, tmp_path)

    return load


def test_defaults_need_neither_file_nor_variable(tmp_path):
    settings = load_settings({}, tmp_path)
    assert (settings.store, settings.view, settings.embedder) == ("sqlite", "snapshot", "minilm")
    assert settings.home == tmp_path / ".hades"
    assert settings.arango_database == "arxiv_repository"


def test_environment_wins_over_file_and_file_over_default(load):
    assert load("store: arango").store == "arango"
    assert load("store: arango", HADES_STORE="sqlite").store == "sqlite"


@pytest.mark.parametrize("key", ["store", "HADES_STORE", "hades_store"])
def test_file_takes_the_key_in_any_spelling(load, key):
    assert load(f"{key}: arango").store == "arango"


def test_file_may_not_give_a_key_twice(load):
    with pytest.raises(SettingsError, match="twice"):
        load("store: arango\nHADES_STORE: sqlite")


def test_empty_variable_counts_as_unset(load):
    assert load("store: arango", HADES_STORE="").store == "arango"


def test_relative_home_is_taken_from_the_working_directory(load, tmp_path):
    assert load(HADES_HOME="../elsewhere").home == tmp_path.parent / "elsewhere"


@pytest.mark.parametrize(
    ("yaml", "env", "words"),
    [
        ("", {"HADES_STORE": "oracle"}, ["HADES_STORE", "'oracle'", "'sqlite' or 'arango'"]),
        ("stor: arango", {}, ["'stor'", "did you mean 'store'"]),
        (
            "hirag_pathrag: {path: {lambd: 1}}",
            {},
            ["hirag_pathrag.path.lambd", "did you mean 'lambda'"],
        ),
        ("plan: {retriever: {k: 9}}", {}, ["plan.retriever.k", "9", "less than or equal to 8"]),
        ("plan: {graph: {hops: 3}}", {}, ["plan.graph.hops", "less than or equal to 2"]),
        ("plan: {graph: {fanout: 4}}", {}, ["plan.graph.fanout", "less than or equal to 3"]),
        ("plan: {graph: {beam: 17}}", {}, ["plan.graph.beam", "less than or equal to 16"]),
        ("plan: {reranker: {m: 25}}", {}, ["plan.reranker.m", "less than or equal to 24"]),
        ("plan: {final_context: 9}", {}, ["plan.final_context", "less than or equal to 8"]),
        ("plan: {graph: {timeout_ms: 1900}}", {}, ["2600 ms", "budget.latency_ms (2000)"]),
        (
            "hirag_pathrag: {path: {relation_boost: {citez: 0.5}}}",
            {},
            ["relation_boost", "citez", "cites"],
        ),
        (
            "hirag_pathrag: {path: {relation_boost: {extends: null}}}",
            {},
            ["relation_boost.extends", "number"],
        ),
        (
            "hirag_pathrag: {path: {relation_boost: {cites: 7}}}",
            {},
            ["relation_boost.cites is 7", "equal to 1"],
        ),
        ("hirag_pathrag: {beam: [8, 0]}", {}, ["hirag_pathrag.beam", "at least 1"]),
        ("view: arango", {}, ["HADES_VIEW", "needs HADES_STORE 'arango'"]),
        ("", {"HADES_ARANGO_URL": "localhost:8529"}, ["HADES_ARANGO_URL", "http://"]),
        ("[1, 2]", {}, ["hades.yaml", "mapping"]),
        ("store: [", {}, ["hades.yaml is not YAML"]),
        ("arango_password: x", {}, ["arango_password", "environment", "HADES_ARANGO_PASSWORD"]),
    ],
)
def test_bad_value_names_key_value_and_expectation(load, yaml, env, words):
    with pytest.raises(SettingsError) as caught:
        load(yaml, **env)
    assert [word for word in words if word not in str(caught.value)] == []


def test_every_problem_is_named_at_once(load):
    with pytest.raises(SettingsError, match=r"HADES_STORE(.|\n)*HADES_VIEW"):
        load(HADES_STORE="x", HADES_VIEW="y")


def test_section_of_the_specification_is_taken_as_it_stands(load):
    settings = load(C59).hirag_pathrag
    assert (settings.topic_k, settings.beam, settings.cand_cap) == (8, (8, 4, 2), 500)
    assert (settings.path.max_paths, settings.path.max_hops, settings.path.length_penalty) == (
        6,
        5,
        0.3,
    )
    assert settings.path.eps == 1e-6
    assert settings.beam_demote.deg_alpha == 0.005
    assert settings == load("").hirag_pathrag


def test_every_relation_type_has_a_boost_below_the_strongest():
    boosts = PathSettings().relation_boost
    assert set(boosts) == set(RelationType)
    assert boosts[RelationType.EXTENDS] == 0.6
    assert boosts[RelationType.SIMILAR_TO] == 0.4
    assert boosts[RelationType.RELATED_TO] == 0.5
    assert max(boosts.values()) == boosts[RelationType.REFERS_TO] == 0.8


def test_boosts_that_are_left_out_keep_their_defaults():
    assert PathSettings(relation_boost={"cites": 0.3}).relation_boost == {
        **DEFAULT_BOOSTS,
        RelationType.CITES: 0.3,
    }


def test_plan_defaults_are_those_of_the_specification():
    assert Plan().model_dump(mode="json") == {
        "q": 2,
        "retriever": {"k": 6, "mmr": 0.4, "timeout_ms": 200},
        "graph": {"hops": 1, "fanout": 2, "beam": 8, "timeout_ms": 500},
        "reranker": {"m": 20, "timeout_ms": 500},
        "final_context": 6,
        "budget": {"docs_max": 160, "latency_ms": 2000, "work_max": 2_000_000, "tokens_max": 4096},
        "reasons": [],
        "profile": "online",
    }


def test_no_secret_is_shown(load):
    secrets = {"HADES_ARANGO_PASSWORD": "s3cret-a", "HADES_LLM_API_KEY": "s3cret-b"}
    settings = load(**secrets, HADES_MLFLOW_URI="postgresql://me:s3cret-c@db/mlflow")
    assert settings.arango_password.get_secret_value() == "s3cret-a"
    shown = json.dumps(settings.masked())
    assert "s3cret" not in shown + repr(settings.arango_password) + str(settings.llm_api_key)
    assert settings.masked()["HADES_MLFLOW_URI"] == "postgresql://**********@db/mlflow"


def test_masked_values_name_every_variable(load):
    assert list(load().masked()) == [variable_of(name) for name in Settings.model_fields]


def test_unknown_variables_come_with_the_nearest_known_one():
    found = unknown_variables(
        {"HADES_STROE": "x", "HADES_TEST_ARANGO_URL": "x", "HADES_HOME": "x", "PATH": "x"}
    )
    assert found == ["HADES_STROE; did you mean 'HADES_STORE'?"]
