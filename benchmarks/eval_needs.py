"""How well the need of a source (`hades explain`) tells gold passages from the others that an
answer shows.

    python benchmarks/eval_needs.py NAME=HOME [NAME=HOME ...]

NAME is a folder of HADES_DATA with questions.jsonl.gz, HOME a published home of its corpus. Printed
are the AUROC over all shown passages, that of the bare rank beside it, and the time of the check of
one question.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.ports.services import utc_now
from hades.retrieval.necessity import CHECK_MS, quote, replay_of, weigh_sources
from hades.retrieval.turn_result import log_of
from hades.settings.load import load_settings
from hades.wiring import open_answers


def measure(questions: Path, home: Path) -> dict[str, float]:
    """AUROC of need and of rank, and the milliseconds of a check."""
    with gzip.open(questions, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    gold, needed, ranks, spent = [], [], [], []
    with (
        open_answers(load_settings({**os.environ, "HADES_HOME": str(home)})) as answers,
        answers.lease() as view,
    ):
        for row in rows:
            found = answers.retrieve(row["question"])
            began = time.perf_counter()
            replay = replay_of(view, answers.tools, log_of(found, utc_now()), CHECK_MS)
            needs = weigh_sources(found, quote(found, None), replay)
            spent.append((time.perf_counter() - began) * 1000)
            for one in found.passages:
                gold.append(one.document in row["gold"])
                needed.append(needs[one.rank]["needed"])
                ranks.append(-one.rank)
    return {
        "questions": len(rows),
        "passages": len(gold),
        "auroc": float(roc_auc_score(gold, needed)),
        "auroc_of_rank": float(roc_auc_score(gold, ranks)),
        "ms_p50": float(np.median(spent)),
        "ms_p95": float(np.quantile(spent, 0.95)),
    }


if __name__ == "__main__":
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    for name, _, place in (one.partition("=") for one in sys.argv[1:]):
        print(name, json.dumps(measure(data / name / "questions.jsonl.gz", Path(place))))
