"""Contracts between stages: the rows of the store as frames, and the rules of `schemas.contracts` over them."""
