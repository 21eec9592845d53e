"""Which AQL a server of a given version understands: functions, aggregates and switches."""

from dataclasses import dataclass

from tests.arango_double import (
    functions_arrays,
    functions_dates,
    functions_documents,
    functions_misc,
    functions_numbers,
    functions_objects,
    functions_text,
    functions_vectors,
)
from tests.arango_double.errors import NotInDouble, aql_error
from tests.arango_double.registry import FUNCTIONS, Function

_MODULES = (
    functions_arrays,
    functions_dates,
    functions_documents,
    functions_misc,
    functions_numbers,
    functions_objects,
    functions_text,
    functions_vectors,
)

_AGGREGATES_TEXT = """
AVERAGE AVG BIT_AND BIT_OR BIT_XOR COUNT COUNT_DISTINCT COUNT_UNIQUE LENGTH MAX MIN SORTED_UNIQUE STDDEV
STDDEV_POPULATION STDDEV_SAMPLE SUM UNIQUE VARIANCE VARIANCE_POPULATION VARIANCE_SAMPLE
"""
AGGREGATES = frozenset(_AGGREGATES_TEXT.split())

# Only meaningful inside SEARCH or next to a view: name -> (minimum, maximum) arguments.
SEARCH_FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "PHRASE": (2, None), "EXISTS": (1, 3), "MIN_MATCH": (2, None), "BOOST": (2, 2), "ANALYZER": (2, 2),
    "NGRAM_MATCH": (2, 4), "LEVENSHTEIN_MATCH": (3, 6),
}  # fmt: skip
SCORERS: dict[str, tuple[int, int | None]] = {"BM25": (1, 3), "TFIDF": (1, 2)}
VECTOR_FUNCTIONS = {
    "APPROX_NEAR_COSINE": (3, 12, 4),
    "APPROX_NEAR_L2": (3, 12, 4),
    "APPROX_NEAR_INNER_PRODUCT": (3, 12, 6),
}

# A real server knows these; the double says so instead of pretending they do not exist.
_NOT_HERE_TEXT = """
IS_IPV4 SUBSTRING_BYTES REGEX_SPLIT IPV4_TO_NUMBER IPV4_FROM_NUMBER SHA512 CRC32 FNV64 SOUNDEX
NGRAM_SIMILARITY NGRAM_POSITIONAL_SIMILARITY MINHASH_MATCH UUID RANDOM_TOKEN BIT_NEGATE BIT_TEST BIT_POPCOUNT
BIT_SHIFT_LEFT BIT_SHIFT_RIGHT BIT_CONSTRUCT BIT_DECONSTRUCT BIT_TO_STRING BIT_FROM_STRING MINHASH_ERROR
MINHASH_COUNT MINHASH DECAY_GAUSS DECAY_EXP DECAY_LINEAR CALL APPLY DISTANCE IS_IN_POLYGON GEO_DISTANCE
GEO_CONTAINS GEO_INTERSECTS GEO_EQUALS GEO_AREA GEO_IN_RANGE GEO_POINT GEO_MULTIPOINT GEO_POLYGON
GEO_MULTIPOLYGON GEO_LINESTRING GEO_MULTILINESTRING DATE_DAYOFYEAR DATE_ISOWEEK DATE_ISOWEEKYEAR DATE_LEAPYEAR
DATE_QUARTER DATE_DAYS_IN_MONTH DATE_COMPARE DATE_FORMAT DATE_UTCTOLOCAL DATE_LOCALTOUTC DATE_TIMEZONE
DATE_TIMEZONES DATE_ROUND DECODE_REV SHARD_ID SCHEMA_GET SCHEMA_VALIDATE CHECK_DOCUMENT PREGEL_RESULT NEAR
WITHIN WITHIN_RECTANGLE FULLTEXT INTERLEAVE OFFSET_INFO ENTRIES
"""
_NOT_HERE = frozenset(_NOT_HERE_TEXT.split())


@dataclass(frozen=True, slots=True)
class Language:
    """The dialect of one server: its version, whether vectors are on, whether odd options are refused."""

    version: str = "3.12.8"
    vector_index: bool = False
    strict: bool = True

    def at_least(self, *wanted: int) -> bool:
        """Whether the server's version is the wanted one or newer."""
        return version_tuple(self.version) >= wanted

    def check_call(self, name: str, count: int) -> None:
        """Refuse unknown functions (1540) and wrong argument counts (1541)."""
        if "::" in name:
            raise NotInDouble(f"user-defined function {name}()")
        minimum, maximum = self._arity(name)
        if count < minimum or (maximum is not None and count > maximum):
            most = maximum if maximum is not None else 65536
            aql_error(
                1541,
                f"invalid number of arguments for function '{name}()', "
                f"expected number of arguments: minimum: {minimum}, maximum: {most}",
            )

    def function(self, name: str) -> Function:
        return FUNCTIONS[name]

    def is_aggregate(self, name: str) -> bool:
        return name in AGGREGATES or (name == "PUSH" and self.at_least(3, 12, 4))

    def has_vector_function(self, name: str) -> bool:
        since = VECTOR_FUNCTIONS.get(name)
        return since is not None and self.at_least(*since) and (self.vector_index or self.at_least(4, 0))

    def _arity(self, name: str) -> tuple[int, int | None]:
        if name in FUNCTIONS:
            return FUNCTIONS[name].minimum, FUNCTIONS[name].maximum
        for table in (SEARCH_FUNCTIONS, SCORERS):
            if name in table:
                return table[name]
        if self.has_vector_function(name):
            return 2, 3
        if name in _NOT_HERE:
            raise NotInDouble(f"{name}()")
        return aql_error(1540, f"usage of unknown function '{name}()'")


def version_tuple(version: str) -> tuple[int, ...]:
    """`3.12.4-1` -> (3, 12, 4)."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))
