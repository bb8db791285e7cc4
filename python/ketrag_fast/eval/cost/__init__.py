"""Costs of a build: user prices, and a prediction before money is spent."""
