"""Date functions of AQL: dates are milliseconds or ISO 8601 text, always UTC."""

import re
from datetime import UTC, datetime, timedelta

from tests.arango_double.context import QueryContext
from tests.arango_double.registry import function
from tests.arango_double.values import Value, is_number, normal, to_number, to_text, truthy

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?)?(Z|[+-]\d{2}:?\d{2})?"
)
_MILLISECONDS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
    "month": 2_629_746_000,
    "year": 31_556_952_000,
}
_UNITS = {
    "y": "year", "m": "month", "w": "week", "d": "day", "h": "hour", "i": "minute", "s": "second", "f": "millisecond",
    **{name: name for name in _MILLISECONDS}, **{name + "s": name for name in _MILLISECONDS},
}  # fmt: skip
_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3}))?S)?)?"
)


@function("DATE_NOW", 0)
def date_now(context: QueryContext) -> int:
    return context.started_ms


@function("DATE_TIMESTAMP", 1, 7)
def date_timestamp(context: QueryContext, *parts: Value) -> Value:
    moment = _moment_of(context, "DATE_TIMESTAMP", parts)
    return None if moment is None else _milliseconds(moment)


@function("DATE_ISO8601", 1, 7)
def date_iso8601(context: QueryContext, *parts: Value) -> Value:
    moment = _moment_of(context, "DATE_ISO8601", parts)
    return None if moment is None else iso(moment)


@function("IS_DATESTRING", 1)
def is_datestring(_: QueryContext, value: Value) -> bool:
    return isinstance(value, str) and parse_date(value) is not None


def _part(name: str, attribute: str) -> None:
    @function(name, 1)
    def call(context: QueryContext, value: Value) -> Value:
        moment = _moment_of(context, name, (value,))
        return None if moment is None else getattr(moment, attribute)


for _name in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
    _part(f"DATE_{_name}", _name.lower())


@function("DATE_MILLISECOND", 1)
def date_millisecond(context: QueryContext, value: Value) -> Value:
    moment = _moment_of(context, "DATE_MILLISECOND", (value,))
    return None if moment is None else moment.microsecond // 1000


@function("DATE_DAYOFWEEK", 1)
def date_dayofweek(context: QueryContext, value: Value) -> Value:
    moment = _moment_of(context, "DATE_DAYOFWEEK", (value,))
    return None if moment is None else moment.isoweekday() % 7


@function("DATE_ADD", 2, 3)
def date_add(context: QueryContext, value: Value, amount: Value, unit: Value = None) -> Value:
    return _shift(context, "DATE_ADD", value, amount, unit, 1)


@function("DATE_SUBTRACT", 2, 3)
def date_subtract(context: QueryContext, value: Value, amount: Value, unit: Value = None) -> Value:
    return _shift(context, "DATE_SUBTRACT", value, amount, unit, -1)


@function("DATE_DIFF", 3, 4)
def date_diff(context: QueryContext, start: Value, end: Value, unit: Value, fraction: Value = False) -> Value:
    first, second = _moment_of(context, "DATE_DIFF", (start,)), _moment_of(context, "DATE_DIFF", (end,))
    name = _UNITS.get(to_text(unit).lower())
    if first is None or second is None or name is None:
        if name is None:
            _invalid(context, "DATE_DIFF")
        return None
    difference = (_milliseconds(second) - _milliseconds(first)) / _MILLISECONDS[name]
    return normal(difference if truthy(fraction) else int(difference))


@function("DATE_TRUNC", 2)
def date_trunc(context: QueryContext, value: Value, unit: Value) -> Value:
    moment = _moment_of(context, "DATE_TRUNC", (value,))
    name = _UNITS.get(to_text(unit).lower())
    order = ["year", "month", "day", "hour", "minute", "second", "millisecond"]
    if moment is None or name not in order:
        return None
    cut = order.index(name) + 1
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second]
    kept = [*parts[:cut], *[1, 1, 1, 0, 0, 0][cut:]]
    return iso(moment if name == "millisecond" else datetime(*kept, tzinfo=UTC))  # type: ignore[misc, arg-type]


def parse_date(text: str) -> datetime | None:
    """A date from ISO 8601 text, or None."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    moment += timedelta(milliseconds=int(((fraction or "") + "000")[:3]))
    if zone and zone != "Z":
        sign = -1 if zone[0] == "+" else 1
        moment += sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return moment


def iso(moment: datetime) -> str:
    """The server's text form, with milliseconds and Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _moment_of(context: QueryContext, name: str, parts: tuple[Value, ...]) -> datetime | None:
    moment: datetime | None = None
    try:
        if len(parts) == 1 and is_number(parts[0]):
            moment = _EPOCH + timedelta(milliseconds=int(parts[0]))
        elif len(parts) == 1 and isinstance(parts[0], str):
            moment = parse_date(parts[0])
        elif len(parts) >= 3:
            numbers = [int(to_number(part)) for part in parts]
            moment = datetime(*numbers[:6], tzinfo=UTC)  # type: ignore[misc, arg-type]
            moment += timedelta(milliseconds=numbers[6] if len(numbers) > 6 else 0)
    except (OverflowError, ValueError):
        moment = None
    if moment is None:
        _invalid(context, name)
    return moment


def _invalid(context: QueryContext, name: str) -> None:
    context.warn(1572, f"in function '{name}()': invalid date value")


def _shift(context: QueryContext, name: str, value: Value, amount: Value, unit: Value, sign: int) -> Value:
    moment = _moment_of(context, name, (value,))
    if moment is None:
        return None
    if unit is None:
        match = _DURATION.fullmatch(to_text(amount))
        if match is None or not any(match.groups()):
            _invalid(context, name)
            return None
        years, months, weeks, days, hours, minutes, seconds, fraction = (int(part or 0) for part in match.groups())
        months += years * 12
        delta = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=fraction)
        return iso(_add_months(moment, sign * months) + sign * delta)
    word = _UNITS.get(to_text(unit).lower())
    if word is None:
        _invalid(context, name)
        return None
    count = sign * to_number(amount)
    if word in ("year", "month"):
        return iso(_add_months(moment, int(count) * (12 if word == "year" else 1)))
    return iso(moment + timedelta(milliseconds=count * _MILLISECONDS[word]))


def _add_months(moment: datetime, months: int) -> datetime:
    """Calendar months; a day past the end of the month flows into the next one, as in the server."""
    index = moment.year * 12 + moment.month - 1 + months
    first = moment.replace(year=index // 12, month=index % 12 + 1, day=1)
    return first + timedelta(days=moment.day - 1)
