"""Stage that builds topics."""
