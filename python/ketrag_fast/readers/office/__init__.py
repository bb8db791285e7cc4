"""Office files and books: archives of XML."""
