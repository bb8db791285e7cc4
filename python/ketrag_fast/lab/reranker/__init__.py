"""Training of a reranker for the walk on judged questions, and its cross-validation."""
