"""The fold of all kept replies into entities and relations with their sources (KET-RAG 1.3 steps 3 to 6)."""

from __future__ import annotations

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import strings


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """A function of the replies and of the texts that they are about, whatever came when."""
    replies, units = inputs["replies"], inputs["units"]
    return _core.fold_skeleton(
        replies["reply_chunk"],
        replies["reply_entities_indptr"],
        strings(replies, "entity_name"),
        strings(replies, "entity_type"),
        strings(replies, "entity_description"),
        replies["reply_relations_indptr"],
        strings(replies, "relation_source"),
        strings(replies, "relation_target"),
        strings(replies, "relation_description"),
        replies["relation_strength"],
        units["chunk_units"],
        strings(units, "unit_texts"),
        units["unit_span"],
        settings.encoding,
        rewire=settings.rewire,
        threads=context.threads,
        report=context.report,
    )


STAGE = Stage(
    "skeleton",
    version=1,
    needs=("units", "replies"),
    settings=("encoding", "rewire"),
    run=run,
    unit="chunks",
    read=True,
)
