"""Corrections of entities by hand: made, agreed on, listed, undone."""
