"""Graph indexes for retrieval-augmented generation, built and queried on one's own machine."""
