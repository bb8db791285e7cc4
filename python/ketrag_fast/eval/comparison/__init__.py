"""Comparison of several configurations on the same documents and questions (`ketrag bench`)."""
