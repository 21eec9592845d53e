"""`hades init`, `hades completion` and `--quiet`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hades.settings.load import load_settings
from hades.surfaces.cli.commands import main
from tests.command_line import run, run_json


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("HADES_HOME", "HADES_LLM_BASE_URL", "HADES_LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text(
        "# Rivers\n\nThe Rhine flows to the North Sea.\n", encoding="utf-8"
    )
    return tmp_path


def test_init_writes_settings_that_are_read(folder: Path) -> None:
    options = [
        "--path",
        "notes",
        "--home",
        "graph",
        "--llm-url",
        "http://127.0.0.1:9/v1",
        "--llm-model",
        "writer",
    ]
    assert run_json("init", *options)["next"][0] == "hades watch notes"
    settings = load_settings({"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}, folder)
    assert (settings.home, settings.llm_model) == (folder / "graph", "writer")


def test_init_keeps_a_file_that_is_there(folder: Path) -> None:
    (folder / "hades.yaml").write_text("home: mine\n", encoding="utf-8")
    done = run("init", "--path", "notes")
    assert done.exit_code == 1
    assert "--force" in done.output
    assert (folder / "hades.yaml").read_text(encoding="utf-8") == "home: mine\n"


def test_init_puts_the_old_file_back_where_the_new_one_is_not_valid(folder: Path) -> None:
    (folder / "hades.yaml").write_text("home: mine\n", encoding="utf-8")
    done = run(
        "init", "--path", "notes", "--llm-url", "not an address", "--llm-model", "m", "--force"
    )
    assert done.exit_code == 1
    assert (folder / "hades.yaml").read_text(encoding="utf-8") == "home: mine\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_each_shell_names_the_program(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_HADES_COMPLETE" in done.stdout


def test_completion_offers_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (
        ("_HADES_COMPLETE", "complete_bash"),
        ("COMP_WORDS", "hades in"),
        ("COMP_CWORD", "1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["hades"])
    with pytest.raises(SystemExit):
        main()
    assert {"init", "ingest"} <= set(capsys.readouterr().out.split())


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of a library that is loaded here; programs hide them
def test_quiet_work_prints_nothing_and_a_quiet_question_its_answer(folder: Path) -> None:
    assert run("ingest", "documents", "notes", "--quiet").output == ""
    assert run("--quiet", "publish").output == ""
    assert run("publish", "--quiet").output == ""
    assert "Rhine" in run("query", "where does the Rhine flow?", "--quiet").stdout
