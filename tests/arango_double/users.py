"""Users, passwords and what each user may do where."""

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.arango_double.errors import ServerError

LEVELS = ("none", "ro", "rw")


@dataclass
class User:
    """A user; `grants` maps database and collection ("" for the database itself) to a level."""

    name: str
    password: str
    active: bool = True
    grants: dict[tuple[str, str], str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        return {"user": self.name, "active": self.active, "extra": {}}

    def level(self, database: str, collection: str = "") -> str:
        """The right on a database or on a collection of it, which falls back to the database's."""
        for place in (database, "*"):
            for wanted in (collection, "*", "") if collection else ("",):
                if (place, wanted) in self.grants:
                    return self.grants[place, wanted]
        return "none"


class Users:
    """All users of a server; `root` may do everything."""

    def __init__(self, root_password: str) -> None:
        self.by_name = {
            "root": User("root", root_password, grants={("*", ""): "rw", ("*", "*"): "rw"})
        }

    def find(self, name: str) -> User:
        if name not in self.by_name:
            raise ServerError(1703)
        return self.by_name[name]

    def create(self, name: str, password: str) -> User:
        if name in self.by_name:
            raise ServerError(1702)
        self.by_name[name] = User(name, password)
        return self.by_name[name]

    def authenticate(self, header: str | None) -> User:
        """The user of an Authorization header; anything else is 401."""
        scheme, _, value = (header or "").partition(" ")
        if scheme.lower() == "basic":
            name, _, password = base64.b64decode(value).decode().partition(":")
            user = self.by_name.get(name)
            if user is not None and user.active and user.password == password:
                return user
        raise ServerError(11, "not authorized to execute this request", 401)


@dataclass(frozen=True)
class Access:
    """The rights of one request."""

    user: User

    def require_database(self, database: str, level: str = "ro") -> None:
        if LEVELS.index(self.user.level(database)) < LEVELS.index(level):
            raise ServerError(11, "forbidden: insufficient rights on the database")

    def require_read(self, database: str, collection: str) -> None:
        if self.user.level(database, collection) == "none":
            raise ServerError(11, f"forbidden: no access to collection '{collection}'")

    def require_write(self, database: str, collection: str) -> None:
        self.require_read(database, collection)
        if self.user.level(database, collection) == "ro":
            raise ServerError(
                1004,
                f"read only: collection '{collection}' is read-only for user '{self.user.name}'",
            )
