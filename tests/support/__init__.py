"""Real parts for tests: servers on loopback, and the model that the package index offers."""
