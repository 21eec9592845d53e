"""Summaries of what changed in a day, a week, a month, as versions of topics `summary/LEVEL/AREA/PERIOD`.

A topic's area is what stands before its first slash. A day is made of the versions that began to hold in it, a week of
its days, a month of its weeks. Each summary names what it was made of, so that one can go back down to the originals;
these stay where they are. A summary is written when its period is over, and again when what it is made of is no longer
what it names, or when it is damaged; so late arrivals and erasures are repaired, and a second run writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from hades.memory.history.erase import erase_summaries
from hades.memory.history.rows import LATEST, NEWEST, STATES, SUMMARIES, MemoryRefused, UnknownMemory, aware
from hades.memory.history.states import NewState, by_keys, named
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from hades.text.sentences import sentences_of
from schemas.ids import sha256_text
from schemas.memory import MemoryState

RAW, DAILY, WEEKLY, MONTHLY = range(4)
NAMES = {DAILY: "daily", WEEKLY: "weekly", MONTHLY: "monthly"}
_WEEK = timedelta(days=7)


@dataclass(frozen=True, order=True)
class Period:
    """A day, an ISO week, or a month of whole weeks; in UTC, half-open."""

    level: int
    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """As in a summary's topic: 2024-03-05, 2024-W10 or 2024-03."""
        if self.level == DAILY:
            return f"{self.start:%Y-%m-%d}"
        if self.level == WEEKLY:
            year, week, _ = self.start.isocalendar()
            return f"{year}-W{week:02d}"
        return f"{self.start + timedelta(days=3):%Y-%m}"


def period_of(level: int, moment: datetime) -> Period:
    """The period of a level that holds a moment. A week belongs to the month of its Thursday, as to its ISO year."""
    day = moment.astimezone(UTC).date()
    if level == DAILY:
        return Period(level, _midnight(day), _midnight(day + timedelta(days=1)))
    monday = day - timedelta(days=day.weekday())
    if level == WEEKLY:
        return Period(level, _midnight(monday), _midnight(monday + _WEEK))
    first = (monday + timedelta(days=3)).replace(day=1)
    months = (first, (first + timedelta(days=32)).replace(day=1))
    return Period(level, *(_midnight(_first_week(month)) for month in months))


def _first_week(first: date) -> date:
    """The Monday of the first week whose Thursday lies in the month that begins so."""
    return first + timedelta(days=(3 - first.weekday()) % 7 - 3)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


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


def summarise_period(
    area: str, period: Period, sources: Sequence[MemoryState], model: LanguageModel | None
) -> tuple[str, dict[str, Any], float]:
    """What changed in a period, of versions for a day, of summaries for longer: the words, and how important it is.

    Between them stand the lines that the next level is made of, and how many changes they stand for.
    """
    if period.level == DAILY:
        lines, changes = _lines_of_versions(sources), len(sources)
    else:
        lines, changes = _lines_of_summaries(sources), sum(int(one.metadata["changes"]) for one in sources)
    lines.sort(key=lambda line: (-line.importance, -line.changes, line.topic))
    shown = lines[: LINES[period.level]]
    head = f"What changed in {area}, {period.name}: {changes} {'change' if changes == 1 else 'changes'}."
    more = [f"- and {len(lines) - len(shown)} more topics"] if len(lines) > len(shown) else []
    body = "\n".join([*(line.text for line in shown), *more])
    prompt = PROMPT.format(area=area, period=period.name, lines=body)
    written = model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip() if model is not None else ""
    importance = max((line.importance for line in lines), default=0.0)
    told = {"changes": changes, "lines": [asdict(line) for line in shown]}
    return f"{head}\n{written or body}", told, importance


def _lines_of_versions(states: Sequence[MemoryState]) -> list[Line]:
    """The last version of each topic says how the day ended."""
    ordered = sorted(states, key=lambda one: (one.topic, one.version))
    by_topic = ((topic, list(some)) for topic, some in groupby(ordered, key=lambda one: one.topic))
    return [
        Line(topic, _news(versions), len(versions), max(one.importance_score for one in versions))
        for topic, versions in by_topic
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


GENERAL = "general"  # the area of topics without a slash
_RUN = 500  # summaries written in one transaction
Group = tuple[str, Period]
Writer = Callable[[list[NewState], str], list[MemoryState]]  # versions and why they are written, in one transaction


def consolidate(
    store: RowStore, write: Writer, model: LanguageModel | None, level: int, as_of: datetime
) -> list[dict[str, Any]]:
    """Summaries of every period of a level, and of those below it, that was over at a moment; as known at that moment.

    The same moment gives the same rows, however often it is run. In the report of a level `written` are ids of
    versions, `damaged` topics whose summary was unreadable and is rebuilt where its sources exist; `erased` counts
    periods that stay without a summary because somebody erased it.
    """
    if not DAILY <= level <= MONTHLY:
        raise MemoryRefused(f"there is no level {level}; 1 is daily, 2 weekly, 3 monthly")
    moment = aware("as_of", as_of)
    return [_one_level(store, write, model, step, moment) for step in range(DAILY, level + 1)]


def drill_down(rows: RowStore, summary: str, *, to_originals: bool = False) -> list[MemoryState]:
    """What a summary was made of, in order of time: summaries of the level below, or the originals."""
    found = named(rows, summary, NEWEST)
    if not found.is_consolidated:
        raise UnknownMemory(f"{summary!r} is not a summary; `hades memory search --level 1 QUESTION` finds some")
    below = by_keys(rows, sorted(found.consolidated_from))
    while to_originals and any(state.is_consolidated for state in below):
        keys = {key for state in below for key in state.consolidated_from or (state.key,)}
        below = by_keys(rows, sorted(keys))
    return sorted(below, key=lambda state: (state.valid_from or state.timestamp, state.topic, state.version))


def summary_topic(area: str, period: Period) -> str:
    """The topic whose versions summarise a period of an area."""
    return f"{SUMMARIES}{NAMES[period.level]}/{area}/{period.name}"


def _one_level(
    store: RowStore, write: Writer, model: LanguageModel | None, level: int, as_of: datetime
) -> dict[str, Any]:
    every = _groups(store, level, as_of)
    erased = erase_summaries(store)
    groups = {group: keys for group, keys in every.items() if sha256_text(summary_topic(*group)) not in erased}
    standing = _summaries(store, level)
    stale = [
        group for group, sources in groups.items() if _is_stale(standing.get(summary_topic(*group)), sources, as_of)
    ]
    tokens = len(stale) * (_MAX_TOKENS + LINES[level] * _LONGEST // 3)
    writer = model if model is not None and model.allows(len(stale), tokens) else None
    written: list[str] = []
    why = f"{NAMES[level]} consolidation as of {as_of:%Y-%m-%d %H:%M}"
    for start in range(0, len(stale), _RUN):
        new = [_summary(store, writer, group, groups[group], as_of) for group in stale[start : start + _RUN]]
        written += [state.key for state in write(new, why)]
    return {
        "level": level,
        "name": NAMES[level],
        "as_of": as_of.isoformat(),
        "periods": len(groups),
        "written": written,
        "unchanged": len(groups) - len(stale),
        "sources": sum(len(keys) for keys in groups.values()),
        "damaged": sorted(topic for topic, summary in standing.items() if _origin(summary) is None),
        "erased": len(every) - len(groups),
    }


def _groups(rows: RowStore, level: int, as_of: datetime) -> dict[Group, list[str]]:
    """The keys that each finished period of each area is made of, sorted; all of memory is read, without its texts."""
    found: dict[Group, list[str]] = {}
    below = _summaries(rows, level - 1).values() if level > DAILY else ()
    origins = [(one, origin) for one in below if (origin := _origin(one)) is not None]  # those that can be read as one
    summaries = ((one.metadata["area"], origin[0], one.key) for one, origin in origins)
    for area, moment, key in _versions(rows, as_of) if level == DAILY else summaries:
        period = period_of(level, moment)
        if period.end <= as_of:
            found.setdefault((area, period), []).append(key)
    return {group: sorted(found[group]) for group in sorted(found)}


def _versions(rows: RowStore, as_of: datetime) -> Iterator[tuple[str, datetime, str]]:
    """Area, beginning and key of every version that was said before a moment; erased ones have no beginning."""
    where = [
        Term("consolidation_level", "==", 0),
        Term("timestamp", "<", as_of),
        Term("valid_from", "not_null"),
        Term("retracted_at", "is_null"),
    ]
    for row in scan_rows(rows, STATES, where=where, columns=["topic", "valid_from"]):
        area, slash, _ = row["topic"].partition("/")
        yield area if slash else GENERAL, row["valid_from"], row["_key"]


def _summaries(rows: RowStore, level: int) -> dict[str, MemoryState]:
    """The newest version of each topic that is named like a summary of a level, by topic."""
    where = [Term("topic", "starts_with", f"{SUMMARIES}{NAMES[level]}/")]
    keys = list(scan_values(rows, LATEST, "latest_state_id", where=where))
    return {state.topic: state for state in by_keys(rows, keys)}


def _origin(summary: MemoryState) -> tuple[datetime, datetime] | None:
    """Beginning of the period of a summary and the moment it was made as of; None where it is damaged."""
    told = summary.metadata
    try:
        start, as_of = (datetime.fromisoformat(told[name]).astimezone(UTC) for name in ("start", "as_of"))
    except (KeyError, TypeError, ValueError):
        return None
    is_sound = summary.is_consolidated and summary.consolidated_from and told.get("area")
    return (start, as_of) if is_sound and isinstance(told.get("lines"), list) else None


def _is_stale(summary: MemoryState | None, sources: list[str], as_of: datetime) -> bool:
    """Whether a summary is missing, damaged or made of something else; one made as of a later moment knows more."""
    origin = _origin(summary) if summary else None
    if summary is None or origin is None:
        return True
    return sorted(summary.consolidated_from) != sources and origin[1] <= as_of


def _summary(
    store: RowStore, model: LanguageModel | None, group: Group, sources: Sequence[str], as_of: datetime
) -> NewState:
    area, period = group
    text, told, importance = summarise_period(area, period, by_keys(store, sources), model)
    return NewState(
        summary_topic(area, period),
        text,
        tags=("summary", NAMES[period.level]),
        metadata={
            "area": area,
            "period": period.name,
            "start": period.start.isoformat(),
            "end": period.end.isoformat(),
            "as_of": as_of.isoformat(),
            **told,
        },
        valid_from=period.start,
        valid_until=None,
        importance=importance,
        consolidated_from=tuple(sources),
        consolidation_level=period.level,
    )
