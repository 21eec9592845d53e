"""`hades check` as teams run it: a hook before a commit, a workflow of a pull request, both on the
history of Flask's documentation.
"""

import io
import itertools
import json
import lzma
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.command_line import run_json
from tests.repositories import AUTHOR, commit, git, start, write

ROOT = Path(__file__).resolve().parents[2]
HISTORY = ROOT / "tests/fixtures/week/flask-docs.tar.xz"
WORKFLOW = ROOT / "deployments/github/documentation-check.yaml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
LOCAL_HOOKS = ROOT / "deployments/pre-commit/config.yaml"
STATES = ("2.0.3", "2.1.3", "2.2.5", "2.3.3", "3.0.3", "3.1.0", "3.1.3")
QUESTIONS = """questions:
  - question: How do I deploy with Gunicorn?
    requires: deploying/gunicorn.rst
  - question: How do I register a blueprint?
    requires: blueprints.rst
  - question: How do I add a favicon?
    requires: patterns/favicon.rst
    words: [favicon.ico]
"""
PAGE = "# Start\n\nRun `ledger init`.\n"


def read_states():
    """The pages of each release, in order."""
    states = {name: {} for name in STATES}
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(HISTORY.read_bytes()))) as archive:
        for member in archive.getmembers():
            release, _, name = member.name.partition("/")
            states[release][f"docs/{name}"] = archive.extractfile(member).read().decode("utf-8")
    return states


def is_asked_for(page):
    """Whether a page is one of those that the questions are about: a tenth of the manual."""
    asked = ("docs/index.rst", "docs/blueprints.rst", "docs/patterns/favicon.rst")
    return page.startswith("docs/deploying/") or page in asked


@pytest.fixture(scope="module")
def flask(tmp_path_factory):
    """A repository with a commit and a tag for each release."""
    repository = start(tmp_path_factory.mktemp("flask") / "project")
    known = set()
    for name, pages in read_states().items():
        gone = dict.fromkeys(known - pages.keys())
        commit(repository, {**gone, **pages, "questions.yaml": QUESTIONS})
        git(repository, "tag", name)
        known = set(pages)
    return repository


@pytest.fixture
def environment(tmp_path, programs, monkeypatch):
    """What a runner gives its steps; `gh` writes down what it is asked."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    gh = bin_folder / "gh"
    gh.write_text('#!/bin/sh\necho "$@" >> "$GH_CALLS"\n')
    gh.chmod(0o755)
    variables = {
        **os.environ,
        **AUTHOR,
        "PATH": f"{bin_folder}:{programs}:{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HADES_EMBEDDER": "hashing",
        "HADES_HOME": str(tmp_path / "home"),
        "GH_CALLS": str(tmp_path / "gh.txt"),
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    (tmp_path / "runner").mkdir()
    return variables


def workflow_steps():
    """The steps of the workflow that run something, by name."""
    steps = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["check"]["steps"]
    return {step["name"]: step for step in steps if "run" in step}


def run_step(name, folder, environment, **values):
    """A step as the runner does it: bash that stops at the first error."""
    script = workflow_steps()[name]["run"]
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, **values},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_steps_of_the_workflow_check_comment_and_decide(flask, environment, tmp_path):
    git(flask, "switch", "--quiet", "--create", "pull-request", "3.1.0")
    pages = git(flask, "ls-files", "docs").split()
    base = commit(flask, {page: None for page in pages if not is_asked_for(page)})
    commit(flask, {"docs/deploying/gunicorn.rst": None})
    try:
        checked = run_step("Check", flask, environment, BASE=base)
    finally:
        git(flask, "switch", "--quiet", "main")
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "output.txt").read_text() == "code=1\n"
    comment = (tmp_path / "runner/check/check.md").read_text("utf-8")
    assert (tmp_path / "summary.md").read_text("utf-8").strip() == comment.strip()
    assert "How do I deploy with Gunicorn?" in comment
    sarif = json.loads((tmp_path / "runner/check/check.sarif").read_text("utf-8"))
    places = {
        (result["ruleId"], place["physicalLocation"]["artifactLocation"]["uri"])
        for result in sarif["runs"][0]["results"]
        for place in result["locations"]
    }
    assert ("answer-lost", "questions.yaml") in places
    assert ("link-reference", "docs/deploying/index.rst") in places
    posted = run_step("Comment on the pull request", flask, environment, PULL_REQUEST="7")
    assert posted.returncode == 0
    call = (tmp_path / "gh.txt").read_text()
    assert call.startswith("pr comment 7 --edit-last --create-if-none --body-file ")
    assert run_step("Verdict", flask, environment, CODE="1").returncode == 1
    assert run_step("Verdict", flask, environment, CODE="0").returncode == 0


def test_a_step_of_bad_usage_fails_at_once(flask, environment, tmp_path):
    checked = run_step("Check", flask, environment, BASE="0" * 40)
    assert checked.returncode != 0
    assert (tmp_path / "output.txt").read_text() == "code=2\n"


def test_the_workflow_is_one_that_github_reads():
    program = ROOT / ".venv/bin/check-jsonschema"
    if not program.exists():
        pytest.skip("the linters of `make check` are not installed")
    subprocess.run([program, "--builtin-schema", "vendor.github-workflows", WORKFLOW], check=True)
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    checkout = jobs["check"]["steps"][0]
    assert checkout["with"]["fetch-depth"] == 0
    used = re.findall(r"steps\.(\w+)\.", WORKFLOW.read_text("utf-8"))
    assert set(used) <= {step.get("id") for step in jobs["check"]["steps"]}


def hook_entries():
    """The hooks of both files: that of this repository, and the one to copy."""
    [published] = yaml.safe_load(HOOKS.read_text("utf-8"))
    [local] = yaml.safe_load(LOCAL_HOOKS.read_text("utf-8"))["repos"][0]["hooks"]
    return published, local


def test_both_hooks_run_the_same_command_for_the_same_files():
    published, local = hook_entries()
    for key in ("id", "entry", "files", "pass_filenames"):
        assert published[key] == local[key]
    pattern = re.compile(published["files"])
    assert all(pattern.search(name) for name in ("docs/a.md", "b.rst", "docs/questions.yaml"))
    assert not pattern.search("src/a.py")


@pytest.mark.parametrize("words", [("--all",), ()])
def test_a_commit_that_breaks_a_link_is_refused_by_the_hook(tmp_path, environment, words):
    repository = start(tmp_path / "project")
    commit(repository, {"docs/start.md": PAGE, "README.md": "[Start](docs/start.md#start)\n"})
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {hook_entries()[0]['entry']}\n")
    hook.chmod(0o755)
    write(repository, {"docs/start.md": PAGE.replace("# Start", "# Begin")})
    if not words:
        git(repository, "add", "--all")
    refused = git(repository, "commit", *words, "--message", "x", code=1, **environment)
    assert "README.md:1" in refused
    write(repository, {"README.md": "[Begin](docs/start.md#begin)\n"})
    if not words:
        git(repository, "add", "--all")
    assert "Nothing is broken" in git(repository, "commit", *words, "-m", "x", **environment)


@pytest.mark.slow
def test_releases_of_a_real_manual_go_red_for_what_they_removed_alone(flask, tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    errors = {}
    for base, head in itertools.pairwise(STATES):
        words = ("check", str(flask), "--base", base, "--head", head, "--questions")
        empty = tmp_path / "none.yaml"
        empty.write_text("questions: []\n")
        findings = run_json(*words, str(empty), code=0)["findings"]
        errors[head] = [row["message"] for row in findings if row["level"] == "error"]
    assert not any(errors.values())
