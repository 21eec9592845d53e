"""A question that the warm process of a home answers is answered as by a process of its own, and
whatever is wrong with the warm process costs no answer.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

from hades.settings.load import load_settings
from hades.surfaces.cli.start import SOCKET
from hades.surfaces.cli.warm import keep_warm
from tests.patience import HANG_SECONDS, wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="a warm process needs Linux"),
]
ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Who signs the quokka rota?"
PAGES = {
    "rota.md": "# Rota\n\nThe quokka rota is signed by Ermintrude in Hobart.\n",
    "pools.md": "# Pools\n\nA pool limits how many tasks run at once. See [Rota](rota.md).\n",
}
ONLY_WARM = """
import sys
from hades.surfaces.cli.start import ask_warm_process
status = ask_warm_process(sys.argv[1:])
sys.exit(99 if status is None else status)
"""
WITHOUT = 99  # the exit status of `ask_warm` where no warm process answered


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a home; a package beside it stands for a library that may be installed anew."""
    home = tmp_path_factory.mktemp("place")
    (home / "sitecustomize.py").write_text("")
    return {
        **os.environ,
        "HADES_HOME": str(home / "home"),
        "HADES_EMBEDDER": "hashing",
        "HADES_WARM": "1",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{home}",
    }


@pytest.fixture(scope="module")
def folder(environment: dict[str, str]) -> Path:
    pages = Path(environment["HADES_HOME"]).parent / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    return pages


@pytest.fixture(scope="module")
def watch(environment: dict[str, str], folder: Path) -> Iterator[ExitStack]:
    """A `hades watch` with its warm process, which a test may end."""
    home = Path(environment["HADES_HOME"])
    with ExitStack() as stack:
        wait_for_line(stack.enter_context(watching(folder, environment)), "updated in")
        wait_until((home / SOCKET).exists)
        wait_until(lambda: ask_warm(environment, "query", QUESTION).returncode != WITHOUT)
        yield stack


@pytest.fixture(scope="module")
def home(environment: dict[str, str], watch: ExitStack) -> Path:
    """A home that `hades watch` keeps up to date, with its warm process."""
    return Path(environment["HADES_HOME"])


def hear_interrupts() -> None:
    """A shell that starts the tests in the background has its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def watching(folder: Path, environment: dict[str, str]) -> Iterator[Any]:
    command = [sys.executable, "-m", "hades.surfaces.cli.start", "watch", str(folder)]
    process = subprocess.Popen(
        [*command, "--quiet-seconds", "0.2"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509
    )
    try:
        yield process.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)


def wait_for_line(lines: Any, wanted: str) -> str:
    for line in lines:
        if wanted in line:
            return line
    raise AssertionError(f"hades watch ended without a line {wanted!r}")


def run(program: list[str], environment: dict[str, str], *words: str, **options: Any) -> Any:
    command = [sys.executable, *program, *words]
    return subprocess.run(
        command, env=environment, capture_output=True, timeout=HANG_SECONDS, check=False, **options
    )


def ask_warm(environment: dict[str, str], *words: str, **options: Any) -> Any:
    """The command by the warm process alone; status `WITHOUT` where it does not answer."""
    return run(["-c", ONLY_WARM], environment, *words, **options)


def ask(environment: dict[str, str], *words: str) -> Any:
    """The command as the console script runs it."""
    return run(["-m", "hades.surfaces.cli.start"], environment, *words)


def ask_alone(programs: Path, environment: dict[str, str], *words: str) -> Any:
    """The command by a process that asks no warm one."""
    command = [str(programs / "hades"), *words]
    return subprocess.run(
        command, env=environment, capture_output=True, timeout=HANG_SECONDS, check=False
    )


def without_moments(text: bytes) -> str:
    """What was printed without ids of questions and milliseconds, the only things that differ
    between two answers of one process, and what loading took, which the warm process did before.
    """
    plain = re.sub(r"q_[0-9a-f]+", "q_", text.decode())
    plain = re.sub(r'"(\w*ms|latency_stage|T|C)": [^,\n}]+', r'"\1": 0', plain)
    plain = re.sub(r"; loading took [\d,.]+ ms more", "", plain)
    plain = re.sub(r"[\d,]+\.\d\b", "0", plain)  # in text and in columns
    return re.sub(r" +", " ", plain)


COMMANDS = [
    ("answer", QUESTION),
    ("answer", QUESTION, "--json"),
    ("query", QUESTION),
    ("query", QUESTION, "--json"),
    ("query", QUESTION, "--format", "prompt"),
    ("query", "", "--json"),
    ("explain", "q_0000"),
    ("answer", "--help"),
    ("query", "--no-such-option"),
    ("query", QUESTION, "--domain", "nowhere"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_is_printed_is_the_same_with_and_without_the_warm_process(
    words, home, environment, programs
):
    warm = ask_warm(environment, *words)
    cold = ask_alone(programs, environment, *words)
    assert warm.returncode == cold.returncode != WITHOUT
    assert without_moments(warm.stdout) == without_moments(cold.stdout)
    assert without_moments(warm.stderr) == without_moments(cold.stderr)


def test_an_answer_of_the_warm_process_can_be_explained_by_either(home, environment, programs):
    query_id = json.loads(ask_warm(environment, "query", QUESTION, "--json").stdout)["query_id"]
    warm = ask_warm(environment, "explain", query_id)
    cold = ask_alone(programs, environment, "explain", query_id)
    assert warm.returncode == cold.returncode == 0
    assert without_moments(warm.stdout) == without_moments(cold.stdout)


def test_a_terminal_gets_the_same_width_and_colours(home, environment, programs):
    warm = on_terminal([sys.executable, "-c", ONLY_WARM, "answer", QUESTION], environment)
    cold = on_terminal([str(programs / "hades"), "answer", QUESTION], environment)
    assert without_moments(warm) == without_moments(cold)
    assert b"\x1b[" in warm


def on_terminal(command: list[str], environment: dict[str, str]) -> bytes:
    """What a command prints on a terminal of 61 columns."""
    mine, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, 61, 0, 0))
    process = subprocess.Popen(
        command,
        env={**environment, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(mine, 65536)
        except OSError:  # the other side was closed
            break
    os.close(mine)
    assert process.wait(timeout=HANG_SECONDS) == 0
    return text


def test_a_relative_home_from_another_folder_is_the_same_home(home, environment):
    relative = {**environment, "HADES_HOME": home.name}
    assert ask_warm(relative, "answer", QUESTION, cwd=home.parent).returncode == 0


def test_questions_at_once_do_not_mix(home, environment):
    answers: list[Any] = []
    texts = [f"{QUESTION} {number}" for number in range(6)]

    def question(text: str) -> None:
        answers.append((text, ask_warm(environment, "query", text, "--json")))

    threads = [threading.Thread(target=question, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(text for text, _ in answers) == texts
    for text, answer in answers:
        assert json.loads(answer.stdout)["query"] == text


@pytest.mark.parametrize(
    "other",
    [
        {"HADES_LOG_LEVEL": "error"},
        {"HADES_EMBEDDER": "minilm"},
        {"PYTHONOPTIMIZE": "1"},
        {"HADES_WARM": "0"},
        {"HADES_TENANT": "team"},
    ],
    ids=str,
)
def test_other_settings_and_another_python_are_not_answered(other, home, environment):
    assert ask_warm({**environment, **other}, "answer", QUESTION).returncode == WITHOUT


def test_commands_that_write_are_not_asked_of_it(home, environment):
    assert ask_warm(environment, "memory", "remember", "a note").returncode == WITHOUT


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_another_user_is_not_answered(home, environment):
    closed = [place for place in home.parents if place.stat().st_mode & 0o777 == 0o700]
    modes = [(place, place.stat().st_mode) for place in [home, *closed, home / SOCKET]]
    assert (home / SOCKET).stat().st_mode & 0o777 == 0o600
    try:
        for place, _ in modes:
            place.chmod(0o777)
        probe = (
            "import socket, sys; talk = socket.socket(socket.AF_UNIX); talk.connect(sys.argv[1]); "
            "socket.send_fds(talk, [b'.'], [0, 1, 2]); sys.exit(len(talk.recv(1)))"
        )
        command = ["/usr/bin/python3", "-c", probe, str(home / SOCKET)]
        done = subprocess.run(command, user=65534, capture_output=True, check=False, timeout=60)
    finally:
        for place, mode in modes:
            place.chmod(mode)
    refused = done.returncode == 0 or b"ConnectionResetError" in done.stderr
    refused = refused or b"BrokenPipeError" in done.stderr
    assert refused, done.stderr


def test_a_page_that_is_saved_is_in_the_next_answers(folder, home, environment):
    (folder / "gate.md").write_text("# Gate\n\nThe east gate is opened by Balthazar at dawn.\n")

    def is_known() -> bool:
        answer = ask_warm(environment, "answer", "Who opens the east gate?", "--json")
        return answer.returncode == 0 and b"Balthazar" in answer.stdout

    wait_until(is_known)


def test_code_that_was_installed_meanwhile_is_not_answered_by_the_old(home, environment):
    """From here on the warm process answers nothing more."""
    module = home.parent / "sitecustomize.py"
    module.write_text("IS_NEW = True\n")
    os.utime(module, ns=(time.time_ns(), time.time_ns() + 1))
    assert ask_warm(environment, "answer", QUESTION).returncode == WITHOUT
    assert ask(environment, "answer", QUESTION).returncode == 0


def test_the_socket_goes_with_its_watch(home, watch):
    """Stands after every test of the watched home."""
    assert (home / SOCKET).exists()
    watch.close()
    assert not (home / SOCKET).exists()


def test_a_home_whose_path_is_too_long_for_a_socket_has_no_warm_process(tmp_path):
    settings = load_settings({"HADES_HOME": str(tmp_path / ("long" * 25))})
    with keep_warm(settings):
        assert subprocess.run(
            ["pgrep", "-P", str(os.getpid()), "-f", "serve_warm"], check=False
        ).returncode


@contextmanager
def listening_at(place: Path, reply: bytes | None) -> Iterator[None]:
    """A process that is in the place of a warm one, sends this, and ends the conversation; with
    None it never says anything.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()

        def converse() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while b"\n" not in connection.recv(65536):
                        pass
                    if reply is None:
                        connection.recv(1)
                        continue
                    connection.sendall(reply)

        threading.Thread(target=converse, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    place.unlink()


@pytest.fixture(scope="module")
def built_home(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> dict[str, str]:
    """The variables of a home that nobody watches."""
    place = tmp_path_factory.mktemp("alone")
    (place / "pages").mkdir()
    (place / "pages" / "rota.md").write_text(PAGES["rota.md"])
    variables = {"HADES_HOME": str(place / "h"), "HADES_EMBEDDER": "hashing", "HADES_WARM": "1"}
    environment = {**os.environ, **variables}
    assert ask_alone(programs, environment, "watch", str(place / "pages"), "--once").returncode == 0
    return environment


@pytest.mark.parametrize("reply", [b"", b"+", b"-", b'+{"status": 0, "outp', None], ids=repr)
def test_a_warm_process_that_dies_or_says_nothing_is_left_alone(reply, tmp_path):
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "HADES_HOME": str(tmp_path / "home"), "HADES_WARM": "1"}
    with listening_at(tmp_path / "home" / SOCKET, reply):
        done = ask_warm(environment, "answer", QUESTION)
    assert (done.returncode, done.stdout, done.stderr) == (WITHOUT, b"", b"")


def test_a_warm_process_that_dies_costs_no_answer(built_home):
    with listening_at(Path(built_home["HADES_HOME"]) / SOCKET, b"+"):
        answer = ask(built_home, "answer", QUESTION)
    assert answer.returncode == 0
    assert answer.stdout.count(b"Ermintrude in Hobart") == 1
    assert answer.stderr == b""


def test_a_socket_that_a_dead_process_left_is_left_alone(tmp_path):
    environment = {**os.environ, "HADES_HOME": str(tmp_path), "HADES_WARM": "1"}
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / SOCKET))
    assert ask_warm(environment, "answer", QUESTION).returncode == WITHOUT


def test_control_c_ends_a_question_that_the_warm_process_answers(tmp_path):
    environment = {**os.environ, "HADES_HOME": str(tmp_path), "HADES_WARM": "1"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()
        command = [sys.executable, "-m", "hades.surfaces.cli.start", "answer", QUESTION]
        process = subprocess.Popen(
            command,
            env=environment,
            stderr=subprocess.PIPE,
            preexec_fn=hear_interrupts,  # noqa: PLW1509
        )
        connection, _ = listener.accept()
        with connection:
            while b"\n" not in connection.recv(65536):
                pass
            connection.sendall(b"+")
            process.send_signal(signal.SIGINT)
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""  # its copy ends with it
        _, errors = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert errors == b""


def test_the_variable_is_a_setting():
    assert not load_settings({"HADES_WARM": "0"}).warm
    assert load_settings({}).warm
