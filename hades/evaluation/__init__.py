"""How good retrieval is, on data nobody here wrote, beside baselines that cannot be left out."""
