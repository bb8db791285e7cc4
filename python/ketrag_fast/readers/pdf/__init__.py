"""PDF: text in reading order with pages and boxes, by PDFium (pypdfium2)."""
