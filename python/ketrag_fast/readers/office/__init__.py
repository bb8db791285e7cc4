"""Readers of Office files and e-books, which are zip archives of XML."""
