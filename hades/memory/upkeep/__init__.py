"""Upkeep of memory: promote, consolidate, storage tiers, checks."""
