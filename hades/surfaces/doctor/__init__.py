"""What `hades doctor` looks at, a file a subject; each finding names the next step."""
