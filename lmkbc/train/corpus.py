"""Facts to train on, without held-out subjects, and a check that none is left.

The facts are from the challenge's train splits, KAMEL's train split and silver triples. Each has the clozes that
verbalise it. Held out are the subjects of val and test splits of all editions, under all their names. Facts of KAMEL's
dev and test splits are held out too, so that the trained model can be asked KAMEL's and LAMA's questions.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.jsonl import read_jsonl
from lmkbc.names import folded_key
from lmkbc.probe.kamel.kamel_data import Kamel, read_kamel
from lmkbc.relation import Relation
from lmkbc.train.text_lines import text_rows
from lmkbc.types import Example, Fact, grouped
from lmkbc.workspace import Workspace

KAMEL, SILVER = Path("kamel/KAMEL.tar.xz"), Path("silver2023")


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Facts of the challenge's train splits, and other facts, with counts per source.

    removed: source -> (number kept, number removed because of what is held out). sentences: plain text to train on,
    without names of held-out subjects.
    """

    challenge: tuple[Fact, ...]
    others: tuple[Fact, ...]
    removed: Mapping[str, tuple[int, int]]
    held_out: HeldOut
    sentences: tuple[str, ...] = ()

    @property
    def proof(self) -> Iterator[str]:
        """Yield the counts as lines, after `check` has passed."""
        self.held_out.check((*self.challenge, *self.others))
        yield f"held out: {len(self.held_out.keys)} names of subjects of {', '.join(self.held_out.splits)}"
        for source, (kept, removed) in self.removed.items():
            yield f"{source}: {kept} facts kept, {removed} removed: their subject, or what they state, is held out"
        if self.sentences:
            yield f"{len(self.sentences)} sentences, none of which holds a held-out name"
        yield "overlap of subjects to train on with held-out names: 0"


def gather(
    workspace: Workspace, places: Sequence[Path], editions: Sequence[str] = (), text: Path | None = None
) -> Corpus:
    """Read the train splits of the editions, and KAMEL and silver facts below `places`.

    editions: names, all with data here if empty. text: file with one sentence per line. InputError if each of its
    sentences names a held-out subject.
    """
    here = [edition for edition in workspace.editions.values() if workspace.has_data(edition)]
    examples = {edition.name: workspace.examples(edition, "train") for edition in here}
    archive = next((place / KAMEL for place in places if (place / KAMEL).is_file()), None)
    kamel = read_kamel(archive) if archive else Kamel({})
    silver = next((place / SILVER for place in places if (place / SILVER).is_dir()), None)
    held = HeldOut.of(workspace, alias_groups((row for rows in examples.values() for row in rows), kamel))
    held = replace(held, stated=stated(kamel))
    relations, removed = workspace.relations, dict[str, tuple[int, int]]()

    def kept(source: str, facts: Iterable[Fact]) -> list[Fact]:
        kept, lost = held.without(facts)
        removed[source] = len(kept), lost
        return kept

    challenge = [
        fact
        for name, rows in examples.items()
        if not editions or name in editions
        for fact in kept(f"{name}/train", of_examples(rows, relations))
    ]
    others = kept("KAMEL/train", of_kamel(kamel, relations)) if archive else []
    if silver:
        others += kept("silver", of_silver(silver, relations))
    sentences, lost = held.unmentioned(row.text for row in text_rows(text)) if text else ([], 0)
    if text and not sentences:
        raise InputError(f"{text}: none of its {lost} sentences is without a held-out subject: give others")
    return Corpus(tuple(challenge), tuple(others), removed, held, tuple(sentences))


def near(corpus: Corpus, most: int, seed: int = 0) -> list[Fact]:
    """Return the other facts that are related to the challenge: by their relation, or by an object in its train split.

    most: facts per relation, drawn at random. Facts about a subject of the challenge are left out, so that folds of its
    train split stay clean.
    """
    relations = {fact.relation for fact in corpus.challenge}
    objects = {folded_key(name) for fact in corpus.challenge for name in fact.objects}
    subjects = {folded_key(fact.subject) for fact in corpus.challenge}

    def bears(fact: Fact) -> bool:
        return fact.relation in relations or any(folded_key(name) in objects for name in fact.objects)

    some = (fact for fact in corpus.others if bears(fact) and folded_key(fact.subject) not in subjects)
    by_relation = grouped((fact.relation, fact) for fact in some)
    draw = random.Random(seed)
    return [
        fact
        for name in sorted(by_relation)
        for fact in draw.sample(by_relation[name], min(len(by_relation[name]), most))
    ]


def split(facts: Sequence[Fact], share: float = 0.1, seed: int = 0) -> tuple[list[Fact], list[Fact]]:
    """Return facts to train on, and facts for early stopping; no subject is in both."""
    subjects = sorted({folded_key(fact.subject) for fact in facts})
    random.Random(seed).shuffle(subjects)
    apart = set(subjects[: round(share * len(subjects))])
    return (
        [fact for fact in facts if folded_key(fact.subject) not in apart],
        [fact for fact in facts if folded_key(fact.subject) in apart],
    )


class _Row(msgspec.Struct):
    SubjectEntity: str
    ObjectEntities: list[str]


@cache
def phrases() -> dict[str, str]:
    """Return Wikidata property -> verb phrase between subject and object."""
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))


def of_examples(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[Fact]:
    """Yield the facts of a labelled split, with the relation's clozes. An id is never taught as a name."""
    for example in examples:
        relation = relations[example.query.relation]
        ids = tuple(gold.id or "" for gold in example.objects if gold.name)
        if ids or not example.objects:
            yield Fact(example.query.subject, relation.name, relation.clozes, example.names, ids)


def of_kamel(benchmark: Kamel, relations: Mapping[str, Relation]) -> Iterator[Fact]:
    """Yield KAMEL's facts of the train split (Kalo and Fichtel 2022).

    If exactly one relation module has the property, its name and clozes are used.
    """
    modules = grouped(
        (relation.property, relation)
        for relation in {relation.name: relation for relation in relations.values()}.values()
    )
    for (name, split), facts in benchmark.facts.items():
        wordings = [(relation.name, relation.clozes) for relation in modules[name]]
        if len(wordings) != 1:
            wordings = [(name, (f"{{subject}} {phrases()[name]} {{mask}}.",))] if name in phrases() else []
        for (called, clozes), fact in product(wordings, facts if split == "train" else ()):
            objects = tuple(answer.shown for answer in fact.objects)
            yield Fact(fact.subject, called, clozes, objects, ("",) * len(objects))


def of_silver(folder: Path, relations: Mapping[str, Relation]) -> Iterator[Fact]:
    """Yield distantly supervised triples. Each JSONL file is one relation, under any edition's name."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        relation = relations[path.name.removesuffix(".jsonl.gz")]
        for row in read_jsonl(path, _Row):
            objects = tuple(dict.fromkeys(text for text in row.ObjectEntities if text and not _ID.fullmatch(text)))
            if objects:
                yield Fact(row.SubjectEntity, relation.name, relation.clozes, objects, ("",) * len(objects))


_ID = re.compile(r"Q[0-9]+")
_POSSESSIVE = re.compile(r"['\u2019]s?(?!\w)")
_BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out subjects and facts.

    keys: normal forms of the subjects' names, aliases included. splits: names of their splits. stated: normal forms of
    (subject, object) of single facts about other subjects, whatever their relation.
    """

    keys: frozenset[str]
    splits: tuple[str, ...]
    stated: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, workspace: Workspace, aliases: Iterable[Sequence[str]] = ()) -> HeldOut:
        """Collect the subjects of all editions with data here. aliases: groups of names of one entity.

        InputError for an edition with only some of its held-out splits here.
        """
        named, held, splits = defaultdict[str, set[str]](set), set[str](), list[str]()
        for edition in workspace.editions.values():
            here = [split for split in edition.splits if workspace.has_data(edition, split)]
            for split in edition.splits if here else ():
                if split == "train" and split not in here:
                    continue
                rows = workspace.queries(edition, split)
                for query in rows:
                    named[query.subject_id or query.subject].add(query.subject)
                if split != "train":
                    splits.append(f"{edition.name}/{split}")
                    held.update(query.subject_id or query.subject for query in rows)
        keys = {reading for subject in held for name in named[subject] for reading in _readings(name)}
        matching = [group for group in aliases if not keys.isdisjoint(map(_key, group))]
        return cls(frozenset(keys.union(*(_readings(name) for group in matching for name in group))), tuple(splits))

    def names(self, subject: str) -> bool:
        """Return whether a name belongs to a held-out subject."""
        return not self.keys.isdisjoint(_readings(subject))

    def without(self, facts: Iterable[Fact]) -> tuple[list[Fact], int]:
        """Return the facts that may be taught, and the number of removed facts."""
        whole = list(facts)
        kept = [fact for fact in whole if not (self.names(fact.subject) or self.states(fact))]
        return kept, len(whole) - len(kept)

    def states(self, fact: Fact) -> bool:
        """Return whether a held-out fact has the same subject and one of the objects."""
        return any((_key(fact.subject), _key(name)) in self.stated for name in fact.objects)

    def unmentioned(self, sentences: Iterable[str]) -> tuple[list[str], int]:
        """Return the sentences without a name of a held-out subject, and the number of the others."""
        most = max((key.count(" ") for key in self.keys), default=0) + 1

        def mentions(sentence: str) -> bool:
            readings = {_key(sentence), _key(_POSSESSIVE.sub(" ", sentence))}
            return any(span in self.keys for reading in readings for span in _spans(reading.split(), most))

        whole = list(sentences)
        kept = [sentence for sentence in whole if not mentions(sentence)]
        return kept, len(whole) - len(kept)

    def check(self, facts: Iterable[Fact]) -> None:
        """Check that no fact is about a held-out subject. LmkbcError names one that is."""
        overlap = {reading for fact in facts for reading in _readings(fact.subject)} & self.keys
        if overlap:
            raise LmkbcError(
                f"{len(overlap)} held-out subjects are among the facts to train on, first {min(overlap)!r}"
            )


def _spans(words: Sequence[str], most: int) -> Iterator[str]:
    """Return all runs of up to `most` words."""
    return (" ".join(words[start : start + size]) for size in range(1, most + 1) for start in range(len(words)))


def _key(name: str) -> str:
    """Return the normal form of a name; for a name of punctuation only, the name itself."""
    return folded_key(name) or name.strip()


def _readings(name: str) -> set[str]:
    """Return the forms in which a name may occur: also without brackets, article or spaces."""
    whole = {_key(name), _key(_BRACKETS.sub(" ", name))}
    readings = whole | {reading.removeprefix("the ") for reading in whole}
    return (readings | {reading.replace(" ", "") for reading in readings}) - {""}


def stated(kamel: Kamel) -> frozenset[tuple[str, str]]:
    """Return the normal forms of subject and object, in each spelling, of the facts of KAMEL's dev and test splits."""
    asked = (fact for (_, split), facts in kamel.facts.items() if split != "train" for fact in facts)
    return frozenset(
        (_key(fact.subject), _key(name)) for fact in asked for answer in fact.objects for name in answer.names
    )


def alias_groups(examples: Iterable[Example], kamel: Kamel | None = None) -> list[Sequence[str]]:
    """Return groups of names of one entity: from objects of labelled rows, and from KAMEL's test split."""
    golds = [gold for example in examples for gold in example.objects]
    by_id = grouped((gold.id, name) for gold in golds if gold.id for name in gold.names)
    groups: list[Sequence[str]] = [*(gold.names for gold in golds), *(sorted({*names}) for names in by_id.values())]
    tested = (facts for (_, split), facts in kamel.facts.items() if split == "test") if kamel else ()
    groups += [gold.names for facts in tested for fact in facts for gold in fact.objects]
    return groups
