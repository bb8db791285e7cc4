"""The command `ketrag`. Each file declares one command, or a few that belong together, and calls the
library."""
