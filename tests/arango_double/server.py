"""A loopback ArangoDB for tests: `with ArangoDouble() as double: ArangoClient(double.url) ...`."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from tests.arango_double.documents import Database
from tests.arango_double.faults import Faults, Sent
from tests.arango_double.http_server import Handler, Listener, TCPListener, UnixListener
from tests.arango_double.language import Language
from tests.arango_double.state import State
from tests.arango_double.users import Users


class ArangoDouble:
    """A server in this process; closed by `close()` or at the end of a `with` block.

    write_lock_seconds: how long a write waits for a key that another transaction holds before it conflicts.
    lock_seconds: how long anyone waits for an exclusively locked collection.
    transaction_size_limit: bytes that one stream transaction may write; by default 128 MiB up to 3.12.3, 512 MiB later.
    clock: what idle time of stream transactions is measured by.
    tells_options: whether GET /_admin/options answers; by default a server tells only whoever holds its JWT secret.
    view_commit_seconds: how stale a view may be without waitForSync; 0 means never.
    """

    def __init__(
        self,
        version: str = "3.12.8",
        vector_index: bool = False,
        root_password: str = "",
        port: int = 0,
        write_lock_seconds: float = 1.0,
        lock_seconds: float = 2.0,
        view_commit_seconds: float = 0.0,
        transaction_idle_seconds: float = 60.0,
        transaction_size_limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        tells_options: bool = False,
    ) -> None:
        self.state = State(
            Language(version, vector_index),
            Users(root_password),
            write_lock_seconds,
            lock_seconds,
            view_commit_seconds,
            transaction_idle_seconds,
            transaction_size_limit or default_limit(version),
            clock,
            tells_options,
        )
        listener = TCPListener(("127.0.0.1", port), Handler)
        listener.prepare(self.state)
        self.port = int(listener.server_address[1])
        self._listeners: list[Listener] = [listener]
        self._paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def databases(self) -> dict[str, Database]:
        """Databases by name, for looking straight at documents."""
        return self.state.databases

    @property
    def faults(self) -> Faults:
        return self.state.faults

    @property
    def requests(self) -> list[Sent]:
        """Every request that arrived, in order; clear it to count anew."""
        return self.state.requests

    def unix_socket(self, path: str | os.PathLike[str], mode: int = 0o600) -> str:
        """Listen on a socket file as well; returns its path."""
        name = os.fspath(path)
        listener = UnixListener(name, Handler)
        os.chmod(name, mode)
        listener.prepare(self.state)
        self._listeners.append(listener)
        self._paths.append(name)
        return name

    def expire_transactions(self) -> None:
        """Abort every running stream transaction, as the server does with idle ones."""
        self.state.transactions.expire()

    def restart(self) -> None:
        """Lose what a restart loses: running stream transactions and open cursors."""
        self.expire_transactions()
        self.state.cursors.clear()

    def close(self) -> None:
        for listener in self._listeners:
            listener.stop()
        for path in self._paths:
            if os.path.exists(path):
                os.unlink(path)
        self._listeners, self._paths = [], []

    def __enter__(self) -> "ArangoDouble":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_limit(version: str) -> int:
    """The size limit of stream transactions of a server that nobody configured."""
    later = tuple(int(part) for part in version.split(".")[:3]) >= (3, 12, 4)
    return (512 if later else 128) * 1024 * 1024


def main() -> None:
    """Serve by hand until interrupted."""
    parser = argparse.ArgumentParser(description="loopback ArangoDB test double")
    parser.add_argument("--port", type=int, default=8529)
    parser.add_argument("--version", default="3.12.8")
    parser.add_argument("--vector-index", action="store_true")
    parser.add_argument("--root-password", default="")
    parser.add_argument("--unix-socket")
    parser.add_argument("--transaction-size-limit", type=int)
    parser.add_argument("--cluster", action="store_true", help="answer as a coordinator")
    options = parser.parse_args()
    with ArangoDouble(
        options.version,
        options.vector_index,
        options.root_password,
        options.port,
        transaction_size_limit=options.transaction_size_limit,
    ) as double:
        double.state.role = "COORDINATOR" if options.cluster else "SINGLE"
        sys.stdout.write(f"{double.url}\n")
        if options.unix_socket:
            sys.stdout.write(double.unix_socket(options.unix_socket) + "\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
