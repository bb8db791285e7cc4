"""Queries over one opened generation: the opened generation, the query, and the results."""
