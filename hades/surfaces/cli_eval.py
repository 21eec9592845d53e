"""The bodies of `hades eval`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.evaluation.multihop import RECIPES, Workbench, evaluate_multihop
from hades.evaluation.plots import draw
from hades.providers.tokens import MiniLmTokenizer
from hades.settings import load_settings
from hades.surfaces.cli_ingest import shown_progress
from hades.surfaces.output import Answer
from hades.wiring import open_hades, open_site, open_tracker

LADDER = ("vector", "graphrag", "hirag", "pathrag", "hirag_pathrag", "hipporag", "hipporag_multihop", "nexus")


def run_multihop(
    corpus: Path,
    questions: Path,
    triples: Path | None,
    recipes: str | None,
    ks: Sequence[int],
    home: Path | None,
    out: Path | None,
) -> Answer:
    """Evaluate, print, keep."""
    chosen = RECIPES if recipes is None else LADDER if recipes == "ladder" else tuple(recipes.split(","))
    with workbench(home) as bench:
        found = evaluate_multihop(bench, corpus, questions, triples=triples, recipes=chosen, ks=ks)
    return kept(found.document, "multihop", ks, out)


@contextmanager
def workbench(home: Path | None) -> Iterator[Workbench]:
    """A home of its own: the one named, or one that is gone afterwards. Models are shared with the usual home."""
    settings = load_settings()
    with tempfile.TemporaryDirectory(prefix="hades-eval-") as scratch, shown_progress() as progress:
        place = home or Path(scratch)
        own = settings.model_copy(update={"home": place, "store": "sqlite", "view": "snapshot"})
        with open_hades(own, progress=progress) as hades, open_site(own, progress=progress) as site:
            yield Workbench(site, hades.ingest, hades.embedder, MiniLmTokenizer())


def kept(document: dict[str, Any], kind: str, ks: Sequence[int], out: Path | None) -> Answer:
    """The result on the screen, in files, and as a run in the registry."""
    settings = load_settings()
    folder = out or settings.home / "reports" / f"eval-{kind}-{document['dataset']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.json"
    results.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    picture = draw(document, folder / "recall.svg", 5 if 5 in ks else ks[0])
    metrics = {f"{name}.recall_at_{k}": row["recall"][str(k)] for name, row in document["recipes"].items() for k in ks}
    open_tracker(settings).log_run(
        experiment="hades-evaluation",
        name=kind,
        params={"model": document["model"], "snapshot": document["snapshot"], **document["dataset"]},
        metrics=metrics,
        artifacts=[results, picture],
        tags={"kind": kind},
    )
    return Answer(document, (_table(document, ks), Text(f"kept in {folder}")))


def _table(document: dict[str, Any], ks: Sequence[int]) -> Table:
    data = document["dataset"]
    title = (
        f"{data['questions']:,} questions over {data['passages']:,} passages; built in {document['build']['seconds']} s"
    )
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("recipe")
    headings = [*(f"R@{k}" for k in ks), *(f"all@{k}" for k in ks), "MRR", "reads", "p50 ms", "p95 ms", "p"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, row in document["recipes"].items():
        figures = [100 * row["recall"][str(k)] for k in ks] + [100 * row["all_gold"][str(k)] for k in ks]
        p = f"{row['against']['p']:.4f}" if "against" in row else ""
        costs = (f"{row['reads']['mean']:.0f}", f"{row['ms']['p50']:.1f}", f"{row['ms']['p95']:.1f}")
        table.add_row(name, *(f"{value:.1f}" for value in figures), f"{row['mrr']:.3f}", *costs, p)
    return table
