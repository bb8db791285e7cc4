"""Settings: frozen values, each with one default and a recorded origin."""

from ketrag_fast.base.config.fields import Setting, setting
from ketrag_fast.base.config.settings import (
    Resolved,
    Settings,
    build_settings,
    catalogue,
    find_setting,
    from_environment,
    names,
    of_topic,
    parse,
    resolve,
)
from ketrag_fast.base.config.settings_file import from_file
from ketrag_fast.base.config.shared import LEAST_MEMORY

__all__ = [
    "LEAST_MEMORY",
    "Resolved",
    "Setting",
    "Settings",
    "build_settings",
    "catalogue",
    "find_setting",
    "from_environment",
    "from_file",
    "names",
    "of_topic",
    "parse",
    "resolve",
    "setting",
]
