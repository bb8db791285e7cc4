"""Models: embedders, rerankers, LLMs and nearest-neighbour graphs, local or behind an endpoint."""
