"""A hades.yaml that came with a folder names no receiver of texts and credentials until a person
trusts the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from hades.errors import SettingsError
from hades.settings.load import load_settings
from hades.settings.tree import Guard, Settings, guard_of, is_secret
from tests.command_line import run, run_json
from tests.loopback import Answer, answering

KEY = "sk-of-the-person"
CREDENTIALS = {
    "HADES_LLM_API_KEY": KEY,
    "HADES_ARANGO_USER": "person",
    "HADES_ARANGO_PASSWORD": "secret-of-the-person",
    "HADES_EMBEDDER": "hashing",
}
LETS_TEXTS_OUT = {
    "store: arango": "store",
    "arango_url: http://other.example:8529": "arango_url",
    "arango_database: theirs": "arango_database",
    "arango_user: root": "arango_user",
    "arango_rw_user: root": "arango_rw_user",
    "arango_ro_user: root": "arango_ro_user",
    "arango_ro_uds: ./their.sock": "arango_ro_uds",
    "llm_base_url: http://other.example/v1": "llm_base_url",
    "mlflow_uri: http://other.example": "mlflow_uri",
    "prefect_api_url: http://other.example/api": "prefect_api_url",
    "task_runner: tcp://other.example:8786": "task_runner",
    "otlp_endpoint: http://other.example": "otlp_endpoint",
    "lineage_url: http://other.example": "lineage_url",
    "home: /srv/shared": "home",
    "home: ../beside": "home",
    "home: link/graph": "home",
    "data: ~/data": "data",
    "cache: {nvme_cache_path: /srv/cache}": "cache.nvme_cache_path",
    "cache: {reliable_store_path: ../cache}": "cache.reliable_store_path",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cloned folder that a person works in, with credentials in the environment."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "link").symlink_to(tmp_path)
    (clone / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    monkeypatch.chdir(clone)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return clone


@pytest.fixture
def received() -> Iterator[tuple[str, list[str]]]:
    """A server that a stranger named, and what was sent to it."""
    requests: list[str] = []

    def answer(path: str, headers: Message, content: bytes) -> Answer:
        requests.append(f"{path} {headers} {content!r}")
        return 500, {}, []

    with answering(answer) as address:
        yield address, requests


def test_every_setting_says_who_may_give_it() -> None:
    undeclared = [
        name
        for name, field in Settings.model_fields.items()
        if not isinstance(field.json_schema_extra, dict) or "guard" not in field.json_schema_extra
    ]
    assert undeclared == []
    for name, field in Settings.model_fields.items():
        names_a_receiver = name.endswith(("_url", "_uri", "_uds", "_endpoint", "_user"))
        assert not names_a_receiver or guard_of(field) is Guard.TRUST, name
        assert not is_secret(name) or guard_of(field) is Guard.ENVIRONMENT, name


@pytest.mark.parametrize(("text", "key"), LETS_TEXTS_OUT.items())
def test_an_untrusted_folder_is_refused_with_file_key_and_command(
    folder: Path, text: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADES_ARANGO_USER")  # a variable wins over the file
    (folder / "hades.yaml").write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    message = str(refused.value)
    expected = [str(folder / "hades.yaml"), f" {key} to '", "is not trusted", "`hades trust "]
    assert [words for words in expected if words not in message] == []


@pytest.mark.parametrize(
    "text",
    [
        "plan: {final_context: 4}",
        "hirag_pathrag: {topic_k: 3}",
        "embedder: hashing",
        "store: sqlite",
        "llm_base_url: null",
        "home: graph",
        "tenant: team",
        "cache: {nvme_cache_path: .hades/fast, ram_cache_size_mb: 9}",
    ],
)
def test_what_stays_in_the_folder_needs_no_trust(folder: Path, text: str) -> None:
    (folder / "hades.yaml").write_text(text)
    assert load_settings().home.is_relative_to(folder)


def test_a_stranger_s_endpoint_receives_neither_key_nor_text(
    folder: Path, received: tuple[str, list[str]]
) -> None:
    address, requests = received
    (folder / "hades.yaml").write_text(
        f"llm_base_url: {address}/v1\nllm_model: writer\nembedder: openai\n"
    )
    for words in (("ingest", "documents", "."), ("build",), ("answer", "Where is the Rhine?")):
        done = run(*words, HADES_EMBEDDER="openai")
        assert done.exit_code == 1
        assert "llm_base_url" in done.output
        assert KEY not in done.output
    (folder / "hades.yaml").write_text(f"store: arango\narango_url: {address}\n")
    assert run("status").exit_code == 1
    assert requests == []


def test_a_trusted_folder_is_asked_again_when_its_endpoint_changes(folder: Path) -> None:
    (folder / "hades.yaml").write_text("llm_base_url: http://first.example/v1\n")
    assert run_json("trust")["values"] == {"llm_base_url": "http://first.example/v1"}
    assert load_settings().llm_base_url == "http://first.example/v1"
    (folder / "hades.yaml").write_text(
        "llm_base_url: http://first.example/v1\nplan: {final_context: 4}\n"
    )
    assert load_settings().plan.final_context == 4
    (folder / "hades.yaml").write_text("llm_base_url: http://second.example/v1\n")
    with pytest.raises(SettingsError, match="has changed since you trusted it"):
        load_settings()


def test_trust_is_listed_and_taken_back(folder: Path, tmp_path: Path) -> None:
    (folder / "hades.yaml").write_text("llm_base_url: http://first.example/v1\n")
    run_json("trust", str(folder))
    kept_in = tmp_path / "configuration" / "hades" / "trusted_folders.json"
    assert kept_in.stat().st_mode & 0o777 == 0o600
    assert run_json("trust", "--list") == {"folders": [str(folder)]}
    run_json("trust", "--remove", str(folder))
    assert run_json("trust", "--list") == {"folders": []}
    with pytest.raises(SettingsError, match="is not trusted"):
        load_settings()


def test_a_copy_of_a_trusted_folder_is_not_trusted(folder: Path, tmp_path: Path) -> None:
    (folder / "hades.yaml").write_text("llm_base_url: http://first.example/v1\n")
    run_json("trust")
    copy = folder.rename(tmp_path / "copy")
    with pytest.raises(SettingsError, match="is not trusted"):
        load_settings(cwd=copy)


def test_variables_are_trusted_and_win(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "hades.yaml").write_text("llm_base_url: http://other.example/v1\n")
    monkeypatch.setenv("HADES_LLM_BASE_URL", "http://mine.example/v1")
    assert load_settings().llm_base_url == "http://mine.example/v1"


def test_a_server_trusts_its_folder_by_a_variable_that_no_file_may_hold(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "hades.yaml"
    file.write_text("llm_base_url: http://other.example/v1\ntrust_folder: true\n")
    with pytest.raises(SettingsError, match=r"environment only \(HADES_TRUST_FOLDER\)"):
        load_settings()
    file.write_text("llm_base_url: http://other.example/v1\n")
    monkeypatch.setenv("HADES_TRUST_FOLDER", "1")
    assert load_settings().llm_base_url == "http://other.example/v1"


def test_init_trusts_what_the_person_typed(folder: Path) -> None:
    words = ("--path", ".", "--llm-url", "http://mine.example/v1", "--llm-model", "writer")
    run_json("init", *words)
    assert load_settings().llm_base_url == "http://mine.example/v1"


def test_a_damaged_list_trusts_nothing_and_says_so(folder: Path, tmp_path: Path) -> None:
    kept_in = tmp_path / "configuration" / "hades" / "trusted_folders.json"
    kept_in.parent.mkdir(parents=True)
    kept_in.write_text("[")
    (folder / "hades.yaml").write_text("llm_base_url: http://other.example/v1\n")
    with pytest.raises(SettingsError, match="cannot be read as the list of trusted folders"):
        load_settings()
