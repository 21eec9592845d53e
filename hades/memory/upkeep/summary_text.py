"""The words of a summary: one line a topic, picked from what was said; or written by a language model from the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hades.memory.upkeep.periods import DAILY, Period
from hades.ports.text import LanguageModel
from hades.text.keywords import sentences_of
from schemas.memory import MemoryState

LINES = {1: 40, 2: 60, 3: 80}  # of a summary, by level
_LONGEST = 300  # characters of a line
_MAX_TOKENS = 800

PROMPT = """Summarise what changed in {area} during {period}, in plain sentences, using only the lines below.
Keep names, numbers and reasons.
{lines}
Summary:"""


@dataclass(frozen=True)
class Line:
    """What a summary says of a topic."""

    topic: str
    said: str
    changes: int
    importance: float

    @property
    def text(self) -> str:
        """As it stands in the summary."""
        times = f" ({self.changes} changes)" if self.changes > 1 else ""
        return f"- {self.topic}: {self.said}{times}"


@dataclass(frozen=True)
class Digest:
    """A summary's words, the lines that the next level is made of, and how many changes they stand for."""

    text: str
    lines: list[dict[str, Any]]
    changes: int
    importance: float


def digest_of(area: str, period: Period, sources: Sequence[MemoryState], model: LanguageModel | None) -> Digest:
    """What changed in a period: of versions for a day, of summaries for longer."""
    if period.level == DAILY:
        lines, changes = _lines_of_versions(sources), len(sources)
    else:
        lines, changes = _lines_of_summaries(sources), sum(int(one.metadata["changes"]) for one in sources)
    lines.sort(key=lambda line: (-line.importance, -line.changes, line.topic))
    shown = lines[: LINES[period.level]]
    head = f"What changed in {area}, {period.name}: {changes} {'change' if changes == 1 else 'changes'}."
    more = [f"- and {len(lines) - len(shown)} more topics"] if len(lines) > len(shown) else []
    body = "\n".join([*(line.text for line in shown), *more])
    written = _write(area, period, body, model) if model is not None else ""
    importance = max((line.importance for line in lines), default=0.0)
    return Digest(f"{head}\n{written or body}", [asdict(line) for line in shown], changes, importance)


def _write(area: str, period: Period, lines: str, model: LanguageModel) -> str:
    prompt = PROMPT.format(area=area, period=period.name, lines=lines)
    return model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip()


def _lines_of_versions(states: Sequence[MemoryState]) -> list[Line]:
    """The last version of each topic says how the day ended."""
    by_topic: dict[str, list[MemoryState]] = {}
    for state in sorted(states, key=lambda one: (one.topic, one.version)):
        by_topic.setdefault(state.topic, []).append(state)
    return [
        Line(topic, _news(versions), len(versions), max(one.importance_score for one in versions))
        for topic, versions in by_topic.items()
    ]


def _news(versions: Sequence[MemoryState]) -> str:
    """The first sentences of the last version that its forerunner of the same day did not hold."""
    *before, last = versions
    known = set(sentences_of(before[-1].content)) if before else set()
    sentences = sentences_of(last.content)
    fresh = [sentence for sentence in sentences if sentence not in known] or sentences
    said = " ".join(" ".join(fresh).split())
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST].rsplit(' ', 1)[0]} ..."


def _lines_of_summaries(summaries: Sequence[MemoryState]) -> list[Line]:
    """Of each topic what was said last, and how often it changed in all."""
    lines: dict[str, Line] = {}
    for summary in sorted(summaries, key=lambda one: one.topic):
        for told in summary.metadata["lines"]:
            line = Line(**told)
            earlier = lines.get(line.topic)
            if earlier is not None:
                changes, importance = line.changes + earlier.changes, max(line.importance, earlier.importance)
                line = replace(line, changes=changes, importance=importance)
            lines[line.topic] = line
    return list(lines.values())
