"""Names that the specifications promise, thin, over the library."""
