"""Embedding models: one protocol, several engines, loaded when needed."""
