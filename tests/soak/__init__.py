"""An attack on a small real index: flips, damage, kills, failing writes, falling limits.

`make soak` runs all of it, and a scaled-down part belongs to the suite (test_soak.py).
"""
