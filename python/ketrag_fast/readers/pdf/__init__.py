"""PDF: text in reading order with page and box locators, read with PDFium (pypdfium2)."""
