"""Channels: each finds candidates for a question."""
