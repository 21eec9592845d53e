"""Users, passwords, tokens and what each user may do where."""

import base64
import binascii
import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.arango_double.errors import ServerError

LEVELS = ("none", "ro", "rw")
_TOKEN_SECONDS = 3600


@dataclass(slots=True)
class User:
    """A user; `grants` maps database -> collection (or "" for the database itself) -> level."""

    name: str
    password: str
    active: bool = True
    extra: dict[str, Any] = field(default_factory=dict)
    grants: dict[str, dict[str, str]] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        return {"user": self.name, "active": self.active, "extra": self.extra}


class Users:
    """All users of a server; `root` may do everything."""

    def __init__(self, root_password: str) -> None:
        self.by_name = {"root": User("root", root_password, grants={"*": {"": "rw", "*": "rw"}})}
        self._secret = secrets.token_hex(32)

    def find(self, name: str) -> User:
        if name not in self.by_name:
            raise ServerError(1703)
        return self.by_name[name]

    def create(self, name: Any, password: Any, active: Any, extra: Any) -> User:
        if not isinstance(name, str) or not name:
            raise ServerError(1700, "invalid user name")
        if name in self.by_name:
            raise ServerError(1702)
        self.by_name[name] = User(name, password or "", active is not False, extra or {})
        return self.by_name[name]

    def authenticate(self, header: str | None) -> str:
        """The user of an Authorization header; anything else is 401."""
        scheme, _, value = (header or "").partition(" ")
        if scheme.lower() == "basic":
            try:
                name, _, password = base64.b64decode(value).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError) as error:
                raise unauthorised() from error
            if self._is_valid(name, password):
                return name
        raise unauthorised()

    def _is_valid(self, name: Any, password: Any) -> bool:
        user = self.by_name.get(name) if isinstance(name, str) else None
        return user is not None and user.active and user.password == password

    def grant(self, name: str, database: str, collection: str, level: Any) -> None:
        if level not in LEVELS:
            raise ServerError(10, f"invalid grant '{level}': expecting rw, ro or none")
        self.find(name).grants.setdefault(database, {})[collection] = level

    def database_level(self, name: str, database: str) -> str:
        grants = self.find(name).grants
        for place in (database, "*"):
            if "" in grants.get(place, {}):
                return grants[place][""]
        return "none"

    def collection_level(self, name: str, database: str, collection: str) -> str:
        grants = self.find(name).grants
        for place in (database, "*"):
            for wanted in (collection, "*"):
                if wanted in grants.get(place, {}):
                    return grants[place][wanted]
            if "" in grants.get(place, {}):
                return grants[place][""]
        return "none"


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of one request."""

    users: Users
    user: str

    def require_database(self, database: str, level: str = "ro") -> None:
        have = self.users.database_level(self.user, database)
        if LEVELS.index(have) < LEVELS.index(level):
            raise ServerError(11, "forbidden: insufficient rights on the database")

    def require_read(self, database: str, collection: str) -> None:
        if self.users.collection_level(self.user, database, collection) == "none":
            raise ServerError(11, f"forbidden: no access to collection '{collection}'")

    def require_write(self, database: str, collection: str) -> None:
        level = self.users.collection_level(self.user, database, collection)
        if level == "none":
            raise ServerError(11, f"forbidden: no access to collection '{collection}'")
        if level == "ro":
            raise ServerError(1004, f"read only: collection '{collection}' is read-only for user '{self.user}'")

    def require_admin(self) -> None:
        self.require_database("_system", "rw")


def unauthorised() -> ServerError:
    return ServerError(11, "not authorized to execute this request", 401)
