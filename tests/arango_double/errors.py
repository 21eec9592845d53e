"""Server errors: an ArangoDB error number, its message and the HTTP status it travels with."""

from typing import NoReturn

_BAD = {
    10, 17, 600, 1204, 1205, 1208, 1213, 1214, 1216, 1218, 1220, 1221, 1222, 1226, 1227, 1229, 1232, 1233, 1235,
    1237, 1466, 1469, 1501, 1502, 1504, 1510, 1511, 1512, 1522, 1539, 1540, 1541, 1542, 1543, 1550, 1551, 1552, 1553,
    1561, 1562, 1563, 1569, 1572, 1573, 1575, 1578, 1579, 1580, 1581, 1651, 1652, 1653, 1700, 1901, 1906, 1920, 1921,
    1922, 1923, 1927, 1928, 1929, 1935, 1936, 1938, 1939, 1947,
}  # fmt: skip
_NOT_FOUND = {404, 1202, 1203, 1212, 1228, 1238, 1582, 1591, 1600, 1655, 1703, 1924, 1926, 1930, 1932}
_CONFLICT = {1200, 1207, 1210, 1601, 1702, 1925}
_BY_STATUS: dict[int, set[int]] = {
    400: _BAD,
    401: {401},
    403: {11, 1004, 1230},
    404: _NOT_FOUND,
    405: {405},
    409: _CONFLICT,
    410: {21, 1500, 1654},
    412: {412, 21004},
    501: {9, 31, 501, 1470},
    503: {30, 38, 503, 1465, 1478, 1495, 1496, 21003},
}

_TEXTS = {
    9: "not implemented",
    10: "bad parameter",
    11: "forbidden",
    18: "timeout waiting for a lock",
    28: "locked",
    29: "deadlock detected",
    32: "resource limit exceeded",
    600: "invalid JSON object",
    1004: "read only",
    1200: "conflict",
    1202: "document not found",
    1203: "collection or view not found",
    1205: "illegal document identifier",
    1207: "duplicate name",
    1208: "illegal name",
    1210: "unique constraint violated",
    1212: "index not found",
    1221: "illegal document key",
    1222: "unexpected document key",
    1226: "missing document key",
    1227: "invalid document type",
    1228: "database not found",
    1229: "database name invalid",
    1230: "operation only allowed in system database",
    1233: "edge attribute missing or invalid",
    1500: "query killed",
    1502: "query is empty",
    1504: "number out of range",
    1554: "failed vector search",
    1562: "division by zero",
    1563: "array expected",
    1577: "could not use forced index hint",
    1600: "cursor not found",
    1652: "unregistered collection used in transaction",
    1654: "transaction aborted",
    1655: "transaction not found",
    1702: "duplicate user",
    1703: "user not found",
    1924: "graph not found",
    1925: "graph already exists",
    1948: "negative edge weight not allowed",
}


class ServerError(Exception):
    """What the server answers with instead of a result."""

    def __init__(self, number: int, message: str | None = None, status: int | None = None) -> None:
        self.number = number
        self.message = message if message is not None else _TEXTS.get(number, "error")
        self.status = status if status is not None else http_status(number)
        super().__init__(f"{self.number}: {self.message}")

    def body(self) -> dict[str, object]:
        """The JSON error document of the HTTP protocol."""
        return {"error": True, "code": self.status, "errorNum": self.number, "errorMessage": self.message}


class NotInDouble(ServerError):
    """A thing that a real server has and this double does not: loud, never guessed."""

    def __init__(self, what: str) -> None:
        super().__init__(9, f"the test double does not implement {what}", 501)


def http_status(number: int) -> int:
    """HTTP status for an error number, after the server's own table; anything unlisted is 500."""
    for status, numbers in _BY_STATUS.items():
        if number in numbers:
            return status
    return 500


def aql_error(number: int, text: str, phase: str = "parsing") -> NoReturn:
    """Raise an AQL error in the server's wording."""
    raise ServerError(number, f"AQL: {text} (while {phase})")
