"""The nightly build as the library knows it: each stage as one call, publishing behind its contracts, going back."""
