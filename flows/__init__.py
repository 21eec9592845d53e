"""In what order: each flow reads like a table of contents."""
