"""Training of a model that quotes answers, and its scores next to the best sentence."""
