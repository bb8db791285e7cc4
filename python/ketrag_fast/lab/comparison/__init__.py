"""Several configurations on the same documents and questions, in one report (`ketrag bench`)."""
