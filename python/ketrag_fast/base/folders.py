"""Several indexes that are named together, as `north,south`, and services that share one."""

from __future__ import annotations

from pathlib import Path


def folders_of(text: str) -> Path | list[str]:
    """Return the folder of an index, or the folders and addresses of several that are separated by commas.

    Examples:
        >>> folders_of("north,http://10.0.0.2:8765")
        ['north', 'http://10.0.0.2:8765']
    """
    whole = Path(text)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) == 1 and names[0].startswith(("http://", "https://")):
        return names
    return whole if len(names) < 2 or whole.exists() else names
