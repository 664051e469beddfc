"""What the probes measure and how fast they are: controls of the challenge, KMIR's builder, KAMEL on shared prefixes.

    python eval/bench/probe.py controls|kmir|kamel [--data DIR] [--properties 6] [--queries 40]

controls: macro-F1 of the embedded default and of recorded answers beside what train alone reaches, and on the queries
that no control answers (2022 dev, 2023 val; selection tuned out of fold, exact sweeps). kmir: questions a minute, and
whether the same seed writes the same bytes. kamel: 5 fixed shots on a tiny random model, against one full prompt at a
time, on the same queries.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from lmkbc.components import Context
from lmkbc.probe.controls import Selection, controls
from lmkbc.workspace import Workspace

RECORDED = {
    "2022": ("baseline.candidates.jsonl.gz", "gpt3-optimized.candidates.jsonl.gz"),
    "2023": (
        "bert-base-cased.candidates.jsonl.gz",
        "bert-base-cased+pretrain+recode.candidates.jsonl.gz",
        "gpt4_n_0_m_0_c_0.jsonl.gz",
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("controls", "kmir", "kamel"))
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--properties", type=int, default=6)
    parser.add_argument("--queries", type=int, default=40)
    given = parser.parse_args(argv)
    space = Workspace(data=given.data)
    root = space.split_path(space.edition("2023"), "val").parent.parent
    if given.what == "controls":
        measure_controls(space, root)
    elif given.what == "kmir":
        measure_kmir(root / "kamel" / "KAMEL.tar.xz")
    else:
        measure_kamel(root / "kamel" / "KAMEL.tar.xz", given.properties, given.queries)


def measure_controls(space: Workspace, root: Path) -> None:
    print("edition  system                                                   F1  prior     NB  embed  hard  F1 on hard")
    for name, recorded in RECORDED.items():
        edition = space.edition(name)
        examples = space.examples(edition, edition.held_out)
        for file in ("", *recorded):
            path = root / "recorded" / f"{name}-{edition.held_out}" / file
            context = Context(
                workspace=space, edition=edition, files=(path,) if file else (), offline=True,
                search_table=root / "wikidata" / "search_first_hit.json",
            )  # fmt: skip
            table = controls(context, space.system("recorded" if file else "embedded"), examples, Selection())
            row = table.overall
            shares = "  ".join(
                f"{row.controls.get(one, float('nan')):.3f}" for one in ("prior", "naive-bayes", "embedded")
            )
            print(f"{name:7}  {file or 'embedded':52}  {row.system:.3f}  {shares}  {row.hard:4}  {row.hard_f1:.3f}")


def measure_kmir(archive: Path) -> None:
    from lmkbc.probe.kmir_build import Builder
    from lmkbc.probe.kmir_files import question_lines, read_triples
    from lmkbc.probe.kmir_schema import read_schema

    schema = read_schema(Path(str(files("lmkbc.probe").joinpath("kamel_schema.toml"))))
    triples = read_triples(archive, schema)
    start = time.perf_counter()
    first = question_lines(Builder(triples, schema, seed=1).questions())
    seconds = time.perf_counter() - start
    count = first.count(b"\n")
    same = first == question_lines(Builder(triples, schema, seed=1).questions())
    print(f"{count} questions on {len(triples)} triples in {seconds:.1f} s: {60 * count / seconds:,.0f} a minute")
    print(f"same seed, same bytes: {same}")


def measure_kamel(archive: Path, properties: int, queries: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config

    from lmkbc.generate.causal.model import CausalModel
    from lmkbc.probe import kamel
    from lmkbc.probe.kamel_prompts import Shots, prompts, questions
    from lmkbc.probe.kamel_run import ask

    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    import tiny_causal

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=tiny_causal.SIZE, n_positions=2048, n_embd=128, n_layer=4, n_head=4,
        bos_token_id=tiny_causal.EOS, eos_token_id=tiny_causal.EOS, pad_token_id=tiny_causal.EOS,
    )  # fmt: skip
    tokenizer = tiny_causal.tokenizer()
    model = CausalModel(AutoModelForCausalLM.from_config(config).eval(), tokenizer)
    names = list(questions())[:: 234 // properties][:properties]
    found = kamel.read(archive, properties=names)
    wording, shots = questions(), Shots(count=5, drawing="fixed")
    shared = alone = 0.0
    same = total = 0
    for name in names:
        given = list(prompts(found.of(name, "test")[:queries], found.of(name, "train"), wording, shots))
        start = time.perf_counter()
        together = [text for _, text in ask(model, "tiny", given)]
        shared += time.perf_counter() - start
        start = time.perf_counter()
        single = [text for pair in given for _, text in ask(model, "tiny", [pair])]
        alone += time.perf_counter() - start
        same += sum(one == other for one, other in zip(together, single, strict=True))
        total += len(given)
    print(f"{total} queries of {len(names)} properties, 5 fixed shots: {same} answers alike")
    print(f"one full prompt at a time {alone:.1f} s, shared prefixes {shared:.1f} s: {alone / shared:.1f} x faster")


if __name__ == "__main__":
    main()
