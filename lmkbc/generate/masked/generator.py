"""Candidates from a masked LM: clozes are filled, their answers cleaned and merged, and vetoes applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from lmkbc.ask.frames import Frames
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.generate.masked.answers import VETO, ClozeAnswers
from lmkbc.generate.masked.cleaning import AnswerCleaning, origins_of
from lmkbc.generate.masked.ensemble import Scores
from lmkbc.generate.masked.lexicon import Lexicon, names_of_type
from lmkbc.generate.masked.preconditions import Asker, Prepared
from lmkbc.generate.masked.settings import ProbeSettings, for_relation
from lmkbc.generate.recorded import Recorded, replayed
from lmkbc.generate.replay import Replay
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.groups import grouped
from lmkbc.models.base import Reply
from lmkbc.models.files import model_name
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.clozes import Clozes, Layout
from lmkbc.models.masked.entity_space import mapped
from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.soft_prompts import cloze_of, read_prompts, with_prompts
from lmkbc.models.masked.vocabulary import Words, expand, piece_counts
from lmkbc.notes import Notes
from lmkbc.relation import OTHERS, Relation
from lmkbc.run.base import RecordedFile, Run
from lmkbc.settings import checked
from lmkbc.types import CandidateSet, Example, Generator, Query

CHUNK = 256
"""Queries answered at a time: enough for full batches, few enough to show progress."""


class _Job(NamedTuple):
    """A cloze of a query, by their indices, and the subject that fills it: the query's, or a word of its name."""

    query: int
    cloze: int
    template: str
    subject: str


@dataclass(frozen=True, kw_only=True)
class Masked(GeneratorSpec):
    """The table of a generator over a masked language model.

    model: one for all relations, or a table of models by relation, in any spelling, and "*" for all others. frames: a
    file of frames (see `lmkbc.ask.frames`), whose `clozes` come before those of `probe`.
    """

    model: str | Mapping[str, str] = ""
    revision: str | None = None
    trust_remote_code: bool = False
    device: str | None = None
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    frames: str = ""

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return a table that asks the clozes of a file of frames, and none of what that does not name."""
        return {**table, "frames": frames, "probe": {**table.get("probe", {}), "clozes": {OTHERS: []}}}

    @cached_property
    def framed(self) -> Mapping[str, Sequence[str]]:
        """Return the clozes of the file of frames, by relation. InputError for what is no list of clozes."""
        frames = Frames.read(self.frames)
        tables = {name: table.get("clozes", []) for name, table in frames.tables.items()}
        for name, clozes in tables.items():
            if not isinstance(clozes, list):
                raise InputError(f"{frames.name}, {name}: clozes is {clozes!r}: give a list of clozes")
            checked(ProbeSettings, {"clozes": {name: clozes}}, frames.name)
        return tables

    def templates(self, relation: Relation) -> Sequence[str]:
        """Return the clozes to ask of a relation: those of the file of frames, else of the table `probe`."""
        return relation.entry(self.framed, self.probe.templates(relation))

    @property
    def reads_files(self) -> bool:
        """Return whether files are entity vectors."""
        return self.probe.vectors == "from"

    @property
    def asks_model(self) -> bool:
        """A masked one, whose candidates can be recorded."""
        return True

    def check(self, relations: Relations) -> None:
        """InputError for a relation that does not exist."""
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
        """Return the generator. InputError where no model, or no file of vectors, is named."""
        probe = self.probe
        if run.answers is not None:
            return Replay(self._recorded(run.answers, run, notes) if run.answers else None, None)
        if probe.vectors == "from":
            if len(run.files) != 1:
                raise InputError(
                    "this system reads entity vectors: name one file in Wikipedia2Vec's format with --from"
                )
            probe = replace(probe, vectors=str(run.files[0]))
        asked = self.asked(run).items()
        clozes = {name: self.templates(relation) for name, relation in asked}
        probe = replace(probe, clozes=clozes) if self.framed else probe
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
        return parts[0][1] if len(parts) == 1 else ByRelation(parts)

    def _recorded(self, files: Sequence[RecordedFile], run: Run, notes: Notes) -> Recorded:
        """Return the generator over recorded scores, which are read as those of the model would be."""
        probe = self.probe
        origins = origins_of(run.train, run.edition)
        answers = ClozeAnswers(probe, AnswerCleaning(probe, run.edition, run.relations, origins))
        recorded = replayed(files, run, notes, clean=probe.clean, score=answers.of_row, read=_refuse_texts)
        self._check_models(recorded.models, run)
        if asked := [name for name, relation in self.asked(run).items() if probe.preconditions_of(relation)]:
            notes.remark(
                f"the preconditions of {', '.join(asked)} are not asked, since the answers are recorded: a row holds "
                f"their result as a candidate without an object whose source is {VETO!r}"
            )
        return recorded

    def _check_models(self, recorded: Sequence[str], run: Run) -> None:
        """InputError for scores of another model than the recipe's, where no option names their model."""
        wanted = {for_relation(self.model, relation, "") or "" for _, relation in self.asked(run).items()}
        named = [Path(name).name.casefold() for name in (*wanted, *self.called)]
        others = [model for model in recorded if not any(name in model.casefold() for name in named)]
        if others and not run.model:
            raise InputError(
                f"the recorded scores are of {', '.join(others)}, and the limits of this recipe are for "
                f"{', '.join(sorted(wanted))}: name another file with --from, or the model with --model {others[0]}"
            )

    def _over(self, name: str, run: Run, probe: ProbeSettings, notes: Notes) -> MaskedGenerator:
        """Return the generator over one model."""
        backbone = load(
            name,
            revision=self.revision,
            offline=run.offline,
            trust_remote_code=self.trust_remote_code,
            device=self.device,
        )
        notes.asked(model_name(name))
        return MaskedGenerator(backbone, run.edition, run.relations, run.train, probe, notes)


class ByRelation:
    """A generator of several parts, each of which is asked about relations of its own."""

    def __init__(self, parts: Sequence[tuple[Collection[str], Generator]]) -> None:
        self._parts = parts

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the sets of each part."""
        for relations, generator in self._parts:
            if own := [query for query in queries if query.relation in relations]:
                yield from generator.generate(own)


class MaskedGenerator:
    """Asks a masked LM every query's clozes. Scores are probabilities; a source is the model with a cloze.

    relations: by the edition's spelling. train: what the closed vocabularies come from; an object that only the
    query's own row names is not proposed. A declared veto scales all scores and proposes to answer nothing.
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
        if probe.objects == "expand":
            backbone = self._expanded(backbone)
        self._soft: dict[str, Layout] = {}
        if probe.soft_prompts:
            backbone, layouts = with_prompts(backbone, read_prompts(Path(backbone.name)))
            self._soft = {cloze_of(one): layouts[one.name] for one in relations.values() if one.name in layouts}
        self._name = Path(backbone.name).name
        self._words, self._clozes = Words(backbone.tokenizer), Clozes(backbone, self._soft)
        if probe.null and self._words.single(probe.null) is None:
            raise InputError(
                f"probe.null is {probe.null!r}, which is not one token of {self._name}: choose another word, or set "
                'probe.objects = "expand"'
            )
        self._forward = Forward(backbone, probe.precision, probe.match)
        named = partial(names_of_type, train, relations)
        self._asker = Asker(self._forward, self._clozes, self._words, named)
        self._answers = ClozeAnswers(probe, AnswerCleaning(probe, edition, relations, self._origins))
        self._lexicons: dict[str, Lexicon] = {}
        self._without: list[str] = []

    def _remarks(self) -> Iterator[str]:
        if cut := self._clozes.cut:
            yield f"{cut} clozes were cut to the longest input of {self._name}"
        if without := ", ".join(self._without):
            yield f"no train object of {without} is in {self._name}'s vocabulary: nothing is proposed there"
        plain = ", ".join(name for name, one in self._relations.items() if cloze_of(one) not in self._soft)
        if plain and self._probe.soft_prompts:
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
            for subject in (query.subject, *self._answers.cleaning.words(query)):
                jobs[vocabulary] += [_Job(index, place, template, subject) for place, template in enumerate(templates)]
        for vocabulary, group in jobs.items():
            for job, scores in self._filled(vocabulary, group, queries):
                known_as = proposals[job.query][job.cloze]
                for name, score in self._answers.cleaning.kept(queries[job.query], scores).items():
                    known_as[name] = max(score, known_as.get(name, 0.0))
        for query, proposed, known in zip(queries, proposals, prepared, strict=True):
            by_cloze = {str(place): scores for place, scores in enumerate(proposed)}
            yield self._answers.merged(query, by_cloze, known.vetoed, self._name)

    def _prepared(self, queries: Sequence[Query]) -> list[Prepared]:
        """Return what the preconditions of each query's relation make of it."""
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
                'others, or set probe.objects to "expand"'
            )
        return lexicon

    def _expanded(self, backbone: Backbone) -> Backbone:
        probe = self._probe
        listed = [] if isinstance(probe.vocabulary, str) else probe.vocabulary
        names = {*listed, *filter(None, (probe.null,)), *(name for known in self._origins.values() for name in known)}
        vectors = mapped(Path(probe.vectors), backbone, names) if probe.vectors else None
        return expand(backbone, names, probe.compose, piece_counts(backbone, names), vectors)


def _refuse_texts(_: Query, __: Sequence[Sequence[Reply | None]], name: str) -> CandidateSet:
    """Raise InputError for answers that are no scores."""
    raise InputError(
        f"the recorded answers of {name} are texts: a masked model's recipe reads candidates with scores; name such a "
        "file with --from, or a system that asks a language model"
    )
