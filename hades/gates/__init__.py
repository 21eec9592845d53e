"""Gates between the stages of a build: the store's rows as frames, the suites of `schemas.contracts` over them."""
