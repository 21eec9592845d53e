"""Stage release: publish, roll back, back up and restore."""
