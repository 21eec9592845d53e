"""The nightly build: one ordered list of stages and what each of them does."""
