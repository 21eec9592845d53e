"""Evaluation sets: data nobody here wrote, beside baselines that cannot be left out."""
