"""Sockets have their rights from the first moment, take over from the dead and never from the
living.
"""

import os
import stat
import threading

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import (
    LOOPBACK,
    CannotListen,
    hand_over,
    tcp_door,
    tcp_socket,
    unix_socket,
)


@pytest.mark.parametrize(
    ("mode", "rights"), [(Mode.READ_ONLY, 0o660), (Mode.READ_WRITE, 0o600), (Mode.ADMIN, 0o600)]
)
def test_rights_follow_the_mode_whatever_the_umask(tmp_path, mode, rights):
    before = os.umask(0o000)
    try:
        with unix_socket(tmp_path / "s", mode):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == rights
        assert os.umask(0o000) == 0o000
    finally:
        os.umask(before)


def test_rights_are_never_wider_while_the_socket_is_made(tmp_path):
    seen, stop = set(), threading.Event()

    def watch():
        while True:
            last = stop.is_set()
            for path in tmp_path.iterdir():
                seen.add(stat.S_IMODE(path.lstat().st_mode))
            if last:
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(100):
        unix_socket(tmp_path / str(number), Mode.READ_WRITE).close()
    stop.set()
    watcher.join()
    assert seen == {0o600}


def test_a_socket_left_by_a_dead_service_is_replaced(tmp_path):
    unix_socket(tmp_path / "s", Mode.READ_ONLY).close()
    with unix_socket(tmp_path / "s", Mode.READ_ONLY) as listening:
        assert listening.getsockname() == str(tmp_path / "s")


def test_a_living_service_and_a_file_are_left_alone(tmp_path):
    with (
        unix_socket(tmp_path / "s", Mode.READ_ONLY),
        pytest.raises(CannotListen, match="listens on"),
    ):
        unix_socket(tmp_path / "s", Mode.READ_ONLY)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(CannotListen, match="is not a socket"):
        unix_socket(tmp_path / "file", Mode.READ_ONLY)
    assert (tmp_path / "file").read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CannotListen, match="make its folder"):
        unix_socket(tmp_path / "no" / "s", Mode.READ_ONLY)


def test_a_taken_port_is_named():
    with (
        tcp_socket("127.0.0.1", 0) as taken,
        pytest.raises(CannotListen, match="choose another port"),
    ):
        tcp_socket("127.0.0.1", taken.getsockname()[1])


def test_no_token_means_this_machine_only():
    assert tcp_door(Mode.READ_ONLY, "127.0.0.1", needs_token=False).hosts == LOOPBACK
    assert tcp_door(Mode.READ_ONLY, "0.0.0.0", needs_token=True).hosts is None
    with pytest.raises(CannotListen, match="callers need tokens"):
        tcp_door(Mode.READ_ONLY, "0.0.0.0", needs_token=False)


def test_a_socket_that_systemd_opened_is_taken_over_unless_its_rights_are_too_wide(tmp_path):
    """Run in a child, where the socket can stand at file number 3 as systemd puts it."""
    path = tmp_path / "s"
    with unix_socket(path, Mode.READ_ONLY) as listening:
        child = os.fork()
        if child == 0:
            os.dup2(listening.fileno(), 3)
            env = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
            given = hand_over(path, Mode.READ_ONLY, env)
            right = given is not None and given.getsockname() == str(path)
            right = right and hand_over(tmp_path / "other", Mode.READ_ONLY, env) is None
            try:
                hand_over(path, Mode.READ_WRITE, env)
                right = False
            except CannotListen:
                pass
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert hand_over(path, Mode.READ_ONLY, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}) is None
