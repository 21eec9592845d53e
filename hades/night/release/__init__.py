"""Publish, roll back, back up, export."""
