"""What the commands of `hades memory` show a person."""
