"""What is generated is current, what is documented exists, and what exists is documented."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from docs.generate import WRITERS, command_tree
from hades.settings.tree import SECTIONS, Settings, variable_of
from schemas.catalogue import COLLECTIONS

ROOT = Path(__file__).resolve().parents[2]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|farm)/[\w.]+")


@pytest.mark.parametrize("name", WRITERS)
def test_generated_page_is_current(name):
    assert (ROOT / name).read_text(encoding="utf-8") == WRITERS[name](), "stale: run `make docs`"


def test_every_setting_is_documented():
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        assert f"`{variable_of(name)}" in page
        assert field.description
        if name not in SECTIONS:
            assert f"# {variable_of(name)}=" in example


def test_every_command_is_documented_and_takes_json_and_debug():
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    for name, command in command_tree().items():
        assert f"## `{name}`" in page
        assert command.help
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--debug"} <= options


def test_every_collection_is_documented():
    page = (ROOT / "docs/reference/schema.md").read_text(encoding="utf-8")
    assert [c.name for c in COLLECTIONS if f"\n## {c.name}\n" not in page] == []


def test_the_map_names_existing_folders():
    architecture = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    house = architecture.split("## Map of the house")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([\w./-]+)`", house, flags=re.MULTILINE)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def markdown_files():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "path", markdown_files(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [
        link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link
    ]
    assert [link for link, _, _ in links if link and not (path.parent / link).exists()] == []
    sections = [
        (path.parent / link if link else path, section) for link, _, section in links if section
    ]
    assert [
        (page.name, section) for page, section in sections if section not in sections_of(page)
    ] == []


def sections_of(page: Path) -> set[str]:
    """The addresses of the sections of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {slugify(heading.replace("`", ""), "-") for heading in headings}


def test_every_module_that_a_page_names_exists():
    pages = [*markdown_files(), *ROOT.glob("*/README.md"), *(ROOT / "hades").rglob("README.md")]
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if ".venv" not in path.parts
    }
    endings = {
        "/".join(parts[-n:])
        for parts in (one.split("/") for one in modules)
        for n in range(1, len(parts) + 1)
    }
    named = [
        (page, name)
        for page in pages
        for name in re.findall(r"`([a-z_][\w./-]*\.py)`", page.read_text("utf-8"))
    ]
    assert len(named) > 100
    assert [
        f"{page.relative_to(ROOT)}: {name}" for page, name in named if name not in endings
    ] == []


def test_no_page_names_a_path_of_somebodys_machine():
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)}"
        for path in markdown_files()
        for match in MACHINE_PATH.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_navigation_of_the_site_names_existing_pages():
    named = re.findall(
        r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert len(named) > 25
    assert [page for page in named if not (ROOT / "docs" / page).is_file()] == []


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "true"})
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", home)
    assert loaded == []
    assert (tmp_path / "site" / "reference" / "reasons.html").is_file()
