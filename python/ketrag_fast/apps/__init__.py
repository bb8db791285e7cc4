"""The command line and the service. They use the index as any program of a user does."""
