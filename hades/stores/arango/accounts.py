"""Accounts with few rights, which provisioning makes: one that builds and one that only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from hades.stores.arango.client import ArangoSession
from hades.stores.arango.endpoints import Account

_EVERY_COLLECTION = "*"


def make_accounts(session: ArangoSession, accounts: Sequence[Account]) -> Iterator[str]:
    """Make the accounts that are missing, give each its password and its rights on this database; names of new ones."""
    wanted = [account for account in accounts if account.user != session.user]
    if not wanted:
        return
    system = session.system_database()
    listed = session.run("listing users", lambda: cast(list[Any], system.users()), again=True)
    held = {one["username"] for one in listed}
    for account in wanted:
        write = system.update_user if account.user in held else system.create_user
        session.run(
            f"making the user {account.user}",
            partial(write, account.user, password=account.password, active=True),
            again=False,
            writes=True,
        )
        for collection in (None, _EVERY_COLLECTION):  # a right on the database alone says nothing of its collections
            grant = partial(
                system.update_permission, account.user, account.right, session.database_name, collection=collection
            )
            session.run(f"granting {account.user} {account.right}", grant, again=True, writes=True)
        if account.user not in held:
            yield f"user {account.user} ({account.right} on {session.database_name})"
