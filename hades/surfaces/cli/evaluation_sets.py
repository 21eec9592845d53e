"""The commands `hades eval multihop|citations|memory|bridges|code`: a checkout has them in
`benchmarks/evaluation`, and a wheel says so.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import hades
from hades.errors import HadesError
from hades.surfaces.cli.output import Answer, local_command

NAMES = ("bridges", "citations", "code", "memory", "multihop")


class OnlyInCheckout(HadesError):
    """A command that a wheel does not have."""


def ask_from_checkout(*arguments: str) -> Answer:
    """Asked from a checkout of the source, not from an installed package."""
    raise OnlyInCheckout(
        "evaluation sets are asked from a checkout: this installation is a wheel without "
        "`benchmarks/`; clone the repository, run `make install` there, and call this again"
    )


def declare_sets(checkout: Path) -> None:
    """The commands themselves where the folder is a checkout, else what says where they are."""
    if (checkout / "benchmarks" / "evaluation").is_dir():
        import_module("benchmarks.evaluation.commands")
        return

    for name in NAMES:
        local_command(f"eval {name}")(ask_from_checkout)


declare_sets(Path(hades.__file__).resolve().parents[1])
