"""Storage: the folder layout, SQLite tables, generations of arrays, and the builder's lock."""
