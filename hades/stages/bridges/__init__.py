"""Stage bridges: paths between topics, computed ahead."""
