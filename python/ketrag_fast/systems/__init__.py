"""Systems: named recipes. Without a part of its own, a system is a row of `presets`."""
