"""The native encoder, onnxruntime and OpenVINO on the same tokens: `python benches/encoder_peers.py FOLDER`.

Caveats first. One machine; medians of interleaved runs. All are given the same texts; the peers get them as
token ids already (our own time includes the tokeniser), in batches of texts of like length up to `--batch`
tokens, padded to the longest, and their mean pooling is done by NumPy outside the clock. Their graph is that
of `transformers`, exported at the start. A peer that is not installed is named and left out:
`pip install onnx onnxruntime openvino torch transformers`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common import header, require_data, table
from encoder import texts_of
from ketrag_fast.kernels.encoder import Encoder

Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[int]]
Run = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def exported(folder: Path) -> Any:
    """The transformer alone as a module: ids and mask in, hidden states out."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(str(folder), local_files_only=True).eval()

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            return states

    return Hidden()


def example() -> tuple[Any, Any]:
    """Ids and mask to trace the graph with."""
    import torch

    return torch.randint(5, 900, (2, 12)), torch.ones(2, 12, dtype=torch.long)


def onnx(folder: Path, threads: int) -> Run:
    """onnxruntime in single precision."""
    import onnxruntime
    import torch

    with tempfile.TemporaryDirectory() as place:
        path = str(Path(place) / "model.onnx")
        sizes = {0: "texts", 1: "tokens"}
        torch.onnx.export(
            exported(folder),
            example(),
            path,
            input_names=["ids", "mask"],
            output_names=["states"],
            dynamic_axes={"ids": sizes, "mask": sizes, "states": sizes},
            dynamo=False,
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(ids: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        states: np.ndarray[Any, Any] = session.run(["states"], {"ids": ids, "mask": mask})[0]
        return states

    return run


def openvino(folder: Path, threads: int) -> Run:
    """OpenVINO in the precision that it takes by itself: bf16 where the processor has it."""
    import openvino as ov

    model = ov.convert_model(exported(folder), example_input=example())
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads})

    def run(ids: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        states: np.ndarray[Any, Any] = compiled([ids, mask])[0]
        return states

    return run


def batches(folder: Path, texts: list[str], tokens: int, longest: int) -> Iterator[Batch]:
    """Texts of like length together, as their tokeniser has them."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    rows = tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    while order:
        taken = [order.pop()]
        width = len(rows[taken[0]])
        while order and width * (len(taken) + 1) <= tokens:
            taken.append(order.pop())
        ids = np.zeros((len(taken), width), np.int64)
        mask = np.zeros_like(ids)
        for place, i in enumerate(taken):
            ids[place, : len(rows[i])] = rows[i]
            mask[place, : len(rows[i])] = 1
        yield ids, mask, taken


def pooled(run: Run, made: list[Batch], count: int) -> np.ndarray[Any, Any]:
    """The mean of each text's states."""
    out: list[Any] = [None] * count
    for ids, mask, taken in made:
        states = run(ids, mask)
        sums = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        for place, i in enumerate(taken):
            out[i] = sums[place]
    return np.array(out)


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=400, help="passages; three times as many sentences")
    parser.add_argument("--batch", type=int, default=4096, help="tokens of a peer's batch, padding included")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    native = Encoder.open(args.folder)
    header("The native encoder and its peers", [" ".join((__doc__ or "").split("\n\n")[1].split())])
    cores = os.cpu_count() or 1
    passages, sentences = texts_of(require_data("musique-train100"))
    rows = []
    for threads in dict.fromkeys((1, cores)):
        peers: dict[str, Run] = {}
        for name, make in (("onnxruntime", onnx), ("openvino", openvino)):
            try:
                peers[name] = make(args.folder, threads)
            except ImportError as error:
                print(f"{name} is left out: {error}\n")
        for kind, texts in (("passages", passages[: args.texts]), ("sentences", sentences[: 3 * args.texts])):
            # Theirs would cut what is longer, ours makes windows.
            lengths = native.lengths(texts).tolist()
            texts = [text for text, n in zip(texts, lengths, strict=True) if n <= native.longest]
            made = list(batches(args.folder, texts, args.batch, native.longest))
            tokens = sum(int(mask.sum()) for _, mask, _ in made)
            want = native.encode(texts, threads=threads)
            times: dict[str, list[float]] = {name: [] for name in ("native", *peers)}
            for _ in range(args.repeat):
                times["native"].append(timed(lambda t=texts, n=threads: native.encode(t, threads=n)))
                for name, run in peers.items():
                    times[name].append(timed(lambda m=made, r=run: [r(ids, mask) for ids, mask, _ in m]))
            ours = statistics.median(times["native"])
            for name, runs in times.items():
                took = statistics.median(runs)
                close = 1.0
                if name != "native":
                    got = pooled(peers[name], made, len(texts))
                    got /= np.linalg.norm(got, axis=1, keepdims=True)
                    close = float((got * want).sum(1).min())
                rows.append(
                    [kind, threads, name, f"{tokens / took:.0f}", f"{took / ours:.2f}", f"{close:.6f}"]
                )
    table(["texts", "threads", "encoder", "tokens/s", "time / native", "lowest cosine to native"], rows)


if __name__ == "__main__":
    main()
