"""A recipe's table of a generator over a masked LM: its checks, and the construction of live or recorded generators."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lmkbc.ask.frames import Frames
from lmkbc.errors import InputError
from lmkbc.generate.masked.answers import VETO, AnswerCleaning, ClozeAnswers, origins_of
from lmkbc.generate.masked.generator import MaskedGenerator
from lmkbc.generate.masked.settings import ProbeSettings, for_relation
from lmkbc.generate.recorded import Recorded, replayed
from lmkbc.generate.replay import Replay, names_model
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.groups import grouped
from lmkbc.models.base import Reply
from lmkbc.models.files import model_name
from lmkbc.models.masked.backbone import load
from lmkbc.notes import Notes
from lmkbc.relation import OTHERS, Precondition, Relation
from lmkbc.run.base import RecordedFile, Run
from lmkbc.settings import changed, checked
from lmkbc.types import CandidateSet, Generator, Query


@dataclass(frozen=True, kw_only=True)
class Masked(GeneratorSpec):
    """The table of a generator over a masked language model.

    model: one for all relations, or a table of models by relation, in any spelling, and "*" for all others. frames:
    file of frames (see `lmkbc.ask.frames`). Its `clozes` replace those of `probe`, and its `precondition` rewords the
    first precondition. With `forms`, that precondition rewrites the clozes of the file.
    """

    model: str | Mapping[str, str] = ""
    revision: str | None = None
    trust_remote_code: bool = False
    device: str | None = None
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    frames: str = ""

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

    def preconditions(self, relation: Relation) -> Sequence[Precondition]:
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
    def models(self) -> Sequence[str]:
        """Return the models that the table names."""
        named = self.model.values() if isinstance(self.model, Mapping) else (self.model,)
        return [*dict.fromkeys(filter(None, named))]

    @property
    def called(self) -> tuple[str, ...]:
        """Return its name, and those of its models."""
        return (*super().called, *self.models)

    @property
    def reads_files(self) -> bool:
        """Return whether files are entity vectors."""
        return self.probe.vectors == "from"

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
        """Return the generator. Raise InputError if no model, or no file of vectors, is named."""
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
        """Raise InputError for scores of another model than the recipe's, unless an option names their model."""
        others = [name for name in recorded if not names_model(name, self)]
        if others and self.models and not run.model:
            raise InputError(
                f"the recorded answers are of {', '.join(others)}, and the limits of this recipe are for "
                f"{', '.join(self.models)}: name another file with --from, or the model with --model {others[0]}"
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
