"""What must hold at each contract of the build, as Great Expectations contracts; one file a contract."""
