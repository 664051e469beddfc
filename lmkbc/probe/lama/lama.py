"""LAMA as a benchmark: its clozes for masked models, over the vocabulary that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from lmkbc.errors import InputError, counted
from lmkbc.files.reader import whole
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Sheet, percent
from lmkbc.probe.kamel.kamel_data import LAMA
from lmkbc.probe.kmir.schema import read_schema
from lmkbc.probe.lama.lama_data import (
    PUBLISHED,
    SENTENCES,
    LamaTable,
    RelationFacts,
    facts_of_kamel,
    is_lama,
    kamel_clozes,
    lama_table,
    lowered,
    read_corpus,
    read_trex,
    shared_vocabulary,
    unhelpful,
    within,
)
from lmkbc.settings import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class LamaBenchmark:
    """LAMA's clozes for masked models: P@1, P@10 and MRR of objects among the words that all models know."""

    source: Annotated[
        Path,
        Meta(
            description="LAMA's data: relations.jsonl and TREx/; or KAMEL, whose properties of LAMA are asked.",
            extra={"argument": True},
        ),
    ]
    model: Annotated[list[str], Meta(description="Masked model: id or directory; repeatable.")]
    vocabulary: Annotated[
        Path | None, Meta(description="One word a line; default: all words that the models share.")
    ] = None
    corpus: Annotated[
        Literal["trex", "google-re", "conceptnet", "squad"],
        Meta(description="Part of LAMA's data: trex, google-re, conceptnet or squad, with its own clozes."),
    ] = "trex"
    properties: Annotated[str | None, Meta(description="Only these relations, comma-separated.")] = None
    limit: Annotated[int | None, Meta(ge=1, description="At most N facts per relation.")] = None
    uhn: Annotated[bool, Meta(description="Drop facts that the subject's name gives away.")] = False

    def run(self, run: BenchmarkRun) -> Findings:
        """Rank the gold objects of all facts whose object is in the shared vocabulary."""
        if self.uhn and self.corpus in SENTENCES:
            raise InputError(f"--uhn is about names of subjects, and {self.corpus} holds sentences: leave it out")
        from lmkbc.masked.backbone import load
        from lmkbc.probe.masked_answers import MaskedRanks, known_words

        relations = self.facts()
        raw = None if self.vocabulary is None else whole(self.vocabulary)
        words_given = None if raw is None else set(raw.decode("utf-8", "replace").split())
        backbones = {name: load(name, offline=run.offline) for name in self.model}
        vocabularies = {name: known_words(backbone) for name, backbone in backbones.items()}
        for name, words_of in vocabularies.items():
            if all(word == word.lower() for word in words_of):
                run.note(f"{name} reads no capitals: objects are asked in lower case")
                relations = lowered(relations)
        words = shared_vocabulary(list(vocabularies.values()), words_given)
        vocabulary = frozenset(words)
        relations = within(relations, lambda _, __, object_: object_ in vocabulary)
        relations = [replace(relation, facts=relation.facts[: self.limit]) for relation in relations]
        if not relations:
            raise InputError("no fact has an object among the shared words: name other models, or other relations")
        facts = sum(len(relation.facts) for relation in relations)
        many = f"{counted(facts, 'fact')} of {counted(len(relations), 'relation')}"
        run.note(f"{counted(len(words), 'shared word')}, {many}")
        rankers = {name: MaskedRanks(backbone, words) for name, backbone in backbones.items()}
        if self.uhn:
            relations = unhelpful(relations, next(iter(rankers.values())).guesses(relations))
            facts = sum(len(relation.facts) for relation in relations)
            run.note(f"{counted(facts, 'fact')} that no name gives away, as the first model reads names")
        tables = {}
        with run.progress() as report:
            for name, ranker in rankers.items():
                ranks = {}
                for done, relation in enumerate(relations, start=1):
                    ranks[relation.name] = ranker.ranks(relation)
                    report(name, done, len(relations))
                tables[name] = lama_table(relations, ranks)
        kinds = {relation.name: relation.type for relation in relations}
        sheet = _sheet(tables, kinds, PUBLISHED if self.corpus == "trex" else {})
        return Findings({name: asdict(table) for name, table in tables.items()}, [sheet])

    def facts(self) -> list[RelationFacts]:
        """Read the facts of LAMA's directory, or of KAMEL."""
        names = listed(self.properties)
        if self.corpus != "trex":
            return read_corpus(self.source, self.corpus, names)
        if is_lama(self.source):
            return read_trex(self.source, names)
        return facts_of_kamel(self.source, names, LAMA, kamel_clozes(read_schema()))


def _sheet(
    tables: Mapping[str, LamaTable], kinds: Mapping[str, str], published: Mapping[str, Mapping[str, float]]
) -> Sheet:
    rows: list[list[Any]] = [
        [name, part, kinds.get(part, ""), *percent(row.p1, row.p10), row.mrr, row.log_probability, row.facts]
        for name, table in tables.items()
        for part, row in {**table.relations, **table.types, "*** Average ***": table.overall}.items()
    ]
    for name, scores in published.items():
        rows += ([f"paper, T-REx: {name}", part, "", p1, None, None, None, None] for part, p1 in scores.items())
    return Sheet(["model", "over", "type", "P@1 %", "P@10 %", "MRR", "log p", "facts"], rows, "overall")
