"""The command `ketrag`. Each file declares one command; other modules do the work."""
