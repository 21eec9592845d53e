"""How many threads libraries start, said before they are loaded; what a person set stays."""

from __future__ import annotations

import os


def multiply_in_one_thread() -> None:
    """Products of matrices stay in the calling thread: for a process that answers one call.

    While NumPy is imported, its library of products starts a thread for every further core and waits for it: a
    twentieth of the time of a first answer, which has no product that is large enough to gain it back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
