"""The command line and the service. They use only the public API of the index."""
