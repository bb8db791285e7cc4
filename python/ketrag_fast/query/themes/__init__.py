"""Themes of one opened generation: clusters of passages, their labels, quotes and shares over time."""
