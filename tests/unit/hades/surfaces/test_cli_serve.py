"""`hades token`: made once, shown once, listed without a secret, revoked. `hades mcp install`."""

import json

import pytest

from hades.settings.load import load_settings
from hades.surfaces.cli.serve import limits_of
from tests.command_line import run as run_command


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments, group="token"):
        return run_command(group, *arguments)

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


def test_a_token_is_limited_to_a_part_of_the_corpus(run):
    made = json.loads(run("add", "guest", "--path", "docs/*", "--tag", "public", "--json").stdout)
    assert made["only"] == {"paths": ["docs/*"], "tags": ["public"]}
    assert "paths: docs/*; tags: public" in " ".join(run("list").stdout.split())
    assert run("add", "writer", "--mode", "rw", "--path", "docs/*").exit_code == 1


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


@pytest.mark.parametrize(
    ("client", "file", "key"),
    [
        ("claude-code", ".mcp.json", "mcpServers"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ],
)
def test_the_tools_are_installed_beside_others_and_taken_out_again(
    run, tmp_path, monkeypatch, client, file, key
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    path = tmp_path / file
    shown = run("install", client, group="mcp")
    assert (shown.exit_code, path.exists()) == (1, False)
    assert '+    "hades": {' in shown.stdout
    assert "--yes" in shown.stdout
    assert run("install", client, "--yes", group="mcp").exit_code == 0
    entry = json.loads(path.read_text())[key]["hades"]
    assert entry["args"][-3:] == ["mcp", "--mode", "ro"]
    assert entry["env"]["HADES_HOME"] == str(tmp_path / "home")
    assert (
        json.loads(run("install", client, "--yes", "--json", group="mcp").stdout)["difference"]
        == []
    )
    assert run("install", client, "--undo", "--yes", group="mcp").exit_code == 0
    assert not path.exists()
    others = {"theme": "dark", key: {"other": {"command": "x"}}}
    path.write_text(json.dumps(others))
    for option in ("--mode=rw", "--undo"):
        assert run("install", client, option, "--yes", group="mcp").exit_code == 0
    assert json.loads(path.read_text()) == others


def test_a_server_of_one_s_own_called_hades_comes_back(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    path = tmp_path / ".mcp.json"
    own = {"command": "my-hades", "args": ["--key", "secret"]}
    before = {"mcpServers": {"hades": own, "other": {"command": "x"}}}
    path.write_text(json.dumps(before))
    for mode in ("ro", "rw"):  # the second installation replaces the first, not what was kept
        words = ("install", "claude-code", "--mode", mode, "--yes")
        assert run(*words, group="mcp").exit_code == 0
        assert json.loads(path.read_text())["mcpServers"]["hades"]["args"][-1] == mode
    kept = tmp_path / "configuration" / "hades" / "former_mcp_entries.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    for _ in range(2):  # a second --undo leaves the person's own server alone
        assert run("install", "claude-code", "--undo", "--yes", group="mcp").exit_code == 0
        assert json.loads(path.read_text()) == before
    assert "secret" not in kept.read_text()


@pytest.mark.parametrize("text", ["// a comment\n{}", "[]", '{"mcpServers": 3}'])
def test_a_configuration_that_is_no_object_is_left_as_it_is(run, tmp_path, text):
    (tmp_path / ".mcp.json").write_text(text)
    done = run("install", "claude-code", "--yes", group="mcp")
    assert done.exit_code == 1
    assert "by hand" in done.output
    assert (tmp_path / ".mcp.json").read_text() == text


def test_a_socket_has_no_page_to_open(tmp_path):
    done = run_command("serve", "--uds", str(tmp_path / "s"), "--open")
    assert done.exit_code == 2
