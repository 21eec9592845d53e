"""The plans of a home: a folder each, the newest few."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hades.errors import HadesError
from hades.files import make_private_folder, write_whole
from hades.night.stage import Report
from schemas.record import JsonObject

FOLDER = "plans"  # under HADES_HOME
DOCUMENT, PAGE, CHANGES = "plan.json", "plan.html", "changes.db"
# What an application needs and no reader: reports of stages, digests, marks, every row by its key.
INNER = ("report", "inputs", "marks", "specs", "all_rows")
BUILDING = ".building"  # where the next state is built; a plan that was killed leaves it behind


class UnknownPlan(HadesError):
    """No plan has this name."""


def plans_of(home: Path) -> list[Path]:
    """The folders of finished plans, the newest first."""
    return sorted(
        (path.parent for path in (home / FOLDER).glob(f"*/{DOCUMENT}")),
        reverse=True,
    )


def find_plan(home: Path, name: str) -> Path:
    """The folder of a plan, by its id, its folder or a file that `hades plan --out` wrote."""
    path = Path(name)
    if path.is_file():
        name = str(_read(path).get("plan", name))

    folder = home / FOLDER / Path(name).name
    if not (folder / DOCUMENT).is_file():
        known = ", ".join(plan.name for plan in plans_of(home)) or "none"
        raise UnknownPlan(
            f"there is no plan {name} in {home / FOLDER}, expected one of: {known}; make one with "
            "`hades plan`"
        )

    return folder


def read_plan(folder: Path) -> JsonObject:
    """What a plan says."""
    return _read(folder / DOCUMENT)


def write_plan(folder: Path, plan: Report) -> None:
    """Keep what a plan says."""
    text = json.dumps(
        plan,
        ensure_ascii=False,
        indent=1,
        default=str,
    )
    write_whole(folder / DOCUMENT, text + "\n")


def building_folder(home: Path) -> Path:
    """An empty folder in which the next state is built."""
    folder = home / FOLDER / BUILDING
    shutil.rmtree(folder, ignore_errors=True)
    return make_private_folder(folder)


def retain_plans(home: Path, keep: int) -> None:
    """Remove all but the newest."""
    for folder in plans_of(home)[keep:]:
        shutil.rmtree(folder)


def remove_plans(home: Path) -> list[str]:
    """Remove every plan, for each holds rows as they were; the paths in the home that went."""
    names = []
    for folder in plans_of(home):
        names.append(str(folder.relative_to(home)))

    shutil.rmtree(home / FOLDER, ignore_errors=True)
    return names


def describe_plans(home: Path) -> list[JsonObject]:
    """The plans of a home for `hades status`: when each was made, its size, whether it was
    applied.
    """
    plans = []
    for folder in plans_of(home):
        plan = read_plan(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        plans.append(
            {
                "plan": plan["plan"],
                "created": plan["created"],
                "applied": plan["applied"],
                "bytes": size,
            }
        )

    return plans


def _read(path: Path) -> JsonObject:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnknownPlan(
            f"{path} cannot be read as a plan ({error}); make one with `hades plan`"
        ) from None

    return dict(body) if isinstance(body, dict) else {}
