"""How long a test waits before it calls something hung.

Not a speed limit: no test may fail because the machine is slow or busy, so the bound is far above what any step takes.
"""

HANG_SECONDS = 600
