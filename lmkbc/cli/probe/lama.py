"""`lmkbc probe lama`: ask masked models LAMA's clozes over the words that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.cli.options import AsJson, Offline, listed
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError, counted
from lmkbc.files.jsonl import read_bytes
from lmkbc.files.packed import DOCUMENT

if TYPE_CHECKING:
    from lmkbc.probe.lama.dataset import LamaTable, RelationFacts

EXAMPLE = "Example: lmkbc probe lama data/ --model bert-base-cased --model roberta-base --uhn"


def lama(
    source: Annotated[
        Path,
        typer.Argument(help="Directory of relations.jsonl and TREx/; or KAMEL, whose properties of LAMA are asked."),
    ],
    model: Annotated[list[str], typer.Option("--model", help="Masked model: id or directory; repeatable.")],
    vocabulary: Annotated[
        Path | None, typer.Option(help="One word a line; default: all words that the models share.")
    ] = None,
    properties: Annotated[str | None, typer.Option(help="Only these relations, comma-separated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many facts per relation.")] = None,
    uhn: Annotated[bool, typer.Option("--uhn", help="Drop facts that the subject's name gives away.")] = False,
    json: AsJson = False,
    offline: Offline = False,
) -> None:
    """Ask masked models LAMA's clozes. P@1, P@10 and MRR of objects among the shared words, means over relations."""
    from lmkbc.models.masked.backbone import load
    from lmkbc.probe.lama import dataset as benchmark
    from lmkbc.probe.lama.run import MaskedRanks, known_words

    relations = _facts(source, listed(properties))
    raw = None if vocabulary is None else read_bytes(vocabulary, DOCUMENT)
    words_given = None if raw is None else set(raw.decode("utf-8", "replace").split())
    backbones = {name: load(name, offline=offline) for name in model}
    vocabularies = {name: known_words(backbone) for name, backbone in backbones.items()}
    for name, words_of in vocabularies.items():
        if all(word == word.lower() for word in words_of):
            note(f"{name} reads no capitals: objects are asked in lower case")
            relations = benchmark.lowered(relations)
    words = benchmark.shared_vocabulary(list(vocabularies.values()), words_given)
    known = frozenset(words)
    relations = benchmark.within(relations, lambda _, __, object_: object_ in known)
    relations = [replace(relation, facts=relation.facts[:limit]) for relation in relations]
    if not relations:
        raise InputError("no fact has an object among the shared words: name other models, or other relations")
    facts = sum(len(relation.facts) for relation in relations)
    note(f"{counted(len(words), 'shared word')}, {counted(facts, 'fact')} of {counted(len(relations), 'relation')}")
    rankers = {name: MaskedRanks(backbone, words) for name, backbone in backbones.items()}
    if uhn:
        relations = benchmark.unhelpful(relations, next(iter(rankers.values())).guesses(relations))
        facts = sum(len(relation.facts) for relation in relations)
        note(f"{counted(facts, 'fact')} that no name gives away, as the first model reads names")
    tables = {}
    with progress() as report:
        for name, ranker in rankers.items():
            ranks = {}
            for done, relation in enumerate(relations, start=1):
                ranks[relation.name] = ranker.ranks(relation)
                report(name, done, len(relations))
            tables[name] = benchmark.table(relations, ranks)
    if json:
        show_json({name: asdict(table) for name, table in tables.items()})
    else:
        _show(tables, {relation.name: relation.type for relation in relations})


def _facts(source: Path, properties: list[str] | None) -> list[RelationFacts]:
    from lmkbc.probe.kamel import dataset as kamel
    from lmkbc.probe.kmir.schema import read_schema
    from lmkbc.probe.lama import dataset as benchmark

    if (source / "relations.jsonl").is_file():
        return benchmark.read(source, properties)
    with as_file(files("lmkbc.probe.kamel").joinpath("schema.toml")) as path:
        schema = read_schema(path)
    facts = kamel.read(source, properties=properties or kamel.LAMA, splits=("test",))
    for name in properties or ():
        facts.of(name, "test")
    return benchmark.of_kamel(facts, benchmark.kamel_clozes(schema))


def _show(tables: Mapping[str, LamaTable], kinds: Mapping[str, str]) -> None:
    from lmkbc.probe.lama.dataset import PUBLISHED

    lines: list[list[Any]] = []
    for name, table in tables.items():
        for part, row in {**table.relations, **table.types, "*** Average ***": table.overall}.items():
            kind = kinds.get(part, "")
            lines.append([name, part, kind, 100 * row.p1, 100 * row.p10, row.mrr, row.log_probability, row.facts])
    for name, scores in PUBLISHED.items():
        lines += ([f"paper, T-REx: {name}", part, "", p1, None, None, None, None] for part, p1 in scores.items())
    show_table(["model", "over", "type", "P@1 %", "P@10 %", "MRR", "log p", "facts"], lines)
