"""The shared prefix of the local back end against one full prompt at a time.

The model is random and of GPT-2's size. Each prompt is a shared prefix with 12 tokens of its own. With --recipes, the
model is a real one (--model). Its prompts are those of recipes, about subjects of one relation of the labelled held-out
split. Lengths are means; column `own` counts the tokens that subjects do not share. --shots changes the recipes' number
of examples. 8 tokens are answered greedily in float32. Both ways run alternately in the same process, and their texts
must be the same. --quick asks only a few subjects in the plain way, evenly spaced, and extrapolates.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from eval.bench import parsed, parser_of, timed
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.local.checkpoint import load
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel
from lmkbc.models.prefixes import groups
from lmkbc.recipe import read_recipe
from lmkbc.session.run import Run
from lmkbc.workspace import Workspace

SUFFIX, ANSWER, VOCABULARY = 12, 8, 50257


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--prefix", type=int, nargs="+", default=[100, 300, 1000], help="tokens of the shared prefix")
    parser.add_argument("--subjects", type=int, default=48)
    parser.add_argument("--recipes", nargs="+", help="the prompts of these, on a real model")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="of --recipes")
    parser.add_argument("--edition", default="2023", help="of --recipes")
    parser.add_argument("--relation", default="CountryBordersCountry", help="of --recipes")
    parser.add_argument("--shots", type=int, help="so many examples in each of --recipes, in place of its own number")
    parser.add_argument("--quick", action="store_true", help="ask only 6 subjects the plain way")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    few = {"prefix": [20], "recipes": ["bl23-opt"], "edition": "mini", "shots": 1, "subjects": 6, "threads": 1}
    given = parsed(parser, argv, **few)
    torch.set_num_threads(given.threads)
    causal = model_for(given)
    size = sum(weight.numel() for weight in causal.model.parameters()) / 1e6
    print(f"{given.model if given.recipes else 'gpt2'}, {size:.0f}M parameters, {given.threads} threads")
    print("prompts           tokens    own  plain s  shared s  ratio  ratio of CPU time  same text")
    asked = {name: recipe_prompts(name, causal, given) for name in given.recipes or ()}
    if given.small or not given.recipes:
        asked |= {str(length): prompts(length, given.subjects) for length in given.prefix}
    for name, texts in asked.items():
        compare(name, causal, texts, min(6, len(texts)) if given.quick else len(texts))


def compare(name: str, causal: CausalModel, texts: list[str], asked: int) -> None:
    how = Decoding(max_tokens=ANSWER)
    list(causal.complete(texts[:2], Decoding(max_tokens=2)))  # the first call of a process is slower
    few = range(0, len(texts) - len(texts) % asked, len(texts) // asked)
    half = len(few) // 2
    before = timed(lambda: [alone(causal, texts[place]) for place in few[:half]])
    shared = timed(lambda: dict(causal.complete(texts, how)))
    after = timed(lambda: [alone(causal, texts[place]) for place in few[half:]])
    part = len(texts) / len(few)
    wall, cpu = (before.wall + after.wall) * part, (before.cpu + after.cpu) * part
    same = sum(
        shared.result[place][0].text == text for place, text in zip(few, before.result + after.result, strict=True)
    )
    encoded = causal.encode(texts)
    length = sum(map(len, encoded)) / len(texts)
    own = length - max((group.shared for group in groups(encoded)), default=0)
    ratios = f"{wall / shared.wall:5.1f}  {cpu / shared.cpu:17.1f}"
    print(
        f"{name:16} {length:7.0f} {own:6.0f}  {wall:7.1f}  {shared.wall:8.2f}  {ratios}  {same} of {len(few)}",
        flush=True,
    )


def alone(causal: CausalModel, text: str) -> str:
    read = torch.tensor([causal.encode([text])[0]])
    generate: Any = causal.model.generate
    greedy = {"do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(read)}
    answer = generate(read, max_new_tokens=ANSWER, **greedy)[0, read.shape[1] :]
    return str(causal.tokenizer.decode(answer, skip_special_tokens=True))


def recipe_prompts(name: str, causal: CausalModel, given: argparse.Namespace) -> list[str]:
    """Return the prompts of a recipe's first generative source about the first subjects of the relation."""
    space = Workspace(data=given.data)
    edition = space.edition(given.edition)
    run = Run(workspace=space, edition=edition, offline=True)
    recipe = read_recipe(space, name)
    specs = (one for spec in recipe.generate for one in spec.whole())  # a source may be nested in another one
    spec = next(one for one in specs if isinstance(one, LanguageModelSpec))
    if given.shots is not None:
        spec = replace(spec, shots=replace(spec.shots, k=given.shots))
    asking = spec.asking(run)
    queries = [one for one in space.queries(edition, edition.held_out) if one.relation == given.relation]
    return [causal.text(asking.prompt(query)) for query in queries[: given.subjects]]


def prompts(length: int, subjects: int) -> list[str]:
    """Return texts of random words, one token each: a common beginning, and an end per subject."""
    words = random.Random(length)

    def draw(count: int) -> list[str]:
        return [f"w{words.randrange(VOCABULARY)}" for _ in range(count)]

    shared = draw(length)
    return [" ".join([*shared, *draw(SUFFIX)]) for _ in range(subjects)]


def model_for(given: argparse.Namespace) -> CausalModel:
    """Return the model of --recipes, or a random one: of GPT-2's size, or tiny for a small run."""
    if given.small:
        import tiny_causal

        return CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
    if given.recipes:
        return CausalModel(*load(given.model, dtype="float32"))
    torch.manual_seed(0)
    made: Any = GPT2LMHeadModel(GPT2Config(n_positions=2048, vocab_size=VOCABULARY))
    made.generation_config.eos_token_id = None
    return CausalModel(made.eval(), word_tokenizer(VOCABULARY))


def word_tokenizer(size: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer of the words w0, w1 and so on, a token each."""
    raw = Tokenizer(models.WordLevel({f"w{number}": number for number in range(size)}, unk_token="w0"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="w0")
