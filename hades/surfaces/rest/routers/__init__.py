"""The routes, one file a subject; each says which of its routes read and which write."""
