"""Language models on this machine or behind an endpoint."""
