"""Pages that are generated from code: `make docs` writes them, a test fails when they are stale."""
