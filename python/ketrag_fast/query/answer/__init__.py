"""From a context to an answer with citations."""
