"""Other libraries that run the encoder's model, in a process with its own Python: torch, onnxruntime and OpenVINO.

That Python must import `torch`, `sentence_transformers`, `onnx`, `onnxscript`, `onnxruntime` and `openvino`; what is
missing is left out. The process exports the model once with torch, and then measures what it is told, so that the
libraries and the encoder take turns on the same texts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32
THREADS = (1, 2)
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
"""Environment in which torch and OpenVINO use no instructions beyond AVX2; onnxruntime has no such limit."""
Encode = Callable[[Sequence[str]], Any]


class Peers:
    """The process: what it can run, the seconds of a run, and its vectors."""

    def __init__(self, python: str, model: str, texts: Sequence[str], limits: dict[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "texts.json").write_text(json.dumps(list(texts)))
        self._process = subprocess.Popen(
            [python, __file__, model, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits, "TOKENIZERS_PARALLELISM": "false"},
        )
        self.names: list[str] = self._read()
        self.vectors = {name: np.load(folder / f"{name}.npy") for name in self.names}

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process of the other libraries ended"
        return json.loads(line)

    def seconds(self, name: str, threads: int) -> float:
        """Return the seconds in which a library encodes all texts: the processor's on one core, else of the clock."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, threads]) + "\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._folder.cleanup()


def is_limited(name: str) -> bool:
    """Return whether `AVX2` limits a library."""
    return not name.startswith("onnxruntime")


@contextlib.contextmanager
def peers(python: str, model: str, texts: Sequence[str], limits: dict[str, str]) -> Iterator[Peers]:
    """Start the process, and end it."""
    started = Peers(python, model, texts, limits)
    try:
        yield started
    finally:
        started.close()


def by_length(model: str, run: Callable[[dict[str, Any]], Any]) -> Encode:
    """Return a function from texts to vectors: tokens of similar texts together, mean of tokens, length 1."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    longest = json.loads((Path(model) / "sentence_bert_config.json").read_text())["max_seq_length"]

    def encode(texts: Sequence[str]) -> Any:
        order = np.argsort([-len(text) for text in texts], kind="stable")
        rows: list[Any] = [None] * len(texts)
        for start in range(0, len(texts), BATCH):
            chosen = order[start : start + BATCH]
            own = [texts[i] for i in chosen]
            inputs = dict(
                tokenizer(own, padding=True, truncation=True, max_length=longest, return_tensors="np")
            )
            hidden = run(inputs)
            mask = inputs["attention_mask"][:, :, None].astype(np.float32)
            means = (hidden * mask).sum(1) / mask.sum(1)
            for i, row in zip(chosen, means / np.linalg.norm(means, axis=1, keepdims=True), strict=True):
                rows[i] = row
        return np.stack(rows)

    return encode


def clock(threads: int) -> Callable[[], float]:
    """Return the clock to use: processor time for one thread, because other load affects it less, else wall time."""
    return time.process_time if threads == 1 else time.perf_counter


def export(model: str, folder: Path) -> tuple[Path, Path]:
    """Write the model for onnxruntime and OpenVINO: f32, and int8 by dynamic quantisation."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel, AutoTokenizer

    whole, small = folder / "model.onnx", folder / "int8.onnx"
    bert = AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    inputs = dict(
        AutoTokenizer.from_pretrained(model)(["a text", "another one"], return_tensors="pt", padding=True)
    )
    names = [*inputs]
    batch, length = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("length", min=2, max=512)
    with contextlib.redirect_stdout(sys.stderr):
        torch.onnx.export(
            bert,
            (),
            str(whole),
            kwargs=inputs,
            input_names=names,
            output_names=["hidden", "pooled"],
            dynamic_shapes={name: {0: batch, 1: length} for name in names},
            dynamo=True,
        )
        quantize_dynamic(whole, small, per_channel=True, weight_type=QuantType.QInt8)
    return whole, small


def of_torch(model: str, threads: int) -> dict[str, Encode]:
    """Return sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(model, device="cpu")

    def encode(texts: Sequence[str]) -> Any:
        torch.set_num_threads(threads)  # of the process
        return loaded.encode(list(texts), show_progress_bar=False)

    return {"sentence-transformers, f32": encode}


def of_onnxruntime(model: str, files: dict[str, Path], threads: int) -> dict[str, Encode]:
    """Return onnxruntime in each precision."""
    import onnxruntime

    def open_one(file: Path) -> Encode:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        return by_length(model, lambda inputs: session.run(["hidden"], inputs)[0])

    return {f"onnxruntime, {name}": open_one(file) for name, file in files.items()}


def of_openvino(model: str, files: dict[str, Path], threads: int) -> dict[str, Encode]:
    """Return OpenVINO in each precision; bf16 if the processor has it."""
    import openvino

    core = openvino.Core()

    def open_one(file: Path, precision: str) -> Encode:
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
        request = core.compile_model(core.read_model(file), "CPU", config).create_infer_request()
        return by_length(model, lambda inputs: np.array(request.infer(inputs)["hidden"]))

    made = {"openvino, f32": open_one(files["f32"], "f32"), "openvino, int8": open_one(files["int8"], "f32")}
    bf16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if bf16 and not AVX2.keys() <= os.environ.keys():
        made["openvino, bf16"] = open_one(files["f32"], "bf16")
    return made


def main() -> None:
    """Answer names on standard input, as JSON, by the seconds of a run."""
    model, folder = sys.argv[1], Path(sys.argv[2])
    texts = json.loads((folder / "texts.json").read_text())
    replies, sys.stdout = sys.stdout, sys.stderr

    def has(name: str) -> bool:
        return importlib.util.find_spec(name) is not None

    files: dict[str, Path] = {}
    if has("torch") and has("onnxscript") and has("onnxruntime"):
        files["f32"], files["int8"] = export(model, folder)
    made: dict[int, dict[str, Encode]] = {}
    for threads in THREADS:
        made[threads] = of_torch(model, threads) if has("sentence_transformers") else {}
        if files:
            made[threads] |= of_onnxruntime(model, files, threads)
        if files and has("openvino"):
            made[threads] |= of_openvino(model, files, threads)
    names: list[str] = []
    for name, encode in made[THREADS[0]].items():
        try:
            np.save(folder / f"{name}.npy", encode(texts))
            names.append(name)
        except Exception as error:  # noqa: BLE001 - a library that refuses the model is left out
            print(f"{name}: {error}", file=sys.stderr)
    print(json.dumps(names), file=replies, flush=True)
    for line in sys.stdin:
        name, threads = json.loads(line)
        encode, now = made[threads][name], clock(threads)
        started = now()
        encode(texts)
        print(now() - started, file=replies, flush=True)


if __name__ == "__main__":
    main()
