"""Two linear rankings in turn: each candidate alone, then beside the others. Coefficients are JSON files."""
