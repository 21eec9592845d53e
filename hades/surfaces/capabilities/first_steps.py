"""Commands of a person at a terminal: settings and completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hades.surfaces.capabilities.capability import LocalCommand, Request, Shell


class InitRequest(Request):
    """Write hades.yaml after three questions; what is given as an option is not asked, nor without a terminal.

    The key of an endpoint is never written: set HADES_LLM_API_KEY.
    """

    path: Path | None = Field(None, description="Folder to read: documents or code.")
    home: Path | None = Field(None, description="Folder that the graph is kept in.")
    llm_url: str | None = Field(None, description="OpenAI-compatible endpoint that writes answers; '' for none.")
    llm_model: str | None = Field(None, description="Model of that endpoint.")
    force: bool = Field(False, description="Replace hades.yaml where there is one.")


class CompletionRequest(Request):
    """Print the completion script of a shell, for example `hades completion bash >> ~/.bashrc`."""

    shell: Annotated[Literal["bash", "zsh", "fish"], Shell(metavar="SHELL")] = Field(description="bash, zsh or fish.")


_TERMINAL = "for the person at this terminal"
FIRST_STEPS = (
    LocalCommand(("init",), InitRequest, "hades.surfaces.cli.init_views:run_init", _TERMINAL),
    LocalCommand(
        ("completion",), CompletionRequest, "hades.surfaces.cli.init_views:show_completion", _TERMINAL, ("shell",)
    ),
)
