"""Makes small GGUF models: random weights, a real tokenizer, a chat template. llama.cpp loads them itself.

The tokenizer is a byte-pair vocabulary trained here on the articles of examples/polar, on replies of the
kind that an extraction asks for, and (where it is large) filled up with made-up words. The weights are
random but for one direction of the residual stream that stays constant: through it the output prefers
tokens that are frequent in such replies, so that strings end and replies differ from chunk to chunk.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import json
import os
import re
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT: Final = Path(__file__).resolve().parents[2]
ARTICLES: Final = ROOT / "examples" / "polar" / "articles"
END, OPEN, CLOSE = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# GPT-2's rule for words, in the classes that Python's re has.
WORDS: Final = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


@dataclass(frozen=True)
class Shape:
    """Sizes of a model. `merges` are trained; `vocabulary` fills up with made-up words beyond them."""

    merges: int = 700
    vocabulary: int = 0
    width: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    feed: int = 128
    context: int = 2048
    quantised: str = "F32"
    template: str | None = TEMPLATE
    seed: int = 7


TINY: Final = Shape()
# Some 110 million weights, of which 25 million are the output's: the shape of a small real model.
LARGE: Final = Shape(
    merges=3000,
    vocabulary=32_000,
    width=768,
    layers=12,
    heads=12,
    kv_heads=4,
    feed=2048,
    context=4096,
    quantised="Q8_0",
)


def model_file(shape: Shape = TINY, folder: Path | None = None) -> Path:
    """The file of a model of that shape; made once, and found again by its shape."""
    source = Path(__file__).read_bytes()
    mark = hashlib.sha256(json.dumps(asdict(shape), sort_keys=True).encode() + source).hexdigest()[:16]
    where = folder or Path(os.environ.get("KETRAG_MODELS") or Path(tempfile.gettempdir()) / "ketrag-models")
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"model-{mark}.gguf"
    if not path.exists():
        handle, name = tempfile.mkstemp(dir=where, suffix=".part")
        os.close(handle)
        write_model(Path(name), shape)
        Path(name).replace(path)
    return path


def write_model(path: Path, shape: Shape = TINY) -> None:
    """Writes the model of that shape."""
    import gguf

    tokens, types, merges, weights = vocabulary(shape)
    writer: Any = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("ketrag test model")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokens.index(END))
    writer.add_eos_token_id(tokens.index(CLOSE))
    writer.add_add_bos_token(False)
    if shape.template is not None:
        writer.add_chat_template(shape.template)
    kind = gguf.GGMLQuantizationType[shape.quantised]
    for name, matrix in tensors(shape, np.asarray(weights)):
        if matrix.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, matrix)
        else:
            writer.add_tensor(name, gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(shape: Shape, frequency: NDArray[np.float64]) -> Any:
    """Names and matrices, output rows first. Dimension 0 of the residual stream is the same everywhere."""
    random = np.random.Generator(np.random.PCG64(shape.seed))
    width, head = shape.width, shape.width // shape.heads

    def normal(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns), np.float32) * np.float32(scale)).astype(np.float32)

    embedding = normal(len(frequency), width, 1.0)
    embedding[:, 0] = 2.0
    yield "token_embd.weight", embedding
    ones = np.ones(width, np.float32)
    for layer in range(shape.layers):
        at = f"blk.{layer}."
        small = 1.0 / np.sqrt(width)
        yield at + "attn_norm.weight", ones
        yield at + "attn_q.weight", normal(width, width, 2 * small)
        yield at + "attn_k.weight", normal(shape.kv_heads * head, width, 2 * small)
        yield at + "attn_v.weight", normal(shape.kv_heads * head, width, small)
        out = normal(width, width, small / np.sqrt(shape.layers))
        out[0] = 0.0
        yield at + "attn_output.weight", out
        yield at + "ffn_norm.weight", ones
        yield at + "ffn_gate.weight", normal(shape.feed, width, small)
        yield at + "ffn_up.weight", normal(shape.feed, width, small)
        down = normal(width, shape.feed, 1.0 / np.sqrt(shape.feed * shape.layers))
        down[0] = 0.0
        yield at + "ffn_down.weight", down
    yield "output_norm.weight", ones
    output = normal(len(frequency), width, 1.5 / np.sqrt(width))
    output[:, 0] = np.log(frequency + 1e-5) * 0.5
    yield "output.weight", output


def vocabulary(shape: Shape) -> tuple[list[str], list[int], list[str], list[float]]:
    """Tokens, their types (1 plain, 3 control), merges, and how frequent each is in replies."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(ARTICLES.glob("*.md")))
    replies = sample_replies(text)
    merges = train(text + "\n" + replies * 2, shape.merges)
    tokens = [byte_sign(byte) for byte in range(256)] + [one + two for one, two in merges]
    trained = set(tokens)
    tokens += [word for word in made_up(max(0, shape.vocabulary - len(tokens) - 3)) if word not in trained]
    place = {token: number for number, token in enumerate(tokens)}
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    seen: Counter[str] = Counter()
    for word, times in Counter(WORDS.findall(replies)).items():
        for token in split(word, ranks):
            seen[token] += times
    total = sum(seen.values())
    filler = 20.0 / total  # made-up words are as likely as a token seen a few times
    frequency = [seen[t] / total if place[t] < 256 + len(merges) else filler for t in tokens]
    special = [END, OPEN, CLOSE]
    return (
        tokens + special,
        [1] * len(tokens) + [3] * len(special),
        [f"{one} {two}" for one, two in merges],
        [*frequency, 0.0, 0.0, 0.01],
    )


def sample_replies(text: str) -> str:
    """Replies like an extraction's, about the articles' own names, as objects and as arrays."""
    names = re.findall(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*", text)
    lines = []
    for start in range(0, len(names) - 4, 4):
        a, b, c, d = names[start : start + 4]
        kinds = ("PERSON", "PLACE", "SHIP", "EVENT")
        what = f"{c} was with {d} at {a}."
        entities = [[a, kinds[start % 4], what], [b, kinds[(start + 1) % 4], f"{b}, of {d}."]]
        lines.append(
            json.dumps({"entities": entities, "relations": [[a, b, what, 7]]}, separators=(",", ":"))
        )
        lines.append(json.dumps({"entities": [{"name": a, "type": kinds[start % 4], "description": what}]}))
    return "\n".join(lines)


def train(text: str, count: int) -> list[tuple[str, str]]:
    """Byte-pair merges, most frequent first; ties fall to the smaller pair."""
    words = {tuple(signs(word)): n for word, n in Counter(WORDS.findall(text)).items()}
    pairs: Counter[tuple[str, str]] = Counter()
    holders: dict[tuple[str, str], set[tuple[str, ...]]] = {}

    def add(word: tuple[str, ...], n: int) -> None:
        for pair in itertools.pairwise(word):
            pairs[pair] += n
            holders.setdefault(pair, set()).add(word)

    for word, n in words.items():
        add(word, n)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    merges: list[tuple[str, str]] = []
    while len(merges) < count and heap:
        n, best = heapq.heappop(heap)
        if pairs[best] != -n:  # an old count; the present one is further down
            continue
        if n > -2:
            break
        merges.append(best)
        touched: set[tuple[str, str]] = set()
        for word in holders.pop(best):
            times = words.pop(word, 0)
            if not times:
                continue
            for pair in itertools.pairwise(word):
                pairs[pair] -= times
                touched.add(pair)
            merged = tuple(join(word, best))
            words[merged] = words.get(merged, 0) + times
            add(merged, times)
            touched |= set(itertools.pairwise(merged))
        for pair in touched - {best}:
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
    return merges


def split(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """A word's tokens."""
    parts = signs(word)
    while len(parts) > 1:
        best = min(itertools.pairwise(parts), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        parts = join(parts, best)
    return parts


def join(parts: Any, pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(parts):
        if tuple(parts[at : at + 2]) == pair:
            out.append(pair[0] + pair[1])
            at += 2
        else:
            out.append(parts[at])
            at += 1
    return out


def made_up(count: int) -> list[str]:
    """Pronounceable words with a space before them, written as tokens are."""
    onsets = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr"]
    vowels = ["a", "e", "i", "o", "u", "ai", "ou"]
    syllables = [a + b for a in onsets for b in vowels]
    space = byte_sign(32)
    words = (
        space + one + two + three for one in syllables for two in syllables for three in ("", "n", "s", "rt")
    )
    return [word for _, word in zip(range(count), words, strict=False)]


def signs(word: str) -> list[str]:
    return [byte_sign(byte) for byte in word.encode()]


@functools.cache
def byte_sign(byte: int) -> str:
    """The printable sign by which a byte-level vocabulary writes a byte (GPT-2's table)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in plain:
        return chr(byte)
    return chr(256 + [b for b in range(256) if b not in plain].index(byte))
