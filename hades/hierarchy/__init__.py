"""The nightly topics: found, kept stable, worded, journalled."""
