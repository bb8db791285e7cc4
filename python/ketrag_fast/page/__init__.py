"""The web page with the views Ask, Themes, Graph, Documents and Index, and standalone HTML pages."""
