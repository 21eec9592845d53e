"""Pages that state two values contradict each other; what a condition excuses does not."""

import pytest

from hades.check.pages import open_states
from hades.check.statements import find_contradictions
from tests.repositories import commit, start

SETTINGS = """# Settings

| setting | default | meaning |
|---|---|---|
| `SESSION_LIFETIME` | `3600` | seconds |
| `LOG_LEVEL` | `INFO` | how much is logged |
| `pool.max_size` | `10` | connections |
"""


def contradictions(tmp_path, page, name="docs/guide.md", before="# Guide\n\nText.\n"):
    repository = start(tmp_path / "project")
    commit(repository, {"docs/settings.md": SETTINGS, name: before})
    commit(repository, {name: f"# Guide\n\n{page}\n"})
    return find_contradictions(*open_states(repository, "HEAD^", "HEAD", "docs"))


@pytest.mark.parametrize(
    "sentence",
    [
        "`SESSION_LIFETIME` defaults to 1800 seconds.",
        "The default of SESSION_LIFETIME is 30 minutes.",
        "Sessions end (`SESSION_LIFETIME` (default: `1800`)).",
        "`LOG_LEVEL` is `DEBUG` by default.",
        "Raise `pool.max_size` (default 20).",
        "A first one. `OTHER_NAME` defaults to 1. `SESSION_LIFETIME` defaults to 60.",
        "## `SESSION_LIFETIME`\n\nHow long.\n\n**Default:** `1800`",
        "| option | default |\n|---|---|\n| `LOG_LEVEL` | `WARNING` |",
    ],
)
def test_a_second_value_is_named_with_both_places(tmp_path, sentence):
    [finding] = contradictions(tmp_path, sentence)
    assert (finding.rule, str(finding.level), finding.path) == (
        "contradiction",
        "error",
        "docs/guide.md",
    )
    assert "docs/settings.md:" in finding.message
    assert finding.base_says
    assert finding.head_says


@pytest.mark.parametrize(
    "sentence",
    [
        "`SESSION_LIFETIME` defaults to one hour.",  # no number to compare
        "`SESSION_LIFETIME` defaults to 60 minutes.",
        "`SESSION_LIFETIME` defaults to `3600`, which is an hour.",
        "`SESSION_LIFETIME` (default: 3,600 s)",
        "In production `SESSION_LIFETIME` defaults to 60.",
        "`SESSION_LIFETIME` defaults to 60 when the store is remote.",
        "`SESSION_LIFETIME` was changed: it now defaults to 60.",
        "For example, `SESSION_LIFETIME` defaults to 60.",
        "`SESSION_LIFETIME` defaults to the value of `TTL`.",
        "`LOG_LEVEL` defaults to `None`.",
        "```sh\nSESSION_LIFETIME defaults to 5\n```",
        "`timeout` defaults to 5.",  # a name that many things have
        "| parameter | default |\n|---|---|\n| `pool.max_size` | `3` |",
        "`SESSION_LIFETIME` defaults to 60.\n\nHere `SESSION_LIFETIME` defaults to 70.",
    ],
)
def test_what_may_be_true_beside_it_is_no_contradiction(tmp_path, sentence):
    assert contradictions(tmp_path, sentence) == []


@pytest.mark.parametrize("name", ["docs/changelog.md", "docs/migrating.md", "docs/v1/guide.md"])
def test_pages_of_the_past_may_differ(tmp_path, name):
    assert contradictions(tmp_path, "`LOG_LEVEL` defaults to `DEBUG`.", name) == []


def test_what_the_base_contradicts_already_is_not_new(tmp_path):
    old = "# Guide\n\n`LOG_LEVEL` defaults to `DEBUG`.\n"
    assert contradictions(tmp_path, "`LOG_LEVEL` defaults to `ERROR`.", before=old) == []


def test_required_versions_and_release_dates_are_compared(tmp_path):
    repository = start(tmp_path / "project")
    commit(
        repository,
        {
            "docs/install.md": "# Install\n\nFlask supports Python 3.9 and newer.\n",
            "docs/index.md": "# Index\n\nFlask 3.0.0 was released on 30 September 2023.\n",
        },
    )
    more = "# More\n\nFlask requires Python 3.8 or later. Flask 3.0.0 was released on 1 May 2023.\n"
    commit(repository, {"docs/more.md": more})
    findings = find_contradictions(*open_states(repository, "HEAD^", "HEAD", "docs"))
    assert sorted(finding.message.partition(" of ")[0] for finding in findings) == [
        "the release date",
        "the required version",
    ]
