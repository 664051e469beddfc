"""Closed lists on the real model: the options of a prompt as one tree, against each option scored by itself.

CPU-seconds of both, alternating in one run; the largest difference between their log-probabilities; and the peak memory
of the tree. The window of google/gemma-3-270m has 512 tokens. The prompts of awardWonBy of 2024 exceed it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eval.bench import model_of, parsed, parser_of, peak_mb, timed
from lmkbc.ask.builder import PromptBuilder, PromptSettings
from lmkbc.ask.examples import Shots
from lmkbc.ask.style import PromptStyle
from lmkbc.generate.baselines import ClosedSet
from lmkbc.local.checkpoint import load
from lmkbc.local.model import CausalModel
from lmkbc.workspace import Workspace

MODEL = "SmolLM2-135M-Instruct"
STYLE = PromptStyle(form="completion", listing="comma", null="none")


def alone(model: CausalModel, prompt: str, choices: Sequence[str]) -> list[float]:
    """Return scores from one forward pass per option after its prompt, as evaluation harnesses score choices."""
    scores: list[float] = []
    (start,) = model.encode([prompt])
    for whole in model.encode([prompt + choice for choice in choices]):
        with torch.inference_mode():
            logs = model.model(torch.tensor([whole])).logits[0].log_softmax(-1)
        scores.append(sum(float(logs[place - 1, whole[place]]) for place in range(len(start), len(whole))))
    return scores


def main(argv: Sequence[str]) -> None:
    """Print one line."""
    parser = parser_of(__doc__)
    parser.add_argument("--queries", type=int, default=4)
    parser.add_argument("--options", type=int, default=60, help="of train's objects, at most so many")
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--relation", default="CountryBordersCountry")
    parser.add_argument("--model", default=MODEL)
    given = parsed(parser, argv, edition="mini", queries=1, options=5, shots=1)
    torch.set_num_threads(1)
    space = Workspace(data=given.data)
    edition = space.edition(given.edition)
    relations = {name: space.relation(name) for name in edition.relations}
    train = space.examples(edition, "train")
    closed = ClosedSet.of(
        edition, relations[given.relation], [row for row in train if row.query.relation == given.relation]
    )
    counts = closed.hits.sum(axis=0)
    texts = [f" {closed.labels[column]}" for column in range(1, len(counts)) if counts[column] > 1]
    shots = Shots(k=1 if given.small else 8, method="random", names=20)
    asking = PromptBuilder(edition, relations, train, PromptSettings(prompt=STYLE, shots=shots))
    queries = [one for one in space.queries(edition, edition.held_out) if one.relation == given.relation]
    prompts = [asking.prompt(query).text for query in queries[: given.queries]]
    options = [[*texts[: given.options], " none"]] * len(prompts)
    with model_of(given) as name:
        model = CausalModel(*load(name))
    model.log_probabilities(prompts[:1], options[:1])
    before = peak_mb()
    model.log_probabilities(prompts, options)
    grown, longest = peak_mb() - before, max(map(len, model.encode(prompts)))
    tree = one_by_one = worst = 0.0
    for prompt, choices in zip(prompts, options, strict=True):
        ours, cpu, _ = timed(model.log_probabilities, [prompt], [choices])
        theirs, own_cpu, _ = timed(alone, model, prompt, choices)
        tree, one_by_one = tree + cpu, one_by_one + own_cpu
        worst = max(worst, *(abs(a - b) for a, b in zip(ours[0], theirs, strict=True)))
    print(f"{len(prompts)} prompts of up to {longest} tokens, {len(options[0])} options each")
    print(f"{tree:.2f} CPU-s as a tree, {one_by_one:.2f} one by one, {one_by_one / tree:.1f} x")
    print(f"largest difference {worst:.1e}; {before} MB with one prompt, {grown} MB more with all")
