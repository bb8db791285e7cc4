"""Stages that begin while the sources of a new index are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import Planner
from ketrag_fast.systems.spec.ahead import Ahead
from ketrag_fast.systems.spec.stage import Stage


@contextmanager
def working_ahead(
    layout: Layout, tables: Tables, stages: Sequence[Stage] | Planner, settings: Settings
) -> Iterator[Mapping[str, Ahead]]:
    """Yield what stages begin, by their names; nothing if the index has documents already."""
    begun: dict[str, Ahead] = {}
    with ExitStack() as exits:
        if not tables.count():
            for stage in _planned(stages, settings):
                started = stage.begin(settings, layout.work)
                if started is not None:
                    begun[stage.name] = started
                    exits.callback(started.close)
        yield begun


def _planned(stages: Sequence[Stage] | Planner, settings: Settings) -> Sequence[Stage]:
    with suppress(KetragError):  # the build itself reports it
        return stages(settings, False) if callable(stages) else stages
    return ()
