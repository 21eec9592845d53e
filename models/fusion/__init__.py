"""The fitted ranking of the default recipe."""
