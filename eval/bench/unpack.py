"""Loading a GGUF file: unpacked into a fresh cache, from the cache after that, and by transformers itself.

    python eval/bench/unpack.py [--model SmolLM2-135M-Instruct]

Seconds until model and tokenizer answer, imports left out. The weights of both ways must be equal.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lmkbc.models.causal.checkpoint import load
from lmkbc.models.located import gguf_file
from lmkbc.models.packaged import GENERATIVE


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=GENERATIVE[0].hub, help="a packaged model, or a GGUF file")
    given = parser.parse_args(argv)
    if (path := gguf_file(given.model)) is None:
        parser.error(f"{given.model} leads to no GGUF file: {GENERATIVE[0].install}")
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        ours = [timed(f"lmkbc, {which} time", lambda: load(str(path))[0]) for which in ("first", "second", "third")]
    theirs = timed("transformers, every time", lambda: alone(str(path.parent), path.name))
    there = theirs.state_dict()
    print("same weights:", all(torch.equal(value, there[name]) for name, value in ours[-1].state_dict().items()))


def timed(what: str, work: Callable[[], Any]) -> Any:
    start, cpu = time.perf_counter(), time.process_time()
    done = work()
    print(f"{what:25} {time.perf_counter() - start:6.1f} s  {time.process_time() - cpu:6.1f} CPU-s", flush=True)
    return done


def alone(folder: str, name: str) -> Any:
    """Return the model as transformers loads it. The tokenizer is loaded too, since each answer needs it."""
    AutoTokenizer.from_pretrained(folder, gguf_file=name)
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()


if __name__ == "__main__":
    main()
