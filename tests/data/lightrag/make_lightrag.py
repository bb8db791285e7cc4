"""Have LightRAG (lightrag-hku 1.5.7) index two texts with a fake LLM, and keep the files that are imported.

    pip install lightrag-hku==1.5.7
    python tests/data/lightrag/make_lightrag.py              # write the files again
    python tests/data/lightrag/make_lightrag.py --check      # compare them with what the package writes now
    python tests/data/lightrag/make_lightrag.py --keep DIR   # keep the whole working directory, for an import

The fake LLM answers in the form that LightRAG requests. No network is used.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from lightrag import LightRAG  # type: ignore[import-not-found]
from lightrag.utils import EmbeddingFunc, Tokenizer  # type: ignore[import-not-found]

FILES = ("kv_store_full_docs.json", "kv_store_text_chunks.json", "graph_chunk_entity_relation.graphml")
KINDS = {
    "Fridtjof Nansen": "person",
    "Fram": "artifact",
    "Colin Archer": "person",
    "Roald Amundsen": "person",
    "Maud": "artifact",
    "Larvik": "location",
}
TEXTS = {
    "doc-fram": "Fridtjof Nansen sailed the Fram into the ice in 1893. Colin Archer had built the Fram in "
    "Larvik. The ship was round, so that the ice would lift it. It drifted for three years, and "
    "Fridtjof Nansen left it to walk to the pole.",
    "doc-maud": "Roald Amundsen borrowed the Fram. Later Roald Amundsen sailed the Maud through the "
    "Northeast Passage. The Maud was built in Vollen by Christian Jensen.",
}


class Characters:
    """Tokens are characters."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))


async def embed(texts: list[str]) -> Any:
    codes = (hashlib.blake2b(text.encode(), digest_size=32).digest() for text in texts)
    return np.array([np.frombuffer(code, np.uint8) / 255.0 for code in codes])


async def answer(prompt: str, **_: Any) -> str:
    seen = [name for name in KINDS if name in prompt]
    lines = [f"entity<|#|>{name}<|#|>{KINDS[name]}<|#|>{name} is mentioned here." for name in seen]
    for first, second in pairwise(seen):
        lines.append(
            f"relation<|#|>{first}<|#|>{second}<|#|>sailing<|#|>{first} and {second} occur together."
        )
    return "\n".join([*lines, "<|COMPLETE|>"])


async def index(folder: str) -> None:
    rag = LightRAG(
        working_dir=folder,
        llm_model_func=answer,
        llm_model_name="fake",
        embedding_func=EmbeddingFunc(embedding_dim=32, max_token_size=8192, func=embed),
        tokenizer=Tokenizer("characters", Characters()),
        chunk_token_size=160,
        chunk_overlap_token_size=20,
        entity_extract_max_gleaning=0,
        enable_llm_cache=False,
    )
    await rag.initialize_storages()
    await rag.ainsert(list(TEXTS.values()), ids=list(TEXTS), file_paths=["fram.txt", "maud.txt"])
    await rag.finalize_storages()


def stable(path: Path) -> Any:
    """The content of a file without times (Unix seconds) and without the order of entries, which vary."""
    text = re.sub(r"\b1[789]\d{8}\b", "0", path.read_text("utf-8"))
    return json.loads(text) if path.suffix == ".json" else sorted(text.splitlines())


def main() -> int:
    """Index the texts; 1 if --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", metavar="DIR")
    args = parser.parse_args()
    own = Path(__file__).parent
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(index(place))
        if args.keep:
            shutil.copytree(place, args.keep)
        elif args.check:
            wrong = [n for n in FILES if stable(Path(place) / n) != stable(own / n)]
            print("different: " + ", ".join(wrong) if wrong else "equal, apart from times and order")
            return 1 if wrong else 0
        else:
            for name in FILES:
                shutil.copyfile(Path(place) / name, own / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
