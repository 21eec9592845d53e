"""A novel of a thousand chapters, as its author's memory holds it: half a million tokens in all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hades.memory.history.edges import NewEdge
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from tests.unit.hades.memory.kept import Clock

QUESTION = "How would Sarah react if she saw the king right now?"
BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
CHAPTERS = 1_003
WITH_THE_KING = (1, 250, 400, 700, 850, 920, 985, 990, 995, 998, 1003)
_SCENE = (
    "In chapter {number} the caravan crossed the valley of {place} and a {trader} haggled over "
    "{goods} while the rain "
    "came down on the tents; old stories were told by the fire, the horses were fed, a letter from "
    "the coast was read "
    "twice, and before dawn the watch was changed and the road went on through {place} towards the "
    "next town. "
)
_PLACES = ("Ardel", "Brinn", "Corvane", "Dunmore", "Eskel", "Farrow", "Glim")
_TRADERS = ("merchant", "healer", "smith", "sailor", "miller")
_GOODS = ("salt", "wool", "lamp oil", "dried fish", "iron nails")


def write_novel(
    memory: Memory, clock: Clock, scenes: int = 6, met: Sequence[int] = WITH_THE_KING
) -> None:
    """Chapters, people, what they are to each other, and why."""
    clock.at = BEGAN
    memory.add_many(
        [
            *_people(),
            *(_chapter(number, scenes, number in met) for number in range(1, CHAPTERS + 1)),
        ]
    )
    memory.link_many(
        [
            NewEdge("character/sarah", "relationship/sarah_to_king", "relates_to"),
            NewEdge("relationship/sarah_to_king", "character/king", "relates_to"),
            NewEdge("character/sarah", "trait/sarah_fear_of_king", "has_trait", strength=0.9),
            NewEdge("character/sarah", "trait/sarah_desire_for_revenge", "has_trait", strength=0.8),
            NewEdge("trait/sarah_fear_of_king", "event/parents_murdered", "caused_by"),
            NewEdge("trait/sarah_desire_for_revenge", "event/kingdom_burned", "caused_by"),
            *(
                NewEdge(
                    "character/sarah",
                    _name(number),
                    "interacted_with",
                    valid_from=_day(number),
                    strength=0.7,
                    description="the king was there",
                )
                for number in met
            ),
            *(
                NewEdge(
                    "character/merchants", _name(number), "interacted_with", valid_from=_day(number)
                )
                for number in range(2, CHAPTERS, 5)
            ),
        ]
    )
    clock.at = _day(CHAPTERS + 1)


def _people() -> list[NewState]:
    said = {
        "character/sarah": "Sarah is a skilled warrior who is recovering from what was done to "
        "her.",
        "character/king": "The king rules from the northern keep.",
        "character/merchants": "Merchants travel with the caravan.",
        "relationship/sarah_to_king": "Sarah feels deep fear and hatred of the king.",
        "trait/sarah_fear_of_king": "High intensity: Sarah fears the king.",
        "trait/sarah_desire_for_revenge": "Medium intensity: Sarah wants revenge.",
        "event/parents_murdered": "Her parents were murdered by soldiers in the first winter.",
        "event/kingdom_burned": "The southern kingdom was burned to the ground.",
    }
    return [NewState(topic, content, valid_from=BEGAN) for topic, content in said.items()]


def _chapter(number: int, scenes: int, is_met: bool) -> NewState:
    scene = _SCENE.format(
        number=number,
        place=_PLACES[number % len(_PLACES)],
        trader=_TRADERS[number % len(_TRADERS)],
        goods=_GOODS[number % len(_GOODS)],
    )
    king = f"Chapter {number}: Sarah saw the king and fled. " if is_met else ""
    return NewState(_name(number), king + scene * scenes, valid_from=_day(number))


def _name(number: int) -> str:
    return f"chapter/{number:04d}"


def _day(number: int) -> datetime:
    return BEGAN + timedelta(days=number)
