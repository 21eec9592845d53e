"""The night: stages in order, contracts, reports, release."""
