"""`hades token`: made once, shown once, listed without a secret, revoked."""

import json

import pytest
from typer.testing import CliRunner

from hades.settings.load import load_settings
from hades.surfaces.cli.commands import whole_app
from hades.surfaces.cli.serve import limits_of


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(whole_app(), ["token", *arguments])

    return call


def test_a_token_is_shown_once_and_listed_without_its_text(run):
    made = json.loads(run("add", "agent", "--mode", "rw", "--json").stdout)
    assert made["token"].startswith(f"hades_{made['id']}_")
    assert "sha256" not in made
    listed = run("list", "--json").stdout
    assert made["token"] not in listed
    assert [(one["name"], one["mode"], one["tenant"]) for one in json.loads(listed)["tokens"]] == [
        ("agent", "rw", None)
    ]
    assert run("revoke", "agent").exit_code == 0
    assert json.loads(run("list", "--json").stdout) == {"tokens": []}


def test_a_tenants_tokens_are_its_own(run, monkeypatch):
    run("add", "common")
    monkeypatch.setenv("HADES_TENANT", "team-a")
    made = json.loads(run("add", "agent", "--json").stdout)
    assert made["tenant"] == "team-a"
    assert [one["name"] for one in json.loads(run("list", "--json").stdout)["tokens"]] == ["agent"]


def test_mistakes_are_named(run):
    assert run("add", "agent", "--mode", "root").exit_code == 2
    gone = run("revoke", "nobody")
    assert gone.exit_code == 1
    assert "hades token list" in gone.stderr


def test_limits_come_from_the_settings(tmp_path):
    env = {
        "HADES_SERVE_BODY_KIB": "1",
        "HADES_SERVE_RATE": "5",
        "HADES_SERVE_THREADS": "3",
        "HADES_SERVE_KEPT_MIB": "2",
    }
    limits = limits_of(load_settings(env, tmp_path))
    assert (limits.body_bytes, limits.per_second, limits.answering, limits.cache_bytes) == (
        1024,
        5.0,
        3,
        2 * 1024 * 1024,
    )
