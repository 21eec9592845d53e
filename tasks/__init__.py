"""Retryable units for Prefect: a policy and one library call each."""
