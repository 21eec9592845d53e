"""Nights that learn: asked, judged, built again, gone back; what people are told of it."""

import pyarrow as pa
import pytest

from hades.night.forecast import forecast_build
from hades.night.release.publish import roll_back
from hades.night.report import summary_lines
from hades.ports.services import utc_now
from hades.retrieval.turn_result import judge
from schemas.telemetry import JudgedRanks
from tests.unit.hades.night.release.small_graphs import MONDAY, PEOPLE, PLACES, ingested

pytestmark = pytest.mark.slow
COLUMNS = ["_key", "weight", "learned"]


def judge_some(hades) -> int:
    """Ask of everybody and every place, and call the last passage of each answer good; how many
    were judged.
    """
    judged = 0
    for person in PEOPLE:
        for place in (*PLACES, "letter", "work"):
            answer = hades.retrieve(f"{person} and {place}", recipe="hipporag")
            judge(
                hades.store,
                answer.query_id,
                good=JudgedRanks(passages=(len(answer.passages),)),
                at=utc_now(),
            )
            judged += 1
    return judged


def weights(hades) -> dict:
    return {
        name: pa.Table.from_batches(hades.store.scan(name, columns=COLUMNS)).to_pylist()
        for name in ("relations", "mentions")
    }


def test_judged_answers_teach_the_next_night_and_rolling_back_undoes_it(tmp_path) -> None:
    with ingested(tmp_path) as hades:
        first = hades.build(as_of=MONDAY)
        before = weights(hades)
        assert "weights" not in forecast_build(hades.store, hades.home)["stages"]
        judged = judge_some(hades)
        assert {"weights", "bridges"} <= set(forecast_build(hades.store, hades.home)["stages"])

        second = hades.build(as_of=MONDAY)
        learned = second["weights"]["learned"]
        assert (second["weights"]["skipped"], learned["turns"]) == (False, judged)
        assert learned["held_out"]["questions"] >= 5
        (line,) = (line for line in summary_lines(second) if line.startswith("weights"))
        assert learned["kept"]
        assert f"{judged} judged answers moved {sum(learned['moved'].values())} edges" in line
        assert forecast_build(hades.store, hades.home)["learned"] == learned
        after = weights(hades)
        assert after != before
        third = hades.build(as_of=MONDAY)
        assert third["weights"]["skipped"] is True
        assert third["released"]["snapshot"] == second["released"]["snapshot"]

        roll_back(hades.build_context, "weights", first["released"]["weights_version"])
        assert weights(hades) == before
        roll_back(hades.build_context, "weights", second["released"]["weights_version"])
        assert weights(hades) == after
