"""What a system says about itself: its settings, arrays, stages, channels, recipes and presets.

Nothing here does any work, and nothing here knows a system by name.
"""
