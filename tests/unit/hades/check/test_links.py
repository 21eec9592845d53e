"""Links that a change breaks are named with their line; those that it did not break are not."""

import pytest

from hades.check.links import find_broken_links
from hades.check.pages import open_states
from tests.repositories import commit, git, start

GUIDE = "# Guide\n\n## Set up\n\nText.\n\n## Run it\n\nText.\n"


@pytest.fixture
def repository(tmp_path):
    folder = start(tmp_path / "project")
    commit(
        folder,
        {
            "README.md": "# Project\n\nSee [the guide](docs/guide.md#set-up).\n",
            "docs/guide.md": GUIDE,
            "docs/index.md": "# Index\n\n[Guide](guide.md) and [run](guide.md#run-it).\n",
            "docs/api.rst": "API\n===\n\n.. _calls:\n\nCalls\n-----\n\nText.\n",
            "docs/use.rst": "Use\n===\n\nSee :ref:`calls` and :doc:`api`.\n",
        },
    )
    return folder


def check(repository, base="HEAD^"):
    base_state, head_state = open_states(repository, base, "HEAD", None)
    return [
        (finding.path, finding.line, finding.rule, str(finding.level), finding.message)
        for finding in find_broken_links(base_state, head_state)
    ]


def test_a_renamed_heading_breaks_the_pages_that_link_to_it(repository):
    commit(repository, {"docs/guide.md": GUIDE.replace("## Set up", "## Installation")})
    [(path, line, rule, level, message)] = check(repository)
    assert (path, line, rule, level) == ("README.md", 3, "link-anchor", "error")
    assert "“Set up”" in message
    assert "“Installation”" in message


def test_a_removed_page_breaks_links_and_references(repository):
    commit(repository, {"docs/guide.md": None, "docs/api.rst": None})
    broken = {(path, rule) for path, _, rule, _, _ in check(repository)}
    assert broken == {
        ("README.md", "link-file"),
        ("docs/index.md", "link-file"),
        ("docs/use.rst", "link-reference"),
    }


def test_only_what_is_new_since_the_base_counts(repository):
    text = "# Index\n\n[Gone](gone.md), [no heading](guide.md#nowhere).\n"
    commit(repository, {"docs/index.md": text})
    assert len(check(repository)) == 2
    commit(repository, {"docs/guide.md": GUIDE + "\nMore.\n"})
    assert check(repository) == []
    assert len(check(repository, "HEAD~2")) == 2


def test_a_page_that_moves_with_its_broken_link_breaks_nothing(repository):
    broken = "# Old\n\n[Gone](gone.md)\n"
    commit(repository, {"docs/old.md": broken})
    commit(repository, {"docs/old.md": None, "docs/new.md": broken})
    assert check(repository) == []


def test_what_code_shows_is_no_link(repository):
    text = "# Index\n\n```md\n[a](a.md)\n```\n\n`[b](b.md)` <!-- [c](c.md) -->\n"
    commit(repository, {"docs/index.md": text})
    assert check(repository) == []


@pytest.mark.parametrize(
    "link",
    [
        "https://example.org/x.md",
        "mailto:a@example.org",
        "../guide",  # a site that serves each page as a folder
        "guide.html#set-up",
        "guide.md#SET_UP",  # generators spell anchors in their own ways
        "guide#run-it-1",
        "/docs/guide.md",
        "..",  # the root of the repository
        "../LICENSE-OF-ANOTHER-REPOSITORY/../README.md",
        "{{ site.url }}/x.md",
    ],
)
def test_a_link_that_somebody_can_follow_is_not_blamed(repository, link):
    commit(repository, {"docs/index.md": f"# Index\n\n[x]({link})\n"})
    assert check(repository) == []


def test_addresses_of_a_site_generator_are_not_checked_where_the_base_has_many(repository):
    links = "".join(f"[{number}](/products/{number}/)\n" for number in range(9))
    commit(repository, {"docs/index.md": f"# Index\n\n{links}"})
    commit(repository, {"docs/index.md": f"# Index\n\n{links}[10](/products/10/)\n"})
    assert check(repository) == []


def test_references_to_other_projects_are_not_blamed(repository):
    text = "Use\n===\n\n:doc:`python:library/os`, :ref:`python:tut-files`, :ref:`calls`.\n"
    commit(repository, {"docs/use.rst": text})
    assert check(repository) == []


def test_a_label_that_a_docstring_has_is_there(repository):
    use = "Use\n===\n\nSee :ref:`deep` and :ref:`nowhere`.\n"
    code = '"""Module.\n\n.. _deep:\n\nDeep\n"""\n'
    commit(repository, {"docs/use.rst": use, "src/module.py": code})
    [(path, line, rule, _, message)] = check(repository)
    assert (path, line, rule) == ("docs/use.rst", 4, "link-reference")
    assert "`nowhere`" in message


def test_a_table_of_contents_names_pages_that_are_there(repository):
    contents = "Index\n=====\n\n.. toctree::\n   :maxdepth: 2\n\n   api\n   Use it <use>\n   lost\n"
    commit(repository, {"docs/contents.rst": contents})
    assert [(line, rule) for _, line, rule, _, _ in check(repository)] == [(9, "link-reference")]


def test_a_name_that_is_not_described_any_more_is_a_warning(repository):
    described = "API\n===\n\n.. py:function:: connect(host)\n\n   Opens.\n"
    commit(repository, {"docs/api.rst": described, "docs/use.rst": "Use\n===\n\n:func:`connect`\n"})
    commit(repository, {"docs/api.rst": described.replace("connect", "open_connection")})
    [(path, line, rule, level, _)] = check(repository)
    assert (path, line, rule, level) == ("docs/use.rst", 4, "link-name", "warning")


def test_links_of_myst_are_followed(repository):
    page = "# Page\n\n(place)=\n## Part\n\n{doc}`api` {ref}`place` {ref}`calls` [x](place)\n"
    commit(repository, {"docs/page.md": page})
    assert check(repository) == []
    commit(repository, {"docs/page.md": page.replace("(place)=\n", "")})
    assert {line for _, line, *_ in check(repository)} == {5}


def test_the_base_is_where_the_head_left_it(repository):
    git(repository, "switch", "--quiet", "--create", "change")
    commit(repository, {"docs/more.md": "# More\n\nText.\n"})
    git(repository, "switch", "--quiet", "main")
    commit(repository, {"docs/guide.md": GUIDE + "\n[new](more-on-main.md)\n"})
    base, head = open_states(repository, "main", "change", None)
    assert base.commit == git(repository, "merge-base", "main", "change").strip()
    assert find_broken_links(base, head) == []
