"""Places elsewhere: one file a kind; each lists documents with versions and reads what changed."""
