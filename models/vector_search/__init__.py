"""Vectors as small integers and in cells: what a search of many vectors scans instead of the vectors themselves."""
