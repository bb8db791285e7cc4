"""Settings: frozen values, each with one default and a recorded origin."""

from ketrag_fast.base.config.fields import Setting, setting
from ketrag_fast.base.config.settings import Settings, catalogue, find_setting, names, of_topic, parse
from ketrag_fast.base.config.shared import LEAST_MEMORY
from ketrag_fast.base.config.sources import Resolved, build_settings, from_environment, from_file, resolve

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
