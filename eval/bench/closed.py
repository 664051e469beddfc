"""Closed lists on the real model: the options of a prompt as one tree, against each option scored by itself.

    python eval/bench/closed.py [--queries 4] [--edition 2023] [--relation CountryBordersCountry] [--model NAME]

CPU-seconds of both, alternating in one run; the largest difference between their log-probabilities; and the peak memory
of the tree. The window of google/gemma-3-270m has 512 tokens. The prompts of awardWonBy of 2024 exceed it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence

import torch

from lmkbc.ask.examples import Shots
from lmkbc.ask.plan import Asking, Asks
from lmkbc.ask.style import PromptStyle
from lmkbc.cli.terminal import error_status
from lmkbc.generate.prior import ClosedSet
from lmkbc.models.local.checkpoint import load
from lmkbc.models.local.model import CausalModel
from lmkbc.workspace import Workspace

MODEL = "SmolLM2-135M-Instruct"
STYLE = PromptStyle(form="completion", listing="comma", null="none")


def alone(model: CausalModel, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return scores from one forward pass per option after its prompt, as evaluation harnesses score choices."""
    scores: list[list[float]] = []
    for prompt, choices in zip(prompts, options, strict=True):
        (start,) = model.encode([prompt])
        scores.append([])
        for whole in model.encode([prompt + choice for choice in choices]):
            with torch.inference_mode():
                logs = model.model(torch.tensor([whole])).logits[0].log_softmax(-1)
            places = range(len(start), len(whole))
            scores[-1].append(sum(float(logs[place - 1, whole[place]]) for place in places))
    return scores


def timed(score: Callable[[], list[list[float]]]) -> tuple[list[list[float]], float]:
    """Return the scores, and their CPU-seconds."""
    start = time.process_time()
    return score(), time.process_time() - start


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=4)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--relation", default="CountryBordersCountry")
    parser.add_argument("--model", default=MODEL)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    space = Workspace()
    edition = space.edition(arguments.edition)
    relations = {name: space.relation(name) for name in edition.relations}
    train = space.examples(edition, "train")
    rows = [row for row in train if row.query.relation == arguments.relation]
    closed = ClosedSet.of(edition, relations[arguments.relation], rows)
    counts = closed.hits.sum(axis=0)
    texts = [f" {closed.labels[column]}" for column in range(1, len(counts)) if counts[column] > 1][:60]
    asking = Asking(edition, relations, train, Asks(prompt=STYLE, shots=Shots(k=8, method="random", names=20)))
    queries = [
        row.query for row in space.examples(edition, edition.held_out) if row.query.relation == arguments.relation
    ]
    prompts = [asking.prompt(query).text for query in queries[: arguments.queries]]
    options = [[*texts, " none"]] * len(prompts)
    model = CausalModel(*load(arguments.model))
    model.log_probabilities(prompts[:1], options[:1])
    before = peak()
    model.log_probabilities(prompts, options)
    grown, longest = peak() - before, max(map(len, model.encode(prompts)))
    spent = {"tree": 0.0, "alone": 0.0}
    worst = 0.0
    for prompt, choices in zip(prompts, options, strict=True):
        ours, seconds = timed(lambda one=prompt, row=choices: model.log_probabilities([one], [row]))  # type: ignore[misc]
        spent["tree"] += seconds
        theirs, seconds = timed(lambda one=prompt, row=choices: alone(model, [one], [row]))  # type: ignore[misc]
        spent["alone"] += seconds
        worst = max(worst, *(abs(a - b) for a, b in zip(ours[0], theirs[0], strict=True)))
    print(
        f"{len(prompts)} prompts of up to {longest} tokens, {len(options[0])} options each: {spent['tree']:.2f} CPU-s "
        f"as a tree, {spent['alone']:.2f} one by one, {spent['alone'] / spent['tree']:.1f} x; largest difference "
        f"{worst:.1e}; {before} MiB with one prompt, {grown} MiB more with all"
    )


def peak() -> int:
    """Return the peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    with error_status():
        main()
