"""Pages for people: one file each, readable without a network, in light and in dark."""
