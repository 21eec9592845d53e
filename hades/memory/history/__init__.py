"""Versions and edges through time: write, read as of a moment, undo, erase."""
