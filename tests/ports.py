"""A port for a server that must be told its port before it starts."""

import socket


def free_port() -> int:
    """A loopback port that the system gives to nobody else for a minute, because a connection
    through it just ended.

    A server may listen on it all the same, as servers set SO_REUSEADDR. A port that was only bound
    and closed could be taken by the next connection of any process before the server binds it.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            accepted.close()  # the end that closes first keeps the port in TIME_WAIT
        return int(listener.getsockname()[1])
