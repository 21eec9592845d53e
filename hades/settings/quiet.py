"""What libraries are told before they load: not to report home, to start no threads. What a person set stays."""

from __future__ import annotations

import os

_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "ORT_DISABLE_TELEMETRY": "1",
}


def keep_libraries_quiet() -> None:
    """Set what is not set."""
    for variable, value in _QUIET.items():
        os.environ.setdefault(variable, value)


def multiply_in_one_thread() -> None:
    """Products of matrices stay in the calling thread: for a process that answers one call.

    While NumPy is imported, its library of products starts a thread for every further core and waits for it: a
    twentieth of the time of a first answer, which has no product that is large enough to gain it back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
