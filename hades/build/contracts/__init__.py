"""One file a contract: its rules and the rows they read."""
