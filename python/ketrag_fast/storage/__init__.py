"""How an index lies on disk: SQLite for what must be transactional, immutable generations of arrays."""
