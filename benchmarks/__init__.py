"""Speed, fits and evaluation sets: programs of a checkout."""
