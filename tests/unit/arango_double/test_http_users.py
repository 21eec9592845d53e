"""Who may do what: passwords, tokens, read-only users, no access."""

import pytest
from arango import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import (
    AQLQueryExecuteError,
    CollectionCreateError,
    CollectionListError,
    DocumentInsertError,
    JWTAuthError,
    ServerConnectionError,
)

from tests.arango_double.server import ArangoDouble
from tests.unit.arango_double.conftest import connect


@pytest.fixture
def system(double: ArangoDouble) -> StandardDatabase:
    found = ArangoClient(double.url).db("_system", username="root", password="secret")
    connect(double).create_collection("c").insert({"_key": "a"})
    found.create_user("reader", "pw")
    return found


def write_error(db: StandardDatabase) -> tuple[int, int]:
    with pytest.raises(AQLQueryExecuteError) as caught:
        db.aql.execute("INSERT {} INTO c")
    with pytest.raises(DocumentInsertError) as direct:
        db.collection("c").insert({})
    assert caught.value.error_code == direct.value.error_code
    return caught.value.error_code, caught.value.http_code


def test_a_read_only_user_reads_and_gets_1004_for_writes(double: ArangoDouble, system: StandardDatabase) -> None:
    system.update_permission("reader", "ro", "db")
    db = connect(double, "reader", "pw")
    assert list(db.aql.execute("FOR d IN c RETURN d._key")) == ["a"]
    assert write_error(db) == (1004, 403)
    with pytest.raises(CollectionCreateError) as caught:
        db.create_collection("new")
    assert (caught.value.error_code, caught.value.http_code) == (11, 403)


def test_rights_can_differ_by_collection(double: ArangoDouble, system: StandardDatabase) -> None:
    system.update_permission("reader", "rw", "db")
    system.update_permission("reader", "ro", "db", "c")
    db = connect(double, "reader", "pw")
    assert write_error(db) == (1004, 403)
    system.update_permission("reader", "none", "db", "c")
    assert write_error(db) == (11, 403)
    with pytest.raises(AQLQueryExecuteError) as caught:
        db.aql.execute("FOR d IN c RETURN d")
    assert caught.value.error_code == 11
    assert system.permission("reader", "db", "c") == "none"
    system.reset_permission("reader", "db", "c")
    db.collection("c").insert({})


def test_no_rights_on_the_database_is_403_and_no_password_401(double: ArangoDouble, system: StandardDatabase) -> None:
    with pytest.raises(CollectionListError) as caught:
        connect(double, "reader", "pw").collections()
    assert (caught.value.error_code, caught.value.http_code) == (11, 403)
    with pytest.raises(CollectionListError) as caught:
        connect(double, "reader", "wrong").collections()
    assert (caught.value.error_code, caught.value.http_code) == (11, 401)
    with pytest.raises(ServerConnectionError):
        connect(double, "nobody", "x", verify=True)


def test_tokens_work_and_bad_passwords_get_none(double: ArangoDouble, system: StandardDatabase) -> None:
    db = connect(double, auth_method="jwt")
    assert db.collection("c").has("a")
    with pytest.raises(JWTAuthError):
        connect(double, "root", "wrong", auth_method="jwt")


def test_traversals_need_rights_on_what_they_reach(double: ArangoDouble, system: StandardDatabase) -> None:
    admin = connect(double)
    admin.create_collection("hidden").insert({"_key": "h"})
    admin.create_collection("e", edge=True).insert({"_from": "c/a", "_to": "hidden/h"})
    system.update_permission("reader", "ro", "db")
    system.update_permission("reader", "none", "db", "hidden")
    with pytest.raises(AQLQueryExecuteError) as caught:
        connect(double, "reader", "pw").aql.execute("FOR v IN 1 OUTBOUND 'c/a' e RETURN v")
    assert caught.value.error_code == 11


def test_users_are_managed_from_the_system_database(system: StandardDatabase) -> None:
    assert system.has_user("reader")
    system.update_user("reader", active=False)
    assert system.user("reader")["active"] is False
    assert system.delete_user("reader")
    assert not system.has_user("reader")


def test_inactive_users_are_shut_out(double: ArangoDouble, system: StandardDatabase) -> None:
    system.update_permission("reader", "rw", "db")
    system.update_user("reader", active=False)
    with pytest.raises(CollectionListError) as caught:
        connect(double, "reader", "pw").collections()
    assert caught.value.http_code == 401
