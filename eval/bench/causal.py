"""The shared prefix of the local back end against one full prompt at a time, on a random model of GPT-2's size.

    python eval/bench/causal.py [--prefix 100 300 1000] [--subjects 48] [--quick]

Each prompt is a shared prefix and 12 tokens of its own; 8 tokens are answered, greedily, in float32. Both ways run in
the same process, and their texts must be the same. --quick asks only a few subjects the plain way, and multiplies.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel

SUFFIX, ANSWER, VOCABULARY = 12, 8, 50257


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=int, nargs="+", default=[100, 300, 1000], help="tokens of the shared prefix")
    parser.add_argument("--subjects", type=int, default=48)
    parser.add_argument("--kind", choices=("gpt2", "llama"), default="gpt2")
    parser.add_argument("--quick", action="store_true", help="ask only 6 subjects the plain way")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args(argv)
    torch.set_num_threads(given.threads)
    causal = CausalModel(model(given.kind), tokenizer())
    size = sum(weight.numel() for weight in causal.model.parameters()) / 1e6
    print(f"{given.kind}, {size:.0f}M parameters, {given.subjects} subjects, {given.threads} threads")
    print("prefix  plain s  shared s  ratio  ratio of CPU time  same text")
    for length in given.prefix:
        compare(causal, prompts(length, given.subjects), min(6, given.subjects) if given.quick else given.subjects)


def compare(causal: CausalModel, texts: list[str], asked: int) -> None:
    list(causal.complete(texts[:2], Decoding(max_tokens=2)))  # the first call of a process is slower
    found, shared = timed(lambda: dict(causal.complete(texts, Decoding(max_tokens=ANSWER))))
    plain, alone_for = timed(lambda: [alone(causal, text) for text in texts[:asked]])
    wall, cpu = (one * len(texts) / asked for one in alone_for)
    same = sum(found[place][0].text == text for place, text in enumerate(plain))
    length = len(causal.encode(texts[:1])[0]) - SUFFIX
    ratios = f"{wall / shared[0]:5.1f}  {cpu / shared[1]:17.1f}"
    print(f"{length:6}  {wall:7.1f}  {shared[0]:8.2f}  {ratios}  {same} of {asked}", flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What came of it, and its wall and CPU seconds; the latter are the same on a busy machine, or nearly."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, (time.perf_counter() - wall, time.process_time() - cpu)


def alone(causal: CausalModel, text: str) -> str:
    read: Any = causal.tokenizer(text, return_tensors="pt")
    answer = causal.model.generate(**read, max_new_tokens=ANSWER, do_sample=False)  # type: ignore[operator]
    return str(causal.tokenizer.decode(answer[0, read["input_ids"].shape[1] :]))


def prompts(length: int, subjects: int) -> list[str]:
    """Random words, one token each: a common beginning and each subject's own end."""
    words = random.Random(length)

    def draw(count: int) -> list[str]:
        return [f"w{words.randrange(VOCABULARY)}" for _ in range(count)]

    shared = draw(length)
    return [" ".join([*shared, *draw(SUFFIX)]) for _ in range(subjects)]


def tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w0"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="w0")


def model(kind: str) -> Any:
    torch.manual_seed(0)
    if kind == "gpt2":
        made: Any = GPT2LMHeadModel(GPT2Config(n_positions=2048, vocab_size=VOCABULARY))
    else:
        made = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=VOCABULARY,
                hidden_size=768,
                intermediate_size=2048,
                num_hidden_layers=12,
                num_attention_heads=12,
                num_key_value_heads=4,
                tie_word_embeddings=True,
            )
        )
    made.generation_config.eos_token_id = None
    made.generation_config.pad_token_id = 0
    return made.eval()


if __name__ == "__main__":
    main()
