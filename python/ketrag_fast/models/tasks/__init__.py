"""Tasks for language models: what is asked and how a reply is read, and one driver that does the asking."""
