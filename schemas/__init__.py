"""What things are called: records, relation rules and the catalogue of collections. No I/O."""
