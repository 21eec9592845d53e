"""A service looks for garbage seldom, and not among what it was made of."""

import subprocess
import sys

PROGRAM = """
import gc
from hades.surfaces.access.garbage import collect_seldom
class Ring:
    pass
ring = Ring(); ring.itself = ring
before = len(gc.get_objects())
collect_seldom()
print(gc.get_freeze_count() > before // 2, len(gc.get_objects()) < before // 2, gc.get_threshold()[0] > 10_000)
import weakref
later = Ring(); later.itself = later
gone = weakref.ref(later)
del later
gc.collect()
print(gone() is None)
"""


def test_what_is_there_is_frozen_and_later_rings_are_still_freed():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4
