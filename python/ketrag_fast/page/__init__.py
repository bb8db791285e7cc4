"""The page with the views Ask, Graph, Documents and Index, and pages that work without a server."""
