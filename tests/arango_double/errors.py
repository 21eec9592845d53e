"""Server errors: an ArangoDB error number, its message and the HTTP status it travels with."""

from typing import NoReturn

_NUMBERS = {
    401: (401,),
    403: (11, 1004, 1230),
    404: (404, 1202, 1203, 1212, 1228, 1600, 1655, 1703, 1924),
    405: (405,),
    409: (1200, 1207, 1210, 1702, 1925),
    410: (1500, 1654),
    500: (4, 18, 28, 29, 32, 1429, 1457, 1554, 1568),
    501: (9,),
    503: (30, 38, 503, 1465, 1478, 1495, 1496, 21003, 21004),
}
_STATUS = {number: status for status, numbers in _NUMBERS.items() for number in numbers}
_TEXTS = {
    11: "forbidden",
    1200: "conflict",
    1202: "document not found",
    1203: "collection or view not found",
    1205: "illegal document identifier",
    1212: "index not found",
    1221: "illegal document key",
    1227: "invalid document type",
    1230: "operation only allowed in system database",
    1233: "edge attribute missing or invalid",
    1500: "query killed",
    1600: "cursor not found",
    1654: "transaction aborted",
    1702: "duplicate user",
    1703: "user not found",
}


class ServerError(Exception):
    """What the server answers with instead of a result."""

    def __init__(self, number: int, message: str | None = None, status: int | None = None) -> None:
        self.number = number
        self.message = message or _TEXTS.get(number, "error")
        self.status = status or http_status(number)
        super().__init__(f"{self.number}: {self.message}")

    def body(self) -> dict[str, object]:
        """The JSON error document of the HTTP protocol."""
        return {
            "error": True,
            "code": self.status,
            "errorNum": self.number,
            "errorMessage": self.message,
        }


class NotInDouble(ServerError):
    """A thing that a real server has and this double does not: loud, never guessed."""

    def __init__(self, what: str) -> None:
        super().__init__(9, f"the test double does not implement {what}")


def http_status(number: int) -> int:
    """The HTTP status of an error number; a mistake of the asker where no other is listed."""
    return _STATUS.get(number, 400)


def aql_error(number: int, text: str, phase: str = "parsing") -> NoReturn:
    """Raise an AQL error in the server's wording."""
    raise ServerError(number, f"AQL: {text} (while {phase})")


def check_names(what: str, given: object, known: set[str]) -> None:
    """Refuse what the double does not know; a server would ignore some of it."""
    unknown = set(given) - known if isinstance(given, (dict, set)) else {str(given)}
    if unknown:
        raise ServerError(10, f"the test double knows no {what} {', '.join(sorted(unknown))} here")
