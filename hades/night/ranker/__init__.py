"""Stage that trains, compares and promotes the ranker."""
