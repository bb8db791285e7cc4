"""A thread-safe LRU cache of results for recent queries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class LruCache(Generic[V]):
    """The values of the last `most` queries. Thread-safe; its lock is held only for look-ups."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[str, V] = OrderedDict()

    def known(self, questions: Iterable[str]) -> dict[str, V]:
        """Return the values of the queries that are cached, and mark these as recently used."""
        with self._lock:
            found = {question: self._values[question] for question in questions if question in self._values}
            for question in found:
                self._values.move_to_end(question)
            return found

    def add(self, values: Mapping[str, V]) -> None:
        """Add values and drop the least recently used ones."""
        with self._lock:
            for question, value in values.items():
                self._values[question] = value
                self._values.move_to_end(question)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
