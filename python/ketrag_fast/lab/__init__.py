"""Measurements: evaluation, comparison of builds, and cost. Nothing that builds or answers imports it."""
