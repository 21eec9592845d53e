"""What must hold at each boundary of the build, as Great Expectations suites; one file a boundary."""
