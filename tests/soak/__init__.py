"""An attack on a small real index: flips, damage, kills, failing writes, falling limits.

`make soak` runs all of it, and some of its kills and crashes belong to the suite (test_soak.py).
"""
