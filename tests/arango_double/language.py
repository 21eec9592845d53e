"""Which AQL a server of a given version understands: functions and switches."""

from dataclasses import dataclass

from tests.arango_double.errors import aql_error
from tests.arango_double.functions import FUNCTIONS, Function

# Only inside SEARCH, next to a view, or where a vector index answers: name -> (minimum, maximum) arguments.
ANALYZER, SCORER, APPROXIMATE = "ANALYZER", "BM25", "APPROX_NEAR_COSINE"
SPECIAL_FUNCTIONS: dict[str, tuple[int, int]] = {ANALYZER: (2, 2), SCORER: (1, 3), APPROXIMATE: (2, 3)}


@dataclass(frozen=True, slots=True)
class Language:
    """The dialect of one server: its version, and whether vectors are on."""

    version: str = "3.12.8"
    vector_index: bool = False

    def at_least(self, *wanted: int) -> bool:
        """Whether the server's version is the wanted one or newer."""
        return tuple(int(part) for part in self.version.partition("-")[0].split(".")) >= wanted

    def check_call(self, name: str, count: int) -> None:
        """Refuse unknown functions (1540) and wrong argument counts (1541)."""
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

    @property
    def has_vector_functions(self) -> bool:
        return self.at_least(3, 12, 4) and (self.vector_index or self.at_least(4, 0))

    def _arity(self, name: str) -> tuple[int, int | None]:
        if name in FUNCTIONS:
            return FUNCTIONS[name].minimum, FUNCTIONS[name].maximum
        if name in SPECIAL_FUNCTIONS and (name != APPROXIMATE or self.has_vector_functions):
            return SPECIAL_FUNCTIONS[name]
        return aql_error(1540, f"usage of unknown function '{name}()'")
