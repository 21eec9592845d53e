"""Puts the figures of `hades eval` into the pages that show them; none is typed by hand.

    python benchmarks/eval_report.py --run      # every set of HADES_DATA first, minutes to an hour
    python benchmarks/eval_report.py    # only the pages, from benchmarks/results/eval_*.json

A page shows them between `<!-- eval:full -->` or `<!-- eval:short -->` and `<!-- eval:end -->`.
`<!-- eval:ladder -->` shows `ladder_*.json`, runs of `--recipes ladder`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "docs" / "evaluation.md", ROOT / "README.md")
BASELINES = ("bm25", "dense", "fusion", "bm25+source", "dense+source", "fusion+source")
DEFAULT = "auto"
_SPAN = re.compile(r"(<!-- eval:(full|short|ladder) -->\n).*?(<!-- eval:end -->)", re.S)
_HOMES = ROOT / ".hades" / "eval"


def main() -> None:
    """Run where asked, then write the pages."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "--run", action="store_true", help="evaluate every set of HADES_DATA first"
    )
    arguments.add_argument(
        "--homes", type=Path, default=_HOMES, help="where the graphs are built and kept, one a set"
    )
    arguments.add_argument("--recipes", help="recipes instead of the usual ones; `ladder` for all")
    arguments.add_argument(
        "--only", default="", help="with --run: these sets, separated by commas; all without it"
    )
    asked = arguments.parse_args()
    only = set(filter(None, asked.only.split(",")))
    if asked.run:
        for name, command in _commands(Path(os.environ.get("HADES_DATA", ROOT / "../shared/data"))):
            if only and name not in only:
                continue
            chosen = ["--recipes", asked.recipes] if asked.recipes else []
            _evaluate(name, [*command, *chosen, "--home", str(asked.homes / name)])
    for page in PAGES:
        if page.is_file():
            text = page.read_text("utf-8")
            fresh = filled(text)
            if fresh != text:
                page.write_text(fresh, "utf-8")
                print(f"wrote {page.relative_to(ROOT)}")


def filled(text: str) -> str:
    """A page with its figures brought up to date; a page without markers as it is."""
    found = {
        path.stem.removeprefix("eval_"): json.loads(path.read_text("utf-8")) for path in _kept()
    }
    tables = {
        "full": lambda: full(found),
        "short": lambda: short(found),
        "ladder": ladder,
    }
    return _SPAN.sub(lambda span: f"{span[1]}\n{tables[span[2]]()}\n{span[3]}", text)


def full(found: dict[str, dict[str, Any]]) -> str:
    """A table a set."""
    if not found:
        return "Nothing has been kept yet; run `python benchmarks/eval_report.py --run`.\n"
    parts = [
        _bridges(name, one) if "pairs" in one["dataset"] else _ranked(name, one)
        for name, one in found.items()
    ]
    return "\n".join(parts)


def short(found: dict[str, dict[str, Any]]) -> str:
    """A row a set: the best baseline, the default recipe with its gain, and the best other recipe.

    A set on which the default was not run yet shows its best recipe.
    """
    lines = [
        "| set | best baseline | HADES (`auto` is the default) | all gold | gain, 95% | p | best "
        "other recipe |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        if "pairs" in one["dataset"]:
            continue
        k, recipes = str(one["compared_at"]), one["recipes"]
        plain = max(
            (name for name in BASELINES if name in recipes),
            key=lambda name: recipes[name]["recall"][k],
        )
        others = [
            recipe
            for recipe in recipes
            if recipe not in BASELINES and not recipe.startswith(DEFAULT)
        ]
        best = max(others, key=lambda recipe: recipes[recipe]["recall"][k]) if others else ""
        ours = DEFAULT if DEFAULT in recipes else best
        row, against = recipes[ours], recipes[ours]["against"]
        low, high = (100 * end for end in against["ci95"])
        lines.append(
            f"| {name} R@{k} | {plain} {100 * recipes[plain]['recall'][k]:.1f} | {ours} "
            f"{100 * row['recall'][k]:.1f} | "
            f"{100 * row['all_gold'][k]:.1f} | +{100 * against[f'recall@{k}']:.1f} [{low:.1f}, "
            f"{high:.1f}] | "
            f"{_p(against['p'])} | "
            + (f"{best} {100 * recipes[best]['recall'][k]:.1f} |" if best else "|")
        )
    return "\n".join(lines) + "\n"


def ladder() -> str:
    """A row a rung, a column a set: recall, its interval and all gold, with the path recall where
    paths come back.
    """
    kept = sorted(RESULTS.glob("ladder_*.json"))
    found = {
        path.stem.removeprefix("ladder_"): json.loads(path.read_text("utf-8")) for path in kept
    }
    heads = [f"{name} ({one['dataset']['questions']:,} questions)" for name, one in found.items()]
    lines = ["| rung | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for rung in dict.fromkeys(rung for one in found.values() for rung in one["recipes"]):
        cells = [_rung(one["recipes"].get(rung), one["compared_at"]) for one in found.values()]
        lines.append(f"| {rung} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _rung(row: dict[str, Any] | None, k: int) -> str:
    if row is None:
        return ""
    low, high = (100 * end for end in row["ci95"][f"recall@{k}"])
    told = (
        f"{100 * row['recall'][str(k)]:.1f} [{low:.1f}, {high:.1f}] / "
        f"{100 * row['all_gold'][str(k)]:.1f}"
    )
    return told + (f", paths {100 * row['path_recall']:.1f}" if row.get("path_recall") else "")


def _ranked(name: str, one: dict[str, Any]) -> str:
    data, k = one["dataset"], one["compared_at"]
    depths = sorted(one["recipes"]["bm25"]["recall"], key=int)
    lines = [
        f"### {name}",
        "",
        f"{data['questions']:,} questions over {data['passages']:,} passages"
        + (", with given triples" if data.get("triples") else "")
        + (f", {data['withheld']:,} citations withheld" if "withheld" in data else "")
        + f". Built in {one['build']['seconds']:.0f} s, {one['build']['embedded']:,} texts "
        "embedded, "
        + f"{one['build']['peak_mb']:,.0f} MB at most. Data {data['sha256'][:12]}, snapshot "
        f"{one['snapshot']}.",
        "",
        "| recipe | "
        + " | ".join(f"R@{d}" for d in depths)
        + f" | 95% of R@{k} | all@{k} | MRR | nDCG | p | on paths | answer told | reads | tokens | "
        "p50 ms |",
        "|---|" + "---|" * (len(depths) + 10),
    ]
    ordered = sorted(one["recipes"], key=lambda recipe: (recipe not in BASELINES, recipe))
    for recipe, row in ((recipe, one["recipes"][recipe]) for recipe in ordered):
        recalls = " | ".join(f"{100 * row['recall'][depth]:.1f}" for depth in depths)
        low, high = (100 * end for end in row["ci95"][f"recall@{k}"])
        p = _p(row["against"]["p"]) if "against" in row else ""
        told = f"{100 * row['prompt']['has_answer']:.1f}" if "prompt" in row else ""
        on_paths = f"{100 * row['path_recall']:.1f}" if row.get("path_recall") else ""
        lines.append(
            f"| {recipe} | {recalls} | {low:.1f} to {high:.1f} | "
            f"{100 * row['all_gold'][str(k)]:.1f} | "
            f"{row['mrr']:.3f} | {row['ndcg']['10']:.3f} | {p} | {on_paths} | {told} | "
            f"{row['reads']['mean']:.0f} | {row['tokens']['mean']:.0f} | {row['ms']['p50']:.1f} |"
        )
    if "published" in one:
        section = one["published"]
        shares = ", ".join(
            f"{system} {row['share']:.2f}" for system, row in section["all_evidence"].items()
        )
        told = (
            f"All evidence among the first {section['k']} of {section['questions']} questions "
            "with published runs"
        )
        lines += ["", f"{told}: {shares}."]
    if "splits" in one:
        lines += ["", *_split(one)]
    lines += [f"\n{_abstention(recipe, row)}" for recipe, row in one.get("abstention", {}).items()]
    return "\n".join([*lines, ""])


def _abstention(recipe: str, row: dict[str, Any]) -> str:
    """One sentence on how far the confidence of a recipe can be trusted."""
    told = (
        f"`{recipe}` abstains on {100 * row['wrong_abstention']:.1f}% of {row['answerable']:,} "
        "answerable questions"
    )
    if "auroc" in row:
        told += (
            f" and on {100 * row['abstained']:.1f}% of {row['unanswerable']:,} unanswerable ones"
        )
        told += f"; AUROC of its confidence {row['auroc']:.3f}"
    return f"{told}; calibration error {row['ece']:.3f}."


def _split(one: dict[str, Any]) -> Iterator[str]:
    """Recall by kind of question, and by the half that `memory` was fitted on and the one it was
    not.
    """
    k, recipes = str(one["compared_at"]), one["recipes"]
    kinds = list(recipes["bm25"]["groups"])
    heads = [f"{kind} ({recipes['bm25']['groups'][kind]['questions']})" for kind in kinds]
    heads += [f"{half} half ({one['splits'][half]['questions']})" for half in one["splits"]]
    yield f"| R@{k} | " + " | ".join(heads) + " |"
    yield "|---|" + "---|" * len(heads)
    for recipe in sorted(recipes, key=lambda recipe: (recipe not in BASELINES, recipe)):
        values = [recipes[recipe]["groups"][kind][f"recall@{k}"] for kind in kinds]
        values += [half["recall"][recipe][k] for half in one["splits"].values()]
        yield f"| {recipe} | " + " | ".join(f"{100 * value:.1f}" for value in values) + " |"


def _bridges(name: str, one: dict[str, Any]) -> str:
    data = one["dataset"]
    names = (
        "discovery",
        "still_joined",
        "recall",
        "precision",
        "purity",
        "coherence",
        "mean_hops",
        "expected",
    )
    lines = [
        f"### {name}",
        "",
        f"{data['pairs']:,} pairs of paper and repository, at most {data['hops']} hops, "
        f"{data['paths']} paths; without "
        f"their own edge {data['still_joined']:,} of them are joined another way.",
        "",
        "| recipe | own edge | "
        + " | ".join(name.replace("_", " ") for name in names)
        + " | tokens | p95 ms |",
        "|---|---|" + "---|" * (len(names) + 2),
    ]
    for recipe, settings in one["recipes"].items():
        for setting, row in settings.items():
            figures = " | ".join("" if row[name] is None else f"{row[name]:.2f}" for name in names)
            lines.append(
                f"| {recipe} | {setting} | {figures} | {row['tokens']:.0f} | {row['ms_p95']:.0f} |"
            )
    return "\n".join([*lines, ""])


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _kept() -> list[Path]:
    return sorted(RESULTS.glob("eval_*.json"))


def _commands(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Every set that is there, by its files: what they are called says what they are."""
    for corpus in sorted(data.glob("*/corpus.jsonl.gz")):
        folder, name = corpus.parent, corpus.parent.name
        command = [
            "multihop",
            "--corpus",
            str(corpus),
            "--questions",
            str(folder / "questions.jsonl.gz"),
        ]
        runs, triples = sorted(folder.glob("*_runs.jsonl.gz")), folder / "openie.jsonl.gz"
        yield name, [*command, *(["--published", str(runs[0])] if runs else [])]
        if triples.is_file():
            yield f"{name}_triples", [*command, "--triples", str(triples)]
    for told in sorted([*data.glob("*/turns.jsonl.gz"), *data.glob("*/passages.jsonl.gz")]):
        yield told.parent.name, ["memory", str(told.parent)]
    if (data / "arxiv").is_dir():
        yield (
            "citations",
            ["citations", "--sample", "300", "--seed", "2"],
        )  # seed 1 was looked at while fitting
        yield "bridges", ["bridges"]


def _evaluate(name: str, command: list[str]) -> None:
    print(f"== {name}", file=sys.stderr)
    run = [sys.executable, "-m", "hades.surfaces.cli.commands", "eval", *command, "--json"]
    done = subprocess.run(run, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"eval_{name}.json").write_text(
        json.dumps(json.loads(done.stdout), indent=1, sort_keys=True) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
