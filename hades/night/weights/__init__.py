"""Stage that weighs every edge."""
