"""Removes what forgotten documents left in topics, bridges and logs."""
