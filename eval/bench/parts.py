"""Gain of verification, recalled context, voting and follow-up questions on a real model: F1 with each and without.

    python eval/bench/parts.py [--edition 2023] [--relations 6] [--per-relation 12] [--parts "own account,variants"]
        [--figures FILE]

One few-shot recipe is run, and the same recipe with one more part, on the first rows of some relations. Columns: F1 by
one cut-off, untuned; F1 tuned out of fold; the share of draws without an answer; tokens of prompts; and seconds. The
gain of a part is its difference to the first line. Answers are stored in --store, so a killed run can be resumed. Names
are linked by train objects and by the recorded search table.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import figures
import tomli_w
from msgspec import structs
from recorded import context_of

from lmkbc.cli.terminal import error_status, progress
from lmkbc.files.places import cache_dir
from lmkbc.generate.spec import merged
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.tune.tune import official, tune
from lmkbc.types import CandidateSet, Example, Proposal, State
from lmkbc.workspace import Workspace

FEW_SHOT: dict[str, Any] = {
    "component": "causal",
    "name": "few-shot",
    "prompt": {"form": "completion", "style": "question", "listing": "comma", "null": "none"},
    "shots": {"k": 6, "method": "random", "names": 10},
    "sampling": {"samples": 3, "temperature": 0.7, "max_tokens": 48},
}
VOTES = {"variants": ["statement", "question", "clozes"], "aggregation": "votes"}
CHATTED = {"form": "chat", "style": "question", "listing": "comma", "null": "none"}
PARTS: dict[str, Mapping[str, Any]] = {
    "without": {},
    "checked by probability": {"verify": {}},
    "checked by text": {"verify": {"by": "text", "words": ["yes", "no"]}},
    "variants": {"verify": VOTES},
    "reverse": {"verify": {"variants": ["reverse"], "match": 0.6}},
    "own account": {"context": {"provider": "recall"}},
    "recall": {"prompt": {"recall": True}},
    "chat": {"prompt": CHATTED},
    "chat and asked again": {
        "prompt": {**CHATTED, "follow_up": "Check each name of your answer, and answer again: {question}"}
    },
    "cut lists lost": {},
}
"""Part -> its additions to the recipe's table."""
LOST = "cut lists lost"
"""The part that counts a list without an end as no answer. Otherwise, its complete items count."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--relations", type=int, default=6, help="those with the fewest objects, from one on")
    parser.add_argument("--per-relation", type=int, default=12, help="rows of each relation, the first ones")
    parser.add_argument("--parts", help="names, parted by commas (default: all)")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="a name of this machine's, or FILE.gguf")
    parser.add_argument("--store", type=Path, default=cache_dir() / "parts.sqlite", help="where answers are kept")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace()
    edition = workspace.edition(given.edition)
    rows: defaultdict[str, list[Example]] = defaultdict(list)
    for example in workspace.examples(edition, edition.held_out):
        rows[example.query.relation].append(example)
    size = {name: sum(one.size for one in its) / len(its) for name, its in rows.items()}
    short = sorted(
        (name for name in rows if workspace.relation(name).kind == "entity" and size[name] >= 1),
        key=lambda name: size[name],
    )
    chosen = [example for name in short[: given.relations] for example in rows[name][: given.per_relation]]
    run = replace(context_of(workspace, edition), model=given.model, servers=Servers(store=given.store))
    print(f"{edition.name} {edition.held_out}, {len(chosen)} rows of {', '.join(short[: given.relations])}")
    print(f"{'part':24}  untuned  out of fold  no answer  tokens in  seconds")
    names = given.parts.split(",") if given.parts else PARTS
    figures.record(given.figures, "parts", {name: line(run, name, chosen) for name in names})


def line(run: Run, name: str, examples: Sequence[Example]) -> dict[str, str]:
    """Run the recipe with one part, print its results, and return those for documents."""
    table = merged(FEW_SHOT, PARTS[name])
    select = {"rule": "cutoff", "threshold": 0.5}
    if "verify" in table:
        select = {"rule": "verified", "inner": select}
    start = time.perf_counter()
    with TemporaryDirectory() as folder, progress() as report:
        path = Path(folder) / "few-shot.toml"
        path.write_text(tomli_w.dumps({"description": name, "generate": [table], "select": select}))
        recipe = read_recipe(run.workspace, str(path))
        proposals = propose(run, recipe, [example.query for example in examples], report)
    if name == LOST:
        proposals = replace(proposals, sets=tuple(map(without_cut, proposals.sets)))
    seconds = time.perf_counter() - start
    made = {one.query: one for one in recipe.select.select_all(proposals.sets)}
    untuned = official(made, examples, run.edition).overall.f1
    tuned = tune(proposals.sets, examples, run.edition, relations=run.relations, folds=3, trials=0)
    states = [state for one in proposals.sets for state in one.draws]
    lost = sum(not state.is_answer for state in states) / max(len(states), 1)
    tokens = sum(usage.get("prompt_tokens", 0) for usage in proposals.usage.values())
    print(f"{name:24}  {untuned:7.3f}  {tuned.cv_macro_f1:11.3f}  {lost:9.3f}  {tokens:9}  {seconds:7.0f}", flush=True)
    shown = {"untuned": untuned, "out of fold": tuned.cv_macro_f1}
    return {column: f"{f1:.3f}".lstrip("0") for column, f1 in shown.items()} | {"tokens in": f"{tokens:,}"}


def without_cut(candidates: CandidateSet) -> CandidateSet:
    """Return the set of one generator's draws, each of score 1, with draws that were cut off counted as truncated."""
    draws = tuple(State.TRUNCATED if state is State.CUT else state for state in candidates.draws)
    spoke = sum(state.is_answer for state in draws)

    def left(proposals: Sequence[Proposal]) -> Iterator[Proposal]:
        for one in proposals:
            if sources := tuple(source for source in one.sources if draws[int(source.draw)].is_answer):
                score = len(sources) / spoke
                yield structs.replace(one, score=score, sources=sources, by_model=((sources[0].model, score),))

    kept = tuple(sorted(left(candidates.candidates), key=lambda one: -one.score))
    return replace(candidates, candidates=kept, draws=draws, nothing=tuple(left(candidates.nothing)))


if __name__ == "__main__":
    with error_status():
        main()
