"""`hades init`: three questions, one file."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
import yaml
from rich.text import Text

from hades.errors import SettingsError
from hades.settings import FILE_NAME, Settings, load_settings
from hades.surfaces.cli.output import Answer


def run_init(
    path: Path | None, home: Path | None, llm_url: str | None, llm_model: str | None, *, force: bool
) -> Answer:
    """Ask for what was not given, write the file, check that it is read as it was meant."""
    file = Path.cwd() / FILE_NAME
    if file.exists() and not force:
        raise SettingsError(f"{FILE_NAME} exists in this folder; edit it, or replace it with --force")
    default_home = str(Settings.model_fields["home"].default)
    path = path if path is not None else Path(_ask("Which folder shall be read?", "."))
    home = home if home is not None else Path(_ask("Where shall the graph be kept?", default_home))
    if llm_url is None:
        llm_url = _ask("OpenAI-compatible endpoint that writes answers (empty for none)?", "")
    if llm_url and not llm_model:
        llm_model = _ask("Its model?", "")
        if not llm_model:
            raise SettingsError(f"the endpoint {llm_url} needs a model; give --llm-model NAME")
    if not path.is_dir():
        raise SettingsError(f"{path} is not a folder; give the folder to read with --path")
    values = {"home": str(home), **({"llm_base_url": llm_url, "llm_model": llm_model} if llm_url else {})}
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text(_HEAD + yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    try:
        load_settings({})
    except SettingsError:
        _put_back(file, before)
        raise
    steps = [f"hades watch {path}", 'hades answer "..."', "hades serve --no-token"]
    document = {"file": str(file), "settings": values, "next": steps}
    lines = [f"wrote {file}", *(f"next: {step}" for step in steps)]
    return Answer(document, tuple(Text(line) for line in lines))


_HEAD = "# Settings of HADES; environment variables win. Every key: docs/reference/settings.md.\n"


def _ask(question: str, default: str) -> str:
    """The answer of a person; the default where nobody is asked."""
    if not sys.stdin.isatty():
        return default
    return str(typer.prompt(question, default=default, err=True)).strip()


def _put_back(file: Path, before: str | None) -> None:
    if before is None:
        file.unlink()
    else:
        file.write_text(before, encoding="utf-8")


def show_completion(shell: str) -> Answer:
    """The script that lets a shell complete `hades`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="hades", complete_var="_HADES_COMPLETE", shell=shell)
    return Answer({"shell": shell, "script": script}, (Text(script, no_wrap=True, overflow="ignore"),))
