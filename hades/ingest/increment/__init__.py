"""What the last derivation found, by stable identity, and which names a change touches."""
