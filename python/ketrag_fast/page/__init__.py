"""The page with the views Ask, Themes, Graph, Documents and Index, and pages that work without a server."""
