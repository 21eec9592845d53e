"""String functions of AQL."""

import base64
import hashlib
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from tests.arango_double.context import QueryContext
from tests.arango_double.registry import function, invalid_argument
from tests.arango_double.values import Value, compare, is_number, to_json, to_number, to_text, truthy


@function("CONCAT", 1, None)
def concat(_: QueryContext, *parts: Value) -> str:
    members = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    return "".join(to_text(member) for member in members if member is not None)


@function("CONCAT_SEPARATOR", 2, None)
def concat_separator(_: QueryContext, separator: Value, *parts: Value) -> str:
    members = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    return to_text(separator).join(to_text(member) for member in members if member is not None)


@function("CHAR_LENGTH", 1)
def char_length(_: QueryContext, value: Value) -> int:
    return len(to_text(value))


@function("LOWER", 1)
def lower(_: QueryContext, value: Value) -> str:
    return to_text(value).lower()


@function("UPPER", 1)
def upper(_: QueryContext, value: Value) -> str:
    return to_text(value).upper()


@function("SUBSTRING", 2, 3)
def substring(_: QueryContext, value: Value, offset: Value, length: Value = None) -> str:
    text, start = to_text(value), int(to_number(offset))
    if start < 0:
        start = max(0, len(text) + start)
    return text[start:] if length is None else text[start : start + max(0, int(to_number(length)))]


@function("LEFT", 2)
def left(_: QueryContext, value: Value, count: Value) -> str:
    return to_text(value)[: max(0, int(to_number(count)))]


@function("RIGHT", 2)
def right(_: QueryContext, value: Value, count: Value) -> str:
    size = max(0, int(to_number(count)))
    return to_text(value)[-size:] if size else ""


@function("CONTAINS", 2, 3)
def contains(_: QueryContext, value: Value, search: Value, as_index: Value = False) -> Value:
    needle = to_text(search)
    position = to_text(value).find(needle) if needle else -1
    return position if truthy(as_index) else position >= 0


@function("FIND_FIRST", 2, 4)
def find_first(_: QueryContext, value: Value, search: Value, start: Value = 0, end: Value = None) -> int:
    text = to_text(value)
    return text.find(to_text(search), int(to_number(start)), len(text) if end is None else int(to_number(end)) + 1)


@function("FIND_LAST", 2, 4)
def find_last(_: QueryContext, value: Value, search: Value, start: Value = 0, end: Value = None) -> int:
    text = to_text(value)
    return text.rfind(to_text(search), int(to_number(start)), len(text) if end is None else int(to_number(end)) + 1)


@function("TRIM", 1, 2)
def trim(_: QueryContext, value: Value, kind: Value = 0) -> str:
    text = to_text(value)
    if is_number(kind):
        return {1: text.lstrip, 2: text.rstrip}.get(int(kind), text.strip)(" \t\n\r")
    return text.strip(to_text(kind))


@function("LTRIM", 1, 2)
def ltrim(_: QueryContext, value: Value, characters: Value = " \t\n\r") -> str:
    return to_text(value).lstrip(to_text(characters))


@function("RTRIM", 1, 2)
def rtrim(_: QueryContext, value: Value, characters: Value = " \t\n\r") -> str:
    return to_text(value).rstrip(to_text(characters))


@function("SPLIT", 1, 3)
def split(context: QueryContext, value: Value, separator: Value = None, limit: Value = None) -> Value:
    text = to_text(value)
    most = -1 if limit is None else int(to_number(limit))
    if separator is None:
        parts = [text]
    else:
        separators = [to_text(member) for member in (separator if isinstance(separator, list) else [separator])]
        pattern = "|".join(re.escape(member) for member in separators)
        parts = list(text) if "" in separators else re.split(pattern, text)
    if limit is not None and most < 0:
        invalid_argument(context, "SPLIT")
        return None
    return parts if limit is None else parts[:most]


@function("SUBSTITUTE", 2, 4)
def substitute(context: QueryContext, value: Value, search: Value, *rest: Value) -> Value:
    text = to_text(value)
    if isinstance(search, dict):
        table, limit = {key: to_text(new) for key, new in search.items()}, rest[0] if rest else None
    else:
        limit = rest[1] if len(rest) > 1 else None
        olds = [to_text(old) for old in (search if isinstance(search, list) else [search])]
        new = rest[0] if rest else ""
        news = [to_text(member) for member in new] if isinstance(new, list) else [to_text(new)] * len(olds)
        table = {old: news[place] if place < len(news) else "" for place, old in enumerate(olds)}
    count = 0 if limit is None else int(to_number(limit))
    if count < 0 or "" in table:
        invalid_argument(context, "SUBSTITUTE")
        return None
    if not table or (limit is not None and count == 0):
        return text
    pattern = "|".join(re.escape(old) for old in sorted(table, key=len, reverse=True))
    return re.sub(pattern, lambda match: table[match.group()], text, count=count)


@function("LIKE", 2, 3)
def like(_: QueryContext, value: Value, pattern: Value, insensitive: Value = False) -> bool:
    return _like_pattern(to_text(pattern), truthy(insensitive)).fullmatch(to_text(value)) is not None


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str, insensitive: bool) -> re.Pattern[str]:
    source = ""
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern) and pattern[position + 1] in "%_\\":
            position += 1
            source += re.escape(pattern[position])
        else:
            source += {"%": ".*", "_": "."}.get(character, re.escape(character))
        position += 1
    return re.compile(source, re.DOTALL | (re.IGNORECASE if insensitive else 0))


def regex(context: QueryContext, name: str, pattern: Value, insensitive: Value) -> re.Pattern[str] | None:
    """A compiled pattern, or None with warning 1543 when it is not one."""
    try:
        return re.compile(to_text(pattern), re.IGNORECASE if truthy(insensitive) else 0)
    except re.error:
        context.warn(1543, f"in function '{name}()': invalid regex value")
        return None


@function("REGEX_TEST", 2, 3)
def regex_test(context: QueryContext, value: Value, pattern: Value, insensitive: Value = False) -> Value:
    compiled = regex(context, "REGEX_TEST", pattern, insensitive)
    return None if compiled is None else compiled.search(to_text(value)) is not None


@function("REGEX_MATCHES", 2, 3)
def regex_matches(context: QueryContext, value: Value, pattern: Value, insensitive: Value = False) -> Value:
    compiled = regex(context, "REGEX_MATCHES", pattern, insensitive)
    match = compiled.search(to_text(value)) if compiled is not None else None
    if match is None:
        return None
    return [match.group(), *((group if group is not None else "") for group in match.groups())]


@function("REGEX_REPLACE", 3, 4)
def regex_replace(
    context: QueryContext, value: Value, pattern: Value, replacement: Value, insensitive: Value = False
) -> Value:
    compiled = regex(context, "REGEX_REPLACE", pattern, insensitive)
    if compiled is None:
        return None
    return compiled.sub(re.sub(r"\$(\d)", r"\\\1", to_text(replacement)), to_text(value))


@function("STARTS_WITH", 2, 3)
def starts_with(context: QueryContext, value: Value, prefix: Value, least: Value = 1) -> Value:
    prefixes = prefix if isinstance(prefix, list) else [prefix]
    if not isinstance(value, str) or not all(isinstance(member, str) for member in prefixes):
        invalid_argument(context, "STARTS_WITH")
        return False
    return sum(value.startswith(member) for member in prefixes) >= to_number(least)


@function("IN_RANGE", 5)
def in_range(_: QueryContext, value: Value, low: Value, high: Value, with_low: Value, with_high: Value) -> bool:
    below, above = compare(value, low), compare(value, high)
    return (below > 0 or (below == 0 and truthy(with_low))) and (above < 0 or (above == 0 and truthy(with_high)))


@function("LEVENSHTEIN_DISTANCE", 2)
def levenshtein_distance(_: QueryContext, first: Value, second: Value) -> int:
    return edit_distance(to_text(first), to_text(second), False)


def edit_distance(first: str, second: str, transpositions: bool) -> int:
    """Levenshtein distance, or Damerau's when swapping neighbours counts as one."""
    previous2: list[int] = []
    previous = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        current = [i]
        for j, b in enumerate(second, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if transpositions and i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, previous2[j - 2] + 1)
            current.append(cost)
        previous2, previous = previous, current
    return previous[-1]


@function("TOKENS", 1, 2)
def tokens(context: QueryContext, value: Value, analyzer: Value = "text_en") -> Value:
    found = context.analyzer(to_text(analyzer))
    if isinstance(value, list):
        return [tokens(context, member, analyzer) for member in value]
    if not isinstance(value, str):
        invalid_argument(context, "TOKENS")
        return []
    return found.terms(value)


@function("REPEAT", 2, 3)
def repeat(_: QueryContext, value: Value, count: Value, separator: Value = "") -> str:
    return to_text(separator).join([to_text(value)] * max(0, int(to_number(count))))


@function("TO_CHAR", 1)
def to_char(_: QueryContext, code: Value) -> str:
    return chr(int(to_number(code)))


def _digest(name: str) -> None:
    @function(name, 1)
    def digest(_: QueryContext, value: Value) -> str:
        return hashlib.new(name.lower(), to_text(value).encode()).hexdigest()


for _name in ("MD5", "SHA1", "SHA256"):
    _digest(_name)


@function("HASH", 1)
def hash_value(_: QueryContext, value: Value) -> int:
    return int(hashlib.sha1(to_json(value).encode()).hexdigest()[:13], 16)


@function("TO_BASE64", 1)
def to_base64(_: QueryContext, value: Value) -> str:
    return base64.b64encode(to_text(value).encode()).decode()


@function("TO_HEX", 1)
def to_hex(_: QueryContext, value: Value) -> str:
    return to_text(value).encode().hex()


@function("ENCODE_URI_COMPONENT", 1)
def encode_uri_component(_: QueryContext, value: Any) -> str:
    return quote(to_text(value), safe="-_.!~*'()")
