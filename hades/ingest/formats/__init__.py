"""One file a document format; registry.py lists them."""
