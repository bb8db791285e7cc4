"""Advice for a corpus without labels, from questions made from the indexed texts."""
