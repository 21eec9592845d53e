"""Edges of code: contains, imports, calls, history, documentation."""
