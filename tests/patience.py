"""How long a test waits before it calls something hung, and how many examples a property is tried
on.
"""

import os
import time
from collections.abc import Callable

# Not a speed limit: no test may fail because the machine is slow or busy, so it is far above what
# any step takes.
HANG_SECONDS = 600


def wait_until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + HANG_SECONDS
    while not holds():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def examples(number: int) -> int:
    """Examples of a property: `number` in `make test`, ten times as many in `make soak`."""
    return number * _factor()


def is_soak() -> bool:
    """Whether properties are tried on random examples instead of the same ones each time."""
    return _factor() > 1


def _factor() -> int:
    return int(os.environ.get("HADES_EXAMPLES", "1"))
