"""What later stages built on rows that are gone: corrected in the transaction that takes the rows away."""
