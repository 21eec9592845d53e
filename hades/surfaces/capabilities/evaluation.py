"""`hades eval`: measure retrieval on a corpus with known answers. Only the command line offers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hades.surfaces.capabilities.capability import LocalCommand, Request, Shell

RUNS_LONG = "builds a graph of its own from files of this machine and may run for hours"


def read_depths(text: str) -> tuple[int, ...]:
    """Ranks at which recall is measured, from text such as 2,5,10."""
    try:
        depths = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        depths = ()
    if not depths or depths[0] < 1:
        raise ValueError(f"{text!r} is not a list of depths; write positive numbers such as 2,5,10")
    return depths


def _check_depths(text: str) -> str:
    read_depths(text)
    return text


Depths = Annotated[str, AfterValidator(_check_depths), Shell(flags=("-k",))]
Seed = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class EvaluationRequest(Request):
    """What every evaluation takes."""

    recipes: str | None = Field(
        None, description="Recipes, separated by commas; `ladder` for all of them, each also with one part left out."
    )
    home: Path | None = Field(
        None, description="Build in this folder and keep it, so that a second run does not embed again."
    )
    out: Path | None = Field(None, description="Folder for the results and the chart.")


class RankedEvaluationRequest(EvaluationRequest):
    """An evaluation that measures recall at several depths."""

    k: Depths = Field("2,5,10", description="Depths at which recall is measured, separated by commas.")


class ArxivFilesRequest(Request):
    """The files of an evaluation on papers."""

    papers: Path | None = Field(None, description="Rows of id, title and abstract; by default HADES_DATA/arxiv.")
    citations: Path | None = Field(None, description="Rows of src and dst; by default HADES_DATA/arxiv.")
    code_links: Path | None = Field(None, description="Rows of id and repo; by default HADES_DATA/arxiv.")
    seed: Seed = Field(1, description="Seed of the sample.")


class EvalMultihopRequest(RankedEvaluationRequest):
    """Build a graph of a corpus, ask every question, and compare recall with the baselines."""

    corpus: Path = Field(description="Rows of id, title and text.")
    questions: Path = Field(description="Rows of question and gold (ids of the corpus).")
    triples: Path | None = Field(None, description="Rows of id, entities and triples.")
    published: Path | None = Field(
        None, description="Rows of question, ground_truth and what other systems retrieved, by title."
    )


class EvalCitationsRequest(ArxivFilesRequest, RankedEvaluationRequest):
    """Ask each citation sentence for the paper it cites; the citations asked for are left out of the graph."""

    contexts: Path | None = Field(None, description="Rows of src, dst and context; by default HADES_DATA/arxiv.")
    sample: Count = Field(500, description="Number of sentences to ask.")
    ask: Literal["sentence", "paper"] = Field(
        "sentence", description="sentence: the sentence alone; paper: also the title of the citing paper."
    )


class EvalBridgesRequest(ArxivFilesRequest, EvaluationRequest):
    """Search the path from a paper to its repository, with the edge between them and without it."""

    pairs: Count = Field(500, description="Number of pairs to ask.")
    hops: Annotated[int, Field(ge=1, le=5), Shell(flags=("-L", "--hops"))] = Field(
        4, description="Maximum number of edges in a path."
    )
    paths: Annotated[int, Field(ge=1), Shell(flags=("-M", "--paths"))] = Field(
        6, description="Maximum number of paths in an answer."
    )
    ask: Literal["pair", "title"] = Field(
        "pair", description="pair: the question names both ends; title: only the paper."
    )


class EvalMemoryRequest(RankedEvaluationRequest):
    """Ask about what was said in long conversations, or about paragraphs of dated articles."""

    folder: Path = Field(
        description="Folder of turns, sessions and qa, or of passages and questions (all as .jsonl.gz)."
    )


class EvalCodeRequest(EvaluationRequest):
    """Find the files and functions that an issue is about, at its own commit; or the function that answers a question.

    Give --repo and --cases for issues, or --files and --questions for single functions.
    """

    repo: Path | None = Field(None, description="A git repository, or a folder with the repositories of the cases.")
    cases: Path | None = Field(None, description="Rows of id, repo, commit, question, gold (paths) and gold_symbols.")
    at: str | None = Field(None, description="Ask every case at this commit instead of its own.")
    limit: Count | None = Field(None, description="Maximum number of cases, spread evenly over the file.")
    files: Path | None = Field(None, description="Single functions: rows of id, name and text.")
    questions: Path | None = Field(None, description="Rows of id, question and gold (ids of functions).")
    dense: bool = Field(False, description="Also run the baselines that embed every function; slow.")

    @model_validator(mode="after")
    def one_form_is_complete(self) -> Self:
        """Issues need a repository and cases; single functions need files and questions."""
        if (self.repo is None or self.cases is None) == (self.files is None or self.questions is None):
            raise ValueError("give --repo and --cases, or --files and --questions")
        return self


_VIEWS = "hades.surfaces.cli.eval_views"
EVALUATIONS = (
    LocalCommand(("eval", "multihop"), EvalMultihopRequest, f"{_VIEWS}:run_multihop", RUNS_LONG),
    LocalCommand(("eval", "citations"), EvalCitationsRequest, f"{_VIEWS}:run_citations", RUNS_LONG),
    LocalCommand(("eval", "bridges"), EvalBridgesRequest, f"{_VIEWS}:run_bridges", RUNS_LONG),
    LocalCommand(("eval", "memory"), EvalMemoryRequest, f"{_VIEWS}:run_memory", RUNS_LONG, ("folder",)),
    LocalCommand(("eval", "code"), EvalCodeRequest, "hades.surfaces.cli.eval_code_views:run_code", RUNS_LONG),
)
