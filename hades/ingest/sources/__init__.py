"""One file a source: each yields `Material` or `Rejected`, and knows nothing of stores."""
