"""A folder of documentation and a home beside it, used by commands alone, each in a process of its
own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import HANG_SECONDS, wait_until
from tests.warm_process import start_program

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "week"
HISTORY = FIXTURES / "flask-docs.tar.xz"
RELEASES = ("2.0.3", "2.1.3", "2.2.5", "2.3.3", "3.0.3", "3.1.0", "3.1.3")
UNHURRIED = "profile: evaluation\n"  # a busy machine ends no turn
WITH_MLFLOW = """
from importlib.util import find_spec

from hades import wiring
from hades.surfaces.cli.commands import main

wiring.find_spec = find_spec
main()
"""
StartHades = Callable[..., "subprocess.Popen[str]"]


def start_installed(*words: str, **options: Any) -> subprocess.Popen[str]:
    """`hades` as the environment has it."""
    program = Path(sys.executable).parent / "hades"
    return subprocess.Popen([program, *words], text=True, **options)


def start_copies_of(programs: Path) -> StartHades:
    """`hades` as copies of the warm process: contracts by Arrow, which takes a tenth of the time,
    and the registry of MLflow.
    """

    def start(*words: str, **options: Any) -> subprocess.Popen[str]:
        return start_program(programs, WITH_MLFLOW, *words, **options)

    return start


@dataclass(frozen=True)
class Ended:
    """A command that has ended, and when it ran, in seconds since 1970."""

    words: tuple[str, ...]
    code: int
    output: str
    errors: str
    began: float
    ended: float

    def read(self) -> dict[str, Any]:
        """The JSON document that it printed."""
        document: dict[str, Any] = json.loads(self.output)
        return document


@dataclass
class HomeOfTheWeek:
    """The folder of documentation, the home, and the commands between them.

    `variables` are the settings of the person whose week it is; a night may change them.
    """

    folder: Path
    start_hades: StartHades
    variables: dict[str, str] = field(default_factory=dict)
    history: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def documents(self) -> Path:
        return self.folder / "docs"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """What every command of the week sees."""
        here = {"HADES_HOME": str(self.home), "PREFECT_HOME": str(self.folder / "prefect")}
        return {**os.environ, **here, **self.variables}

    def beside(self, name: str, **variables: str) -> HomeOfTheWeek:
        """Another home with a folder of its own, and the same history."""
        folder = self.folder.parent / name
        folder.mkdir()
        return HomeOfTheWeek(
            folder, self.start_hades, {**self.variables, **variables}, self.history
        )

    # commands

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Begin a command; its streams are pipes."""
        return self.start_hades(
            *words,
            env=self.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, code: int = 0, **variables: str) -> Ended:
        """A command that ends with this exit code."""
        began = time.time()
        process = self.start(*words, **variables)
        output, errors = process.communicate(timeout=HANG_SECONDS * 2)
        done = Ended(words, process.returncode, output, errors, began, time.time())
        assert done.code == code, (
            f"hades {' '.join(words)} ended with {done.code}\n{output}{errors}"
        )
        return done

    def read(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The JSON document of a command."""
        return self.run(*words, "--json", code=code).read()

    def ask(self, question: str, *options: str) -> dict[str, Any]:
        """The answer to a question, however busy the machine is."""
        plan = self.folder / "plan.yaml"
        plan.write_text(UNHURRIED, "utf-8")
        return self.read("query", question, "--plan", str(plan), *options)

    def found_pages(self, question: str) -> list[str]:
        """The pages of an answer, best first."""
        passages = self.ask(question)["passages"]
        return [passage["document"] for passage in passages]

    def kill_in_stage(self, stage: str, *words: str) -> None:
        """Begin a command and kill it (-9) once it works on this stage of a night."""
        begun = self.size_of_lineage()
        process = self.start(*words)

        def is_in_stage() -> bool:
            assert process.poll() is None, f"the night ended before the stage {stage}"
            return stage in self.started_stages(begun)

        wait_until(is_in_stage)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL

    @property
    def lineage(self) -> Path:
        """Where nights write which stage has started and ended."""
        return self.home / "logs" / "lineage.jsonl"

    def size_of_lineage(self) -> int:
        return self.lineage.stat().st_size if self.lineage.exists() else 0

    def started_stages(self, begun: int) -> set[str]:
        """Stages that a night has started, by what was written since the file had this size."""
        if not self.lineage.exists():
            return set()
        with self.lineage.open("rb") as file:
            file.seek(begun)
            lines = file.read().rpartition(b"\n")[0].splitlines()
        events = [json.loads(line) for line in lines]
        return {event["job"]["name"].removeprefix("nightly.") for event in events}

    # the folder

    def write_release(self, release: str) -> None:
        """Bring the folder to a release, as a checkout does: unchanged files are not touched."""
        pages = self.history[release]
        for path in sorted(self.documents.rglob("*.rst")):
            if str(path.relative_to(self.documents)) not in pages:
                path.unlink()
        for name, text in pages.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Write a page, unless it says so already."""
        path = self.documents / name
        if path.exists() and path.read_text("utf-8") == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def rename(self, name: str, other: str) -> None:
        """Rename a page now and in every release that is still to come."""
        for pages in self.history.values():
            if name in pages:
                pages[other] = pages.pop(name)
        (self.documents / name).rename(self.documents / other)

    def delete(self, name: str) -> None:
        """Delete a page now and in every release that is still to come."""
        for pages in self.history.values():
            pages.pop(name, None)
        (self.documents / name).unlink()

    def served(self) -> str:
        """The snapshot that serves, by the pointer file."""
        pointer = json.loads((self.home / "snapshots" / "current").read_text())
        return str(pointer["snapshot"])

    def moment(self) -> str:
        """The moment that the graph that serves stands at."""
        about = self.home / "snapshots" / self.served() / "about.json"
        return str(json.loads(about.read_text())["created_at"])

    def sizes(self) -> dict[str, int]:
        """Bytes of each part of the home; the store's journal counts with the store."""
        sizes: dict[str, int] = {}
        for path in self.home.rglob("*"):
            if path.is_file():
                part = path.relative_to(self.home).parts[0]
                name = "graph.db" if part.startswith("graph.db") else part
                sizes[name] = sizes.get(name, 0) + path.stat().st_size
        return dict(sorted(sizes.items()))


def read_history(keep: Callable[[str], bool] = bool) -> dict[str, dict[str, str]]:
    """The pages of each release by name; `keep` chooses among the names."""
    history: dict[str, dict[str, str]] = {release: {} for release in RELEASES}
    with tarfile.open(HISTORY) as archive:
        for member in archive.getmembers():
            release, _, name = member.name.partition("/")
            if keep(name):
                history[release][name] = archive.extractfile(member).read().decode("utf-8")
    return history


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a fixture."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
