"""What was computed before and may be used while it is still true."""
