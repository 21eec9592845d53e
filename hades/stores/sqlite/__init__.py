"""The embedded store: columnar pages in one SQLite file."""
