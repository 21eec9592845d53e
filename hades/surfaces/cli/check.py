"""The command `hades check`: what a change of documentation breaks, before it is merged."""

from __future__ import annotations

import hashlib
import json
import posixpath
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from hades.check.cache import GraphCache
from hades.check.check import check_states
from hades.check.pages import INDEX, CheckUsageError, State, find_repository, open_states
from hades.check.questions import NAMES, QuestionFile, parse_questions
from hades.check.report import CheckReport, Format, markdown, sarif, text_lines
from hades.files import write_whole
from hades.ingest.sources.documents import DocumentsSource
from hades.night.standing import frequent_questions
from hades.ports.store import Mode
from hades.retrieval.pipeline import Tools
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.cli.output import (
    Answer,
    Verbatim,
    argument,
    local_command,
    option,
    show_progress,
)
from hades.wiring import open_answers, open_embedder, open_hades, open_store

EXAMPLE = """\
# What the documentation has to answer; `hades check` asks it before a change is merged.
# docs: docs               # the folder of the documentation, where it has another name
questions:
  - question: How do I install it?
    requires: index.md          # the page that must answer, or page.md#Heading
    words: [install]            # words that the answer must hold
  - How do I report a bug?      # a question alone must have some answer
"""


@local_command("check")
def run_check(
    path: Annotated[Path, argument("A git repository, or a folder of one.", "PATH")] = Path(),
    base: Annotated[
        str | None,
        option(
            "The commit or branch to compare with, from where the head left it. By default the "
            "main branch, or the commit before.",
            metavar="REF",
        ),
    ] = None,
    head: Annotated[
        str | None,
        option(
            "The commit or branch to check; HEAD by default.",
            metavar="REF",
        ),
    ] = None,
    staged: Annotated[
        bool, option("Check what `git add` has staged, against HEAD.", "--staged")
    ] = False,
    questions: Annotated[
        Path | None,
        option(
            "The file of questions, of this machine; by default questions.yaml of the head, in the "
            "folder of the documentation or at the root."
        ),
    ] = None,
    docs: Annotated[
        str | None,
        option(
            "The folder of the documentation in the repository; by default docs.",
            metavar="DIR",
        ),
    ] = None,
    format: Annotated[Format, option("How the report is printed.")] = "text",
    write: Annotated[
        Path | None,
        option(
            "Also write check.md, check.sarif and check.json into this folder.",
            metavar="DIR",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        option(
            "Where built graphs are kept; by default HADES_HOME/check.",
            metavar="DIR",
        ),
    ] = None,
    cache_mb: Annotated[int, option("Maximum size of the kept graphs, in MB.", min=1)] = 1_000,
    init: Annotated[
        bool, option("Write an example of questions.yaml into PATH, and stop.", "--init")
    ] = False,
) -> Answer:
    """Check a change of documentation: answers, contradictions, links.

    Says which questions of questions.yaml lose their answer or get another source, which pages now
    contradict each other, which links and names lead nowhere since the base, and which new page
    answers nothing that anyone asks. Both states are read from git and built aside: neither the
    work tree nor the graph of HADES_HOME is touched. Exits 0 green, 1 red, 2 for bad usage.
    """
    if init:
        return _write_example(path)

    try:
        report = _check(
            path,
            base,
            INDEX if staged else head,
            questions,
            docs,
            cache,
            cache_mb,
        )
    except CheckUsageError as error:
        raise typer.BadParameter(str(error)) from None

    texts = _texts(report)
    if write is not None:
        write.mkdir(parents=True, exist_ok=True)
        for name, ending in (("markdown", "md"), ("sarif", "sarif"), ("json", "json")):
            write_whole(write / f"check.{ending}", texts[name])

    return Answer(
        report.as_dict(),
        [Verbatim(texts[format].rstrip("\n"))],
        report.is_green,
    )


def _write_example(path: Path) -> Answer:
    place = path / NAMES[0]
    if place.exists():
        raise typer.BadParameter(f"{place} is there already; edit it")

    write_whole(place, EXAMPLE)
    next_step = f"wrote {place}; edit it, commit it and run `hades check`"
    return Answer(
        {"questions": str(place)},
        [next_step],
        is_report=True,
    )


def _check(
    path: Path,
    base: str | None,
    head: str | None,
    questions: Path | None,
    docs: str | None,
    cache: Path | None,
    cache_mb: int,
) -> CheckReport:
    base_state, head_state = open_states(path, base, head, docs)
    question_file = _read_questions(questions, head_state)
    if docs is None and question_file.folder is not None:
        base_state, head_state = open_states(path, base, head, question_file.folder)

    settings = load_settings()
    folder = cache or settings.home / "check"
    folder.mkdir(parents=True, exist_ok=True)
    graphs = _SideGraphs(settings)
    graph_cache = GraphCache(
        folder,
        graphs.kind,
        graphs.build,
        cache_mb << 20,
    )
    return check_states(
        base_state,
        head_state,
        question_file,
        graph_cache,
        graphs.open_tools,
        _logged_questions(settings),
    )


def _read_questions(path: Path | None, head: State) -> QuestionFile:
    """The questions of a file of this machine, or of the head; none where it has no such file."""
    if path is not None:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckUsageError(f"{path} cannot be read: {error}") from None

        root = find_repository(head.repository).resolve()
        place = path.resolve()
        if place.is_relative_to(root):
            shown = place.relative_to(root)
        else:
            shown = path

        return parse_questions(text, PurePosixPath(shown).as_posix())

    for folder in dict.fromkeys((head.folder, "")):
        for name in NAMES:
            place_in_head = posixpath.join(folder, name)
            head_text = head.read(place_in_head)
            if head_text is not None:
                return parse_questions(head_text, place_in_head)

    return QuestionFile(NAMES[0], ())


class _SideGraphs:
    """Graphs in homes of their own, by the embedder of the settings, with nothing of servers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._embedder = open_embedder(settings)
        parts = (version("hades-graphrag"), self._embedder.model.tag)
        retrieval = settings.model_dump_json(include={"hirag_pathrag", "hipporag"})
        self.kind = hashlib.sha256(repr((parts, retrieval)).encode()).hexdigest()[:12]

    def build(self, home: Path, pages: Path) -> int:
        """Passages, vectors, names and edges of a folder, published. Topics are left out: one
        edit moves them, and with them answers that the edit does not touch.
        """
        with show_progress() as progress:
            own_settings = self._at(home)
            with open_hades(
                own_settings,
                progress=progress,
                embedder=self._embedder,
            ) as hades:
                source = DocumentsSource(pages, own_settings.ingest_workers)
                source.place = source.corpus = "check"  # the same in every home
                embedded = hades.ingest.source(source).embedded
                hades.publish()

        return embedded

    def open_tools(self, home: Path) -> Tools:
        """What asks questions of these graphs."""
        return open_answers(self._at(home), self._embedder).tools

    def _at(self, home: Path) -> Settings:
        update = {
            "home": home,
            "store": "sqlite",
            "view": "snapshot",
            "lineage_url": None,
            "otlp_endpoint": None,
        }
        return self._settings.model_copy(update=update)


def _logged_questions(settings: Settings) -> list[str]:
    """What people asked the graph of HADES_HOME most often; nothing where there is none."""
    if settings.store != "sqlite" or not (settings.home / "graph.db").is_file():
        return []

    store = open_store(settings, Mode.READ_ONLY)
    try:
        return [text for text, _ in frequent_questions(store)]
    finally:
        store.close()


def _texts(report: CheckReport) -> dict[str, str]:
    """The report in every format."""
    return {
        "text": "\n".join(text_lines(report)),
        "markdown": markdown(report),
        "sarif": json.dumps(sarif(report), indent=2, ensure_ascii=False) + "\n",
        "json": json.dumps(report.as_dict(), indent=2, ensure_ascii=False) + "\n",
    }
