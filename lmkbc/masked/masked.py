"""Candidates from a masked LM: clozes are filled, their answers cleaned and merged, and vetoes applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch

from lmkbc.ask.builder import Frames
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.files.places import RecordedFile
from lmkbc.generate.recorded import Recorded, replayed
from lmkbc.generate.replay import Replay, names_model
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.masked.backbone import ON_ACCELERATOR, Backbone, Clozes, Dtype, Layout, load
from lmkbc.masked.candidates import VETO, ClozeAnswers, Scores, origins_of
from lmkbc.masked.cloze_settings import TOP_K, ProbeSettings, for_relation
from lmkbc.masked.forward import Forward
from lmkbc.masked.preconditions import Asker, Prepared
from lmkbc.masked.soft_prompts import cloze_of, read_prompts, with_prompts
from lmkbc.masked.vocabulary import Words
from lmkbc.models.base import Reply
from lmkbc.models.identity import model_name
from lmkbc.notes import Notes
from lmkbc.relation import OTHERS, FirstCloze, Relation
from lmkbc.session.run import Run
from lmkbc.settings import changed, checked
from lmkbc.types import CandidateSet, Example, Generator, Query, grouped

Request = tuple[str, str, Relation]
"""A template, a subject, and the relation."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Names, each with the id of its token; a token may have several names."""

    names: tuple[str, ...]
    ids: tuple[int, ...]

    @classmethod
    def of_words(cls, words: Words) -> Lexicon:
        """Return all whole words of the vocabulary."""
        if not words.plain:
            raise InputError("the model's vocabulary holds no whole word: nothing is left to propose")
        return cls(tuple(words.plain.values()), tuple(words.plain))

    @classmethod
    def of_names(cls, words: Words, names: Iterable[str]) -> Lexicon:
        """Return the names that are a single token."""
        known = {name: single for name in names if (single := words.single(name)) is not None}
        return cls(tuple(known), tuple(known.values()))

    def answers(
        self, probe: ProbeSettings, forward: Forward, clozes: Clozes, requests: Sequence[Request]
    ) -> list[dict[str, float]]:
        """Return the most probable names at the mask of each cloze, best first, with their probabilities.

        Probabilities of tokens with the same name are summed.
        """
        answers: list[dict[str, float]] = [{} for _ in requests]
        if not self.names:
            return answers
        ids = torch.tensor(self.ids, dtype=torch.int64)
        most = min(max(for_relation(probe.top_k, relation, TOP_K) for *_, relation in requests), len(ids))
        inputs = clozes.inputs([template for template, *_ in requests], [subject for _, subject, _ in requests])
        for indices, shares in probe.shares(forward, inputs, ids):
            best = shares.topk(most)
            for index, scores, places in zip(indices, best.values.tolist(), best.indices.tolist(), strict=True):
                for score, place in zip(scores, places, strict=True):
                    name = self.names[place]
                    answers[index][name] = answers[index].get(name, 0.0) + score
        return answers


def names_of_type(rows: Sequence[Example], relations: Mapping[str, Relation], qid: str) -> list[str]:
    """Return all names that labelled rows give to entities of a Wikidata class, as subjects or as objects."""
    names: dict[str, None] = {}
    for row in rows:
        relation = relations[row.query.relation]
        if relation.subject_type.qid == qid:
            names[row.query.subject] = None
        if relation.object_type.qid == qid:
            names |= dict.fromkeys(name for gold in row.objects for name in gold.names)
    return list(names)


CHUNK = 256
"""Queries per block: enough for full batches, few enough to show progress."""


class _Job(NamedTuple):
    """A cloze of a query, both as indices, and the subject to insert: the query's, or a word of its name."""

    query: int
    cloze: int
    template: str
    subject: str


class MaskedGenerator:
    """Asks a masked LM all clozes of every query. Scores are probabilities; a source is the model with a cloze.

    relations: by the edition's spelling. train: source of the closed vocabularies; an object that only the query's own
    row names is not proposed. A declared veto scales all scores and proposes NIL.
    """

    def __init__(
        self,
        backbone: Backbone,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        probe: ProbeSettings,
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._relations, self._edition, self._probe = relations, edition, probe
        self._origins = origins_of(train, edition)
        backbone = probe.prepared(backbone, self._named())
        self._soft: dict[str, Layout] = {}
        if prompts := read_prompts(Path(backbone.name)):
            backbone, layouts = with_prompts(backbone, prompts)
            self._soft = {cloze_of(one): layouts[one.name] for one in relations.values() if one.name in layouts}
        self._name = Path(backbone.name).name
        self._words, self._clozes = Words(backbone.tokenizer), Clozes(backbone, self._soft)
        if probe.null and self._words.single(probe.null) is None:
            raise InputError(
                f"probe.null is {probe.null!r}, which is not one token of {self._name}: choose another word, or "
                'add it as a token, as probe.component = "yang23/probe" does'
            )
        self._forward = probe.forward(backbone)
        named = partial(names_of_type, train, relations)
        self._asker = Asker(self._forward, self._clozes, self._words, named)
        self._answers = ClozeAnswers(probe, edition, relations, self._origins)
        self._lexicons: dict[str, Lexicon] = {}
        self._without: list[str] = []

    def _remarks(self) -> Iterator[str]:
        if cut := self._clozes.cut:
            yield f"{cut} clozes were cut to the longest input of {self._name}"
        if without := ", ".join(self._without):
            yield f"no train object of {without} is in {self._name}'s vocabulary: nothing is proposed there"
        plain = ", ".join(name for name, one in self._relations.items() if cloze_of(one) not in self._soft)
        if plain and self._soft:
            yield f"{self._name} has no soft prompt for {plain}: clozes are asked there"

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first, in the order of the queries' relations."""
        ordered = sorted(dict.fromkeys(queries), key=lambda query: query.relation)
        for start in range(0, len(ordered), CHUNK):
            yield from self._answered(ordered[start : start + CHUNK])
        for remark in self._remarks():
            self.notes.remark(remark)

    def _answered(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        prepared = self._prepared(queries)
        jobs: defaultdict[str, list[_Job]] = defaultdict(list)
        proposals: list[list[dict[str, float]]] = []
        for index, (query, known) in enumerate(zip(queries, prepared, strict=True)):
            templates = known.clozes or self._templates(query)
            proposals.append([{} for _ in templates])
            vocabulary = query.relation if self._probe.vocabulary == "train" else ""
            words = self._probe.subject_words(query.subject, self._relations[query.relation])
            for subject in (query.subject, *words):
                jobs[vocabulary] += [_Job(index, place, template, subject) for place, template in enumerate(templates)]
        for vocabulary, group in jobs.items():
            for job, scores in self._filled(vocabulary, group, queries):
                known_as = proposals[job.query][job.cloze]
                for name, score in self._answers.kept(queries[job.query], scores).items():
                    known_as[name] = max(score, known_as.get(name, 0.0))
        for query, proposed, known in zip(queries, proposals, prepared, strict=True):
            by_cloze = {str(place): scores for place, scores in enumerate(proposed)}
            yield self._answers.merged(query, by_cloze, known.vetoed, self._name)

    def _prepared(self, queries: Sequence[Query]) -> list[Prepared]:
        """Return the results of the preconditions for each query."""
        every_prepared = [Prepared()] * len(queries)
        for name, indices in grouped((query.relation, index) for index, query in enumerate(queries)).items():
            preconditions = self._probe.preconditions_of(self._relations[name])
            learned = self._asker.prepare(preconditions, [queries[index].subject for index in indices])
            for index, prepared in zip(indices, learned, strict=True):
                every_prepared[index] = prepared
        return every_prepared

    def _templates(self, query: Query) -> tuple[str, ...]:
        relation = self._relations[query.relation]
        soft = cloze_of(relation)
        return (soft,) if soft in self._soft else self._probe.templates(relation)

    def _filled(self, vocabulary: str, jobs: Sequence[_Job], queries: Sequence[Query]) -> Iterator[tuple[_Job, Scores]]:
        if vocabulary not in self._lexicons:
            self._lexicons[vocabulary] = self._lexicon(vocabulary)
            if not self._lexicons[vocabulary].names:
                self._without.append(vocabulary)
        lexicon = self._lexicons[vocabulary]
        relations = [self._relations[queries[job.query].relation] for job in jobs]
        requests = [(job.template, job.subject, relation) for job, relation in zip(jobs, relations, strict=True)]
        answers = lexicon.answers(self._probe, self._forward, self._clozes, requests)
        for job, relation, scores in zip(jobs, relations, answers, strict=True):
            yield job, self._answers.best(relation, scores)

    def _lexicon(self, relation: str) -> Lexicon:
        if self._probe.vocabulary == "all":
            return Lexicon.of_words(self._words)
        names = [*(self._origins[relation] if self._probe.vocabulary == "train" else self._probe.vocabulary)]
        if self._probe.null and (not relation or self._relations[relation].nullable(self._edition.name)):
            names.append(self._probe.null)
        lexicon = Lexicon.of_names(self._words, names)
        if not lexicon.names and self._probe.vocabulary != "train":
            raise InputError(
                f"no name of probe.vocabulary is in the vocabulary of {self._name}: nothing is left to propose; list "
                'others, or add them as tokens, as probe.component = "yang23/probe" does'
            )
        return lexicon

    def _named(self) -> set[str]:
        """Return the names that may be new tokens."""
        listed = [] if isinstance(self._probe.vocabulary, str) else self._probe.vocabulary
        known = (name for names in self._origins.values() for name in names)
        return {*listed, *filter(None, (self._probe.null,)), *known}


@dataclass(frozen=True, kw_only=True)
class Masked(GeneratorSpec):
    """The table of a generator over a masked language model.

    model: one for all relations, or a table of models by relation, in any spelling, and "*" for all others. frames:
    file of frames (see `lmkbc.ask.builder`). Its `clozes` replace those of `probe`, and its `precondition` rewords the
    first precondition. With `forms`, that precondition rewrites the clozes of the file. dtype: of the weights.
    """

    model: str | Mapping[str, str] = ""
    dtype: Dtype = "float32"
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    frames: str = ""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "revision": "fetch that revision, and give its directory as model",
        "trust_remote_code": "no model's own code is run here; name another model",
        **ON_ACCELERATOR,
    }

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return the table with the clozes of a file of frames; other relations get no clozes."""
        return {**table, "frames": frames, "probe": {**table.get("probe", {}), "clozes": {OTHERS: []}}}

    @cached_property
    def framed(self) -> Mapping[str, Sequence[str]]:
        """Return the clozes of the file of frames, by relation.

        Raise InputError for a value that is no list of clozes.
        """
        frames = Frames.read(self.frames)
        tables = {name: table.get("clozes", []) for name, table in frames.tables.items()}
        for name, clozes in tables.items():
            if not isinstance(clozes, list):
                raise InputError(f"{frames.name}, {name}: clozes is {clozes!r}: give a list of clozes")
            checked(ProbeSettings, {"clozes": {name: clozes}}, frames.name)
        return tables

    def templates(self, relation: Relation) -> Sequence[str]:
        """Return the clozes of a relation: those of the file of frames, else of the table `probe`."""
        return relation.entry(self.framed, self.probe.templates(relation))

    def preconditions(self, relation: Relation) -> Sequence[FirstCloze]:
        """Return the preconditions of a relation, in the words of the file of frames.

        Raise InputError for wrong ones.
        """
        asked, frames = self.probe.preconditions_of(relation), Frames.read(self.frames)
        name, frame = frames.of(relation)
        if not asked or "precondition" not in frame:
            return asked
        first = asked[0]
        words = {"cloze": frame["precondition"]}
        if "forms" in frame:
            words |= {"forms": frame["forms"], "clozes": self.templates(relation)}
        return [changed(first, words, f"{frames.name}, {name}.precondition"), *asked[1:]]

    @property
    def reads_files(self) -> bool:
        """Return whether files are no recorded answers."""
        return self.probe.reads_files

    @property
    def asks_model(self) -> bool:
        """Return True: the candidates of a masked model can be recorded."""
        return True

    def check(self, relations: Relations) -> None:
        """Raise InputError for an unknown relation."""
        super().check(relations)
        tables = {f"probe.{setting}": table for setting, table in self.probe.by_relation.items()}
        tables["frames"] = self.framed
        if isinstance(self.model, Mapping):
            tables["model"] = self.model
        for setting, table in tables.items():
            check_names(
                [name for name in table if name != OTHERS], relations, f"generator {self.component!r}: {setting}"
            )

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator. Raise InputError if no model is named."""
        probe = self.probe
        if run.answers is not None:
            return Replay(self._recorded(run.answers, run, notes) if run.answers else None, None)
        probe = probe.opened(run.files)
        asked = self.asked(run).items()
        clozes = {name: self.templates(relation) for name, relation in asked}
        if self.framed:
            asked_first = {name: self.preconditions(relation) for name, relation in asked}
            probe = replace(probe, clozes=clozes, preconditions=asked_first)
        if unasked := next((name for name, some in clozes.items() if not some), ""):
            raise InputError(
                f"no cloze for relation {unasked!r} of edition {run.edition.name}: add some to probe.clozes or frames"
            )
        by_model = grouped((run.model or for_relation(self.model, relation, ""), name) for name, relation in asked)
        if "" in by_model:
            raise InputError(
                f"no masked language model is named for {by_model[''][0]}: name one with --model (an id or a directory)"
            )
        parts = [(names, self._over(name, run, probe, notes)) for name, names in by_model.items()]
        return parts[0][1] if len(parts) == 1 else _ByRelation(parts)

    def _recorded(self, files: Sequence[RecordedFile], run: Run, notes: Notes) -> Recorded:
        """Return the generator over recorded scores, which are read like those of the model."""
        probe = self.probe
        answers = ClozeAnswers(probe, run.edition, run.relations, origins_of(run.train, run.edition))
        recorded = replayed(files, run, notes, clean=probe.clean, score=answers.of_row, read=_refuse_texts)
        self._check_models(recorded.models, run)
        if asked := [name for name, relation in self.asked(run).items() if probe.preconditions_of(relation)]:
            notes.remark(
                f"the preconditions of {', '.join(asked)} are not asked, since the answers are recorded: a row holds "
                f"their result as a candidate without an object whose source is {VETO!r}"
            )
        return recorded

    def _check_models(self, recorded: Sequence[str], run: Run) -> None:
        """Raise InputError for scores of another model than the recipe's, unless an option names their model."""
        others = [name for name in recorded if not names_model(name, self)]
        named = ", ".join(filter(None, self.models))
        if others and named and not run.model:
            raise InputError(
                f"the recorded answers are of {', '.join(others)}, and the limits of this recipe are for "
                f"{named}: name another file with --from, or the model with --model {others[0]}"
            )

    def _over(self, name: str, run: Run, probe: ProbeSettings, notes: Notes) -> MaskedGenerator:
        """Return the generator over one model."""
        backbone = load(name, offline=run.offline, dtype=self.dtype)
        notes.asked(model_name(name))
        return MaskedGenerator(backbone, run.edition, run.relations, run.train, probe, notes)


class _ByRelation:
    """Generator of several parts, each of which is asked about its own relations."""

    def __init__(self, parts: Sequence[tuple[Collection[str], Generator]]) -> None:
        self._parts = parts

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the sets of each part."""
        for relations, generator in self._parts:
            if some := [query for query in queries if query.relation in relations]:
                yield from generator.generate(some)


def _refuse_texts(_: Query, __: Sequence[Sequence[Reply | None]], name: str) -> CandidateSet:
    """Raise InputError for answers that are not scores."""
    raise InputError(
        f"the recorded answers of {name} are texts: a masked model's recipe reads candidates with scores; name such a "
        "file with --from, or a system that asks a language model"
    )
