"""Costs of a build: user prices, the formula of the KET-RAG paper, and predictions before money is spent."""
