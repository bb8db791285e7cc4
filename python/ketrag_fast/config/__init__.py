"""Settings: small frozen values, each with one default and a known origin."""

from ketrag_fast.config.settings import FIELDS, Settings, known, names, parse
from ketrag_fast.config.sources import Resolved, build_settings, from_environment, from_file, resolve

__all__ = [
    "FIELDS",
    "Resolved",
    "Settings",
    "build_settings",
    "from_environment",
    "from_file",
    "known",
    "names",
    "parse",
    "resolve",
]
