"""Summaries of what changed in a day, a week, a month, as versions of topics
`summary/LEVEL/AREA/PERIOD`.

A topic's area is what stands before its first slash. A day is made of the versions that began to
hold in it, a week of its days, a month of its weeks. Each summary names what it was made of, so
that one can go back down to the originals; these stay where they are. A summary is written when its
period is over, and again when what it is made of is no longer what it names, or when it is damaged;
so late arrivals and erasures are repaired, and a second run writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain

from hades.memory.history.erase import erased_summary_topics
from hades.memory.history.rows import (
    LATEST,
    NEWEST,
    STATES,
    SUMMARIES,
    MemoryRefused,
    UnknownMemory,
    aware,
)
from hades.memory.history.states import NewState, by_keys, named
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from hades.text.sentences import sentences_of
from schemas.ids import sha256_text
from schemas.memory import MemoryState
from schemas.record import JsonObject

RAW, DAILY, WEEKLY, MONTHLY = range(4)
NAMES = {
    DAILY: "daily",
    WEEKLY: "weekly",
    MONTHLY: "monthly",
}
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
    """The period of a level that holds a moment. A week belongs to the month of its Thursday, as to
    its ISO year.
    """
    day = moment.astimezone(UTC).date()
    if level == DAILY:
        return Period(
            level,
            _midnight(day),
            _midnight(day + timedelta(days=1)),
        )

    monday = day - timedelta(days=day.weekday())
    if level == WEEKLY:
        return Period(
            level,
            _midnight(monday),
            _midnight(monday + _WEEK),
        )

    first = (monday + timedelta(days=3)).replace(day=1)
    months = (first, (first + timedelta(days=32)).replace(day=1))
    return Period(level, *(_midnight(_first_week(month)) for month in months))


def _first_week(first: date) -> date:
    """The Monday of the first week whose Thursday lies in the month that begins so."""
    return first + timedelta(days=(3 - first.weekday()) % 7 - 3)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


LINES = {
    1: 40,
    2: 60,
    3: 80,
}  # of a summary, by level
_LONGEST = 300  # characters of a line
_MAX_TOKENS = 800
PROMPT = """Summarise what changed in {area} during {period}, in plain sentences, using only the
lines below.
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
        if self.changes > 1:
            times = f" ({self.changes} changes)"
        else:
            times = ""

        return f"- {self.topic}: {self.said}{times}"


def summarise_period(
    area: str,
    period: Period,
    sources: Sequence[MemoryState],
    model: LanguageModel | None,
) -> tuple[str, JsonObject, float]:
    """What changed in a period, of versions for a day, of summaries for longer: the words, and how
    important it is.

    Between them stand the lines that the next level is made of, and how many changes they stand
    for.
    """
    if period.level == DAILY:
        lines = _lines_of_versions(sources)
        changes = len(sources)
    else:
        lines = _lines_of_summaries(sources)
        changes = sum(int(summary.metadata["changes"]) for summary in sources)

    lines.sort(key=lambda line: (-line.importance, -line.changes, line.topic))
    shown = lines[: LINES[period.level]]
    unit = "change" if changes == 1 else "changes"
    head = f"What changed in {area}, {period.name}: {changes} {unit}."
    texts = [line.text for line in shown]

    if len(lines) > len(shown):
        texts.append(f"- and {len(lines) - len(shown)} more topics")

    body = "\n".join(texts)
    written = ""
    if model is not None:
        prompt = PROMPT.format(
            area=area,
            period=period.name,
            lines=body,
        )
        written = model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip()

    importance = max((line.importance for line in lines), default=0.0)
    metadata = {
        "changes": changes,
        "lines": [asdict(line) for line in shown],
    }
    return f"{head}\n{written or body}", metadata, importance


def _lines_of_versions(states: Sequence[MemoryState]) -> list[Line]:
    """The last version of each topic says how the day ended."""
    versions_by_topic: dict[str, list[MemoryState]] = {}
    for state in sorted(states, key=lambda state: (state.topic, state.version)):
        versions_by_topic.setdefault(state.topic, []).append(state)

    lines = []
    for topic, versions in versions_by_topic.items():
        importance = max(version.importance_score for version in versions)
        lines.append(
            Line(
                topic,
                _new_sentences(versions),
                len(versions),
                importance,
            )
        )

    return lines


def _new_sentences(versions: Sequence[MemoryState]) -> str:
    """The first sentences of the last version that its forerunner of the same day did not hold."""
    *earlier, last = versions
    if earlier:
        known = set(sentences_of(earlier[-1].content))
    else:
        known = set()

    sentences = sentences_of(last.content)
    fresh = [sentence for sentence in sentences if sentence not in known] or sentences
    news = " ".join(" ".join(fresh).split())

    if len(news) <= _LONGEST:
        return news

    return f"{news[:_LONGEST].rsplit(' ', 1)[0]} ..."


def _lines_of_summaries(summaries: Sequence[MemoryState]) -> list[Line]:
    """Of each topic what was said last, and how often it changed in all."""
    lines: dict[str, Line] = {}
    for summary in sorted(summaries, key=lambda summary: summary.topic):
        for fields in summary.metadata["lines"]:
            line = Line(**fields)
            earlier = lines.get(line.topic)
            if earlier is not None:
                changes = line.changes + earlier.changes
                importance = max(line.importance, earlier.importance)
                line = replace(
                    line,
                    changes=changes,
                    importance=importance,
                )

            lines[line.topic] = line

    return list(lines.values())


GENERAL = "general"  # the area of topics without a slash
_RUN = 500  # summaries written in one transaction
Group = tuple[str, Period]
# Writes versions in one transaction and says why.
Writer = Callable[[list[NewState], str], list[MemoryState]]


def consolidate(
    store: RowStore,
    write: Writer,
    model: LanguageModel | None,
    level: int,
    as_of: datetime,
) -> list[JsonObject]:
    """Summaries of every period of a level, and of those below it, that was over at a moment; as
    known at that moment.

    The same moment gives the same rows, however often it is run. In the report of a level `written`
    are ids of versions, `damaged` topics whose summary was unreadable and is rebuilt where its
    sources exist; `erased` counts periods that stay without a summary because somebody erased it.
    `recorded_later` counts versions that began before the moment and do not count in the report of
    the days, because they were recorded at or after it.
    """
    if not DAILY <= level <= MONTHLY:
        raise MemoryRefused(f"there is no level {level}; 1 is daily, 2 weekly, 3 monthly")

    moment = aware("as_of", as_of)
    reports = []
    for step in range(DAILY, level + 1):
        reports.append(
            _consolidate_level(
                store,
                write,
                model,
                step,
                moment,
            )
        )

    return reports


def drill_down(
    rows: RowStore,
    summary: str,
    *,
    to_originals: bool = False,
) -> list[MemoryState]:
    """What a summary was made of, in order of time: summaries of the level below, or the
    originals.
    """
    state = named(rows, summary, NEWEST)
    if not state.is_consolidated:
        raise UnknownMemory(
            f"{summary!r} is not a summary; `hades memory search --level 1 QUESTION` finds some"
        )

    below = by_keys(rows, sorted(state.consolidated_from))
    while to_originals and any(state.is_consolidated for state in below):
        keys = chain.from_iterable(state.consolidated_from or (state.key,) for state in below)
        below = by_keys(rows, sorted(set(keys)))

    return sorted(
        below,
        key=lambda state: (state.valid_from or state.timestamp, state.topic, state.version),
    )


def summary_topic(area: str, period: Period) -> str:
    """The topic whose versions summarise a period of an area."""
    return f"{SUMMARIES}{NAMES[period.level]}/{area}/{period.name}"


def _consolidate_level(
    store: RowStore,
    write: Writer,
    model: LanguageModel | None,
    level: int,
    as_of: datetime,
) -> JsonObject:
    all_groups = _group_sources(store, level, as_of)
    erased = erased_summary_topics(store)
    summaries = _read_summaries(store, level)
    groups: dict[Group, list[str]] = {}

    stale: list[Group] = []
    for group, sources in all_groups.items():
        topic = summary_topic(*group)
        if sha256_text(topic) not in erased:
            groups[group] = sources
            stale += [group] if _is_stale(summaries.get(topic), sources, as_of) else []

    tokens = len(stale) * (_MAX_TOKENS + LINES[level] * _LONGEST // 3)
    if model is not None and model.allows(len(stale), tokens):
        writer = model
    else:
        writer = None

    written: list[str] = []
    why = f"{NAMES[level]} consolidation as of {as_of:%Y-%m-%d %H:%M}"
    for start in range(0, len(stale), _RUN):
        batch = stale[start : start + _RUN]
        new = [
            _draft_summary(
                store,
                writer,
                group,
                groups[group],
                as_of,
            )
            for group in batch
        ]
        written += [state.key for state in write(new, why)]

    damaged = sorted(topic for topic, summary in summaries.items() if _origin(summary) is None)
    if level == DAILY:
        recorded_later = _count_recorded_later(store, as_of)
    else:
        recorded_later = 0

    return {
        "level": level,
        "name": NAMES[level],
        "as_of": as_of.isoformat(),
        "periods": len(groups),
        "written": written,
        "unchanged": len(groups) - len(stale),
        "sources": sum(map(len, groups.values())),
        "damaged": damaged,
        "erased": len(all_groups) - len(groups),
        "recorded_later": recorded_later,
    }


def _group_sources(
    rows: RowStore,
    level: int,
    as_of: datetime,
) -> dict[Group, list[str]]:
    """The keys that each finished period of each area is made of, sorted; all of memory is read,
    without its texts.
    """
    if level == DAILY:
        sources = _version_sources(rows, as_of)
    else:
        sources = _summary_sources(rows, level)

    keys_by_group: dict[Group, list[str]] = {}
    for area, moment, key in sources:
        period = period_of(level, moment)
        if period.end <= as_of:
            keys_by_group.setdefault((area, period), []).append(key)

    return {group: sorted(keys_by_group[group]) for group in sorted(keys_by_group)}


def _version_sources(
    rows: RowStore,
    as_of: datetime,
) -> Iterator[tuple[str, datetime, str]]:
    """Area, beginning and key of every version that was said before a moment; erased ones have no
    beginning.
    """
    where = [
        Term("consolidation_level", "==", 0),
        Term("timestamp", "<", as_of),
        Term("valid_from", "not_null"),
        Term("retracted_at", "is_null"),
    ]
    for row in scan_rows(
        rows,
        STATES,
        where=where,
        columns=["topic", "valid_from"],
    ):
        area, slash, _ = row["topic"].partition("/")
        yield area if slash else GENERAL, row["valid_from"], row["_key"]


def _summary_sources(
    rows: RowStore,
    level: int,
) -> Iterator[tuple[str, datetime, str]]:
    """Area, beginning and key of every summary of the level below that is not damaged."""
    for summary in _read_summaries(rows, level - 1).values():
        origin = _origin(summary)
        if origin is not None:
            yield summary.metadata["area"], origin[0], summary.key


def _count_recorded_later(rows: RowStore, as_of: datetime) -> int:
    """Versions that began before a moment but were recorded at or after it."""
    where = [
        Term("consolidation_level", "==", 0),
        Term("timestamp", ">=", as_of),
        Term("valid_from", "<", as_of),
        Term("retracted_at", "is_null"),
    ]
    return sum(1 for _ in scan_values(rows, STATES, "_key", where=where))


def _read_summaries(rows: RowStore, level: int) -> dict[str, MemoryState]:
    """The newest version of each topic that is named like a summary of a level, by topic."""
    where = [
        Term(
            "topic",
            "starts_with",
            f"{SUMMARIES}{NAMES[level]}/",
        )
    ]
    keys = list(
        scan_values(
            rows,
            LATEST,
            "latest_state_id",
            where=where,
        )
    )
    return {state.topic: state for state in by_keys(rows, keys)}


def _origin(summary: MemoryState) -> tuple[datetime, datetime] | None:
    """Beginning of the period of a summary and the moment it was made as of; None where it is
    damaged.
    """
    metadata = summary.metadata
    try:
        start = datetime.fromisoformat(metadata["start"]).astimezone(UTC)
        as_of = datetime.fromisoformat(metadata["as_of"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError):
        return None

    has_lines = isinstance(metadata.get("lines"), list)
    if not (summary.is_consolidated and summary.consolidated_from and has_lines):
        return None

    return (start, as_of) if metadata.get("area") else None


def _is_stale(
    summary: MemoryState | None,
    sources: list[str],
    as_of: datetime,
) -> bool:
    """Whether a summary is missing, damaged or made of something else; one made as of a later
    moment knows more.
    """
    if summary is None:
        return True

    origin = _origin(summary)
    if origin is None:
        return True

    return sorted(summary.consolidated_from) != sources and origin[1] <= as_of


def _draft_summary(
    store: RowStore,
    model: LanguageModel | None,
    group: Group,
    sources: Sequence[str],
    as_of: datetime,
) -> NewState:
    area, period = group
    text, metadata, importance = summarise_period(
        area,
        period,
        by_keys(store, sources),
        model,
    )
    times = {
        "start": period.start,
        "end": period.end,
        "as_of": as_of,
    }
    times_in_text = {name: moment.isoformat() for name, moment in times.items()}
    return NewState(
        summary_topic(area, period),
        text,
        tags=("summary", NAMES[period.level]),
        metadata={
            "area": area,
            "period": period.name,
            **times_in_text,
            **metadata,
        },
        valid_from=period.start,
        importance=importance,
        consolidated_from=tuple(sources),
        consolidation_level=period.level,
    )
