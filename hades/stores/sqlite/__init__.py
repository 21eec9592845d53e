"""The embedded store: one SQLite file, a table a collection."""
