"""Two small real stages, for tests of the runner: word lengths of the documents, and their histogram."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

from ketrag_fast.base.config import Settings
from ketrag_fast.building.runner import build
from ketrag_fast.systems.spec.stage import DOCUMENTS, Outputs, Stage, StageContext, StageInputs

RAN: list[str] = []


def run_words(inputs: StageInputs, settings: Settings, ctx: StageContext) -> Outputs:
    RAN.append("words")
    lengths = []
    for done, document in enumerate(inputs.documents, 1):
        lengths += [len(word) for word in f"{document.title} {document.text}".split()]
        ctx.report(done, len(inputs.documents))
        ctx.check()
    blob, offsets = inputs.documents.packed("text")
    return {"lengths": np.array(lengths, np.uint32), "blob": blob, "offsets": offsets}


def run_histogram(inputs: StageInputs, settings: Settings, ctx: StageContext) -> Outputs:
    RAN.append("histogram")
    lengths = inputs["words"]["lengths"]
    return {"counts": np.bincount(np.minimum(lengths, settings.knn_k), minlength=settings.knn_k + 1)}


WORDS = Stage("words", 1, (DOCUMENTS,), (), run_words, "documents")
HISTOGRAM = Stage("histogram", 1, ("words",), ("knn_k",), run_histogram)
STAGES = [WORDS, HISTOGRAM]


def killed_in(name: str) -> list[Stage]:
    """The stages, one of which is killed (kill -9) in the middle of its work."""

    def run(inputs: StageInputs, settings: Settings, ctx: StageContext) -> Outputs:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return [Stage(s.name, s.version, s.needs, s.settings, run if s.name == name else s.run) for s in STAGES]


if __name__ == "__main__":
    how, index, source = sys.argv[1:4]
    build(index, source, killed_in(how))
