"""Queries over one opened generation: what is open, what is requested, what is returned."""
