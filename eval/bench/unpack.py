"""Loading a GGUF file: unpacked into a new cache, then from the cache, and by transformers itself.

    python eval/bench/unpack.py [--model SmolLM2-135M-Instruct]

Seconds until model and tokenizer are ready, without imports. The weights of both ways must be equal. Tokens are
compared on names of all editions, and on random characters, since transformers ignores how some files split a text.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lmkbc.cli.terminal import error_status
from lmkbc.models.local.checkpoint import load
from lmkbc.models.located import gguf_file
from lmkbc.models.packaged import GENERATIVE
from lmkbc.workspace import Workspace


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=GENERATIVE[0].hub, help="a packaged model, or a GGUF file")
    given = parser.parse_args(argv)
    if (path := gguf_file(given.model)) is None:
        parser.error(f"{given.model} leads to no GGUF file: {GENERATIVE[0].install}")
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        ours = [timed(f"lmkbc, {which} time", lambda: load(str(path))) for which in ("first", "second", "third")]
    theirs = timed("transformers, every time", lambda: alone(str(path.parent), path.name))
    (model, tokenizer), there = ours[-1], theirs[0].state_dict()
    print("same weights:", all(torch.equal(value, there[name]) for name, value in model.state_dict().items()))
    asked = list(texts())
    other = sum(tokenizer(text)["input_ids"] != theirs[1](text)["input_ids"] for text in asked)
    print(f"other tokens: {other} of {len(asked)} texts")


def texts() -> Iterator[str]:
    """Yield names of subjects and objects, and random characters of several scripts."""
    space = Workspace()
    for edition in (one for one in space.editions.values() if space.has_data(one)):
        for row in space.examples(edition, "train")[::20]:
            yield f"{row.query.subject}, {row.query.relation}: {row.objects}"
    draw = random.Random(0)
    scripts = [
        range(32, 127),
        range(48, 58),
        range(0xA0, 0x3000),
        range(0x1F300, 0x1F600),
        range(32, 33),
        range(10, 11),
    ]
    for _ in range(1500):
        yield "".join(chr(draw.choice(draw.choice(scripts))) for _ in range(draw.randrange(1, 30)))


def timed(what: str, work: Callable[[], Any]) -> Any:
    start, cpu = time.perf_counter(), time.process_time()
    done = work()
    print(f"{what:25} {time.perf_counter() - start:6.1f} s  {time.process_time() - cpu:6.1f} CPU-s", flush=True)
    return done


def alone(folder: str, name: str) -> Any:
    """Return the model and the tokenizer as transformers loads them."""
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval(), tokenizer


if __name__ == "__main__":
    with error_status():
        main()
