"""Small Protocols named for the asker's need."""
