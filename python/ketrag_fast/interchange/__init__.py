"""Export of graphs to other programs, and import of what other programs have extracted."""
