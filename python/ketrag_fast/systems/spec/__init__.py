"""Declarations of a system: its settings, arrays, stages, channels, recipes and presets.

Declarations do no work, and none of these modules names a system.
"""
