"""Export of graphs to other programs, and import of indexes that other programs have paid for."""
