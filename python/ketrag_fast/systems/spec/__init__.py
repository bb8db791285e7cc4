"""Declarations of a system: its settings, arrays, stages, channels, recipes and presets.

Declarations only describe; no module here names a system.
"""
