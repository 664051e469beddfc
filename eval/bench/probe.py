"""Results and speed of the probes: controls of the challenge, KMIR's builder, KAMEL on shared prefixes.

    python eval/bench/probe.py controls|kmir|kamel [--data DIR] [--properties 6] [--queries 40] [--split test]
        [--model NAME] [--drawing fixed|random] [--figures FILE]

controls: macro-F1 of the embedded default and of recorded answers, beside that of train alone, and on the queries that
no control answers. These are 2022 dev and 2023 val, with selection tuned out of fold by exact sweeps.

kmir: questions per minute, and whether the same seed writes the same bytes.

kamel: 5 shots on a tiny model. First a sample is compared with one full prompt at a time in the same run, in
CPU-seconds. Then the whole split is asked, all 234 properties, and each answer is committed to a store. A model named
by --model is only asked the sample.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import figures

from lmkbc.cli.terminal import error_status
from lmkbc.probe.controls import CONTROLS, RANDOM, Selection, controls, learned
from lmkbc.recipe import read_recipe
from lmkbc.run.base import Run
from lmkbc.workspace import Workspace

RECORDED = {
    "2022": {
        "baseline.candidates.jsonl.gz": "BERT baseline",
        "gpt3-optimized.candidates.jsonl.gz": "GPT-3 with optimised prompts",
    },
    "2023": {
        "bert-base-cased.candidates.jsonl.gz": "BERT candidates",
        "bert-base-cased+pretrain+recode.candidates.jsonl.gz": "BERT with pre-training and recode",
        "gpt4_n_0_m_0_c_0.jsonl.gz": "GPT-4 zero-shot",
    },
}
"""Edition -> file of answers -> its name in documents."""


HEADS = {"prior": "class prior", "naive-bayes": "naive Bayes"}
"""Controls with another name in documents."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("controls", "kmir", "kamel"))
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--properties", type=int, default=6, help="of kamel's sample")
    parser.add_argument("--queries", type=int, default=40, help="of each property of kamel's sample")
    parser.add_argument("--model", help="that kamel asks (default: a tiny one, taught how answers look)")
    parser.add_argument("--drawing", choices=("fixed", "random"), default="fixed", help="of kamel's shots")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="that kamel asks as a whole")
    figures.option(parser)
    given = parser.parse_args(argv)
    space = Workspace(data=given.data)
    root = space.split_path(space.edition("2023"), "val").parent.parent
    if given.what == "controls":
        figures.record(given.figures, "controls", measure_controls(space, root))
    elif given.what == "kmir":
        measure_kmir(root / "kamel" / "KAMEL.tar.xz")
    else:
        measure_kamel(root / "kamel" / "KAMEL.tar.xz", given)


def measure_controls(space: Workspace, root: Path) -> figures.Values:
    """Measure the controls. Each is computed once per edition, and used by all rows of it."""
    values: dict[str, dict[str, str]] = {}
    names = [*CONTROLS, RANDOM]
    print(f"{'edition':8}{'system':52}{'F1':>6}", *(f"{name:>11}" for name in names), "  hard  F1 on hard  seconds")
    for name, recorded in RECORDED.items():
        edition = space.edition(name)
        examples = space.examples(edition, edition.held_out)
        context = Run(
            workspace=space, edition=edition, offline=True, search_table=root / "wikidata" / "search_first_hit.json"
        )
        start = time.perf_counter()
        known = learned(context, examples, Selection())
        print(f"{name:8}the controls, made once for all rows: {time.perf_counter() - start:.0f} s")
        for file in ("", *recorded):
            start = time.perf_counter()
            path = root / "recorded" / f"{name}-{edition.held_out}" / file
            own = replace(context, files=(path,)) if file else context
            system = read_recipe(space, "recorded" if file else "embedded")
            row = controls(own, system, examples, Selection(), known=known).overall
            found = {"F1": row.system, **row.controls, "F1 on the hard part": row.hard_f1}
            values[f"{name} {edition.held_out}, {recorded.get(file, 'embedded default')}"] = {
                HEADS.get(one, one): f"{f1:.3f}" for one, f1 in found.items() if f1 is not None
            }
            shares = (f"{'-' if (f1 := row.controls.get(one)) is None else f'{f1:.3f}':>11}" for one in names)
            print(
                f"{name:8}{file or 'embedded':52}{row.system:6.3f}",
                *shares,
                f"{row.hard:6}  {row.hard_f1:10.3f}",
                f"{time.perf_counter() - start:8.0f}",
                flush=True,
            )
    return values


def measure_kmir(archive: Path) -> None:
    from msgspec.json import Encoder

    from lmkbc.probe.kmir.build import QuestionBuilder
    from lmkbc.probe.kmir.files import read_triples
    from lmkbc.probe.kmir.schema import read_schema

    schema, encoder = read_schema(), Encoder()
    triples = read_triples(archive, schema)
    start = time.perf_counter()
    first = encoder.encode_lines(QuestionBuilder(triples, schema, seed=1).questions())
    seconds = time.perf_counter() - start
    count = first.count(b"\n")
    same = first == encoder.encode_lines(QuestionBuilder(triples, schema, seed=1).questions())
    print(f"{count} questions on {len(triples)} triples in {seconds:.1f} s: {60 * count / seconds:,.0f} a minute")
    print(f"same seed, same bytes: {same}")


def measure_kamel(archive: Path, given: argparse.Namespace) -> None:
    """Measure the ratio on a sample of properties, then the whole split with each answer committed to a store."""
    from lmkbc.models.answers import Store
    from lmkbc.models.local.checkpoint import load
    from lmkbc.models.local.language_model import LocalModel
    from lmkbc.models.local.model import CausalModel
    from lmkbc.probe.benchmark import Means, texts
    from lmkbc.probe.kamel import dataset as kamel
    from lmkbc.probe.kamel.benchmark import KamelBenchmark, sampling
    from lmkbc.probe.kamel.dataset import END, answered, questions
    from lmkbc.probe.kamel.score import score

    properties, queries, split = given.properties, given.queries, given.split
    found = kamel.read(archive, splits=("train", split))
    names, wording, how = found.properties, questions(), sampling("completion")
    whole = KamelBenchmark(source=archive, model="", fixed=given.drawing == "fixed", split=split)
    every = list(whole.questions(found, wording, names))
    solved = replace(whole, limit=10).questions(found, wording, names, split="train")
    lessons = [f"{prompt.text} {answered(fact)}{END}\n" for fact, prompt in solved]
    model = CausalModel(*(load(given.model, offline=True) if given.model else taught(lessons)))
    lengths = [len(tokens) for tokens in model.encode([prompt.text for _, prompt in every[::50]])]
    size = sum(weight.numel() for weight in model.model.parameters()) / 1e6
    print(
        f"{given.model or 'GPT-2, taught how answers look'}, {size:.1f}M parameters; prompts of "
        f"{sum(lengths) / len(lengths):.0f} tokens"
    )
    chosen = names[:: len(names) // properties][:properties]
    sample = [prompt for _, prompt in replace(whole, limit=queries).questions(found, wording, chosen)]
    local, start, total = LocalModel(model, "tiny"), time.process_time(), len(sample)
    together = texts(local, sample, how, Means())
    between = time.process_time()
    single = [answer for prompt in sample for answer in texts(local, [prompt], how, Means())]
    seconds = between - start, time.process_time() - between
    same = sum(one == other for one, other in zip(together, single, strict=True))
    print(f"{total} queries of {len(chosen)} properties, 5 {given.drawing} shots: {same} answers alike")
    print(
        f"CPU-seconds a query: one full prompt at a time {seconds[1] / total:.3f}, together {seconds[0] / total:.3f}: "
        f"{seconds[1] / seconds[0]:.1f} x faster",
        flush=True,
    )
    if given.model:
        return
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        kept = LocalModel(model, "tiny", store=Store(Path(folder) / "store.sqlite"))
        answers = texts(kept, [prompt for _, prompt in every], how, Means())
        spent = time.perf_counter() - start
    table = score([(fact, text.strip()) for (fact, _), text in zip(every, answers, strict=True)])
    print(
        f"{len(answers)} queries of {len(names)} properties, {split}: {spent:.0f} s, {len(answers) / spent:.0f} a "
        f"second; F1 {table.overall.f1:.4f}"
    )


def taught(texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a GPT-2 of two layers, trained on some solved prompts of train: enough to end an answer with `%`.

    A model that never stops writes 100 tokens for every question, which no useful model does.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, GPT2Config, PreTrainedTokenizerFast

    from lmkbc.models.masked.tensors import padded
    from lmkbc.train.loop import train
    from lmkbc.train.settings import TrainingPlan

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pieces = trainers.BpeTrainer(
        vocab_size=4000, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(texts, pieces)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>", pad_token="<end>")
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=2048,
        n_embd=128,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = AutoModelForCausalLM.from_config(config)
    rows = tokenizer(list(texts))["input_ids"]

    def loss(batch: Sequence[list[int]]) -> Any:
        ids, keep = padded(batch, 0, model.device)
        return model(ids, attention_mask=keep, labels=ids.masked_fill(keep == 0, -100)).loss

    start = time.perf_counter()
    trained = train(model, loss, rows, TrainingPlan(rate=2e-3, epochs=2, batch=16))
    print(f"taught in {time.perf_counter() - start:.0f} s, loss {trained.losses[-1]:.2f}", flush=True)
    return model.eval(), tokenizer


if __name__ == "__main__":
    with error_status():
        main()
