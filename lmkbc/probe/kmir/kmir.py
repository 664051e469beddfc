"""KMIR as a benchmark, in three steps: build questions from triples, ask a model, and score the answers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import check_replaceable, with_record, write_bytes, write_directory
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.writable import check_directory, check_file
from lmkbc.models.base import LanguageModel, Message, Prompt, Sampling
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Sheet, TableNames, opened, texts, wanted_tables
from lmkbc.probe.kmir.kmir_scores import (
    SHEETS,
    asked_pairs,
    by_chance,
    by_cooccurrence,
    chance,
    curves,
    graded,
    pair_counts,
    score,
)
from lmkbc.probe.kmir.questions import (
    MASK,
    QUESTIONS,
    TYPES,
    Question,
    QuestionBuilder,
    read_guesses,
    read_triples,
    sample,
    split,
)
from lmkbc.probe.kmir.schema import read_schema
from lmkbc.train.text_lines import text_rows
from lmkbc.train.training import TrainingPlan
from lmkbc.types import grouped

SchemaPath = Annotated[
    Path | None, Meta(description="TOML schema of the relations, or one by name: kamel (default), domains, conceptnet.")
]
"""The option `--schema`."""

TABLES = (*SHEETS, "chance", "co-occurrence")
"""Tables of `kmir score`, in the order of printing."""
DEFAULT = ("by-type", "by-topic", "by-fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class KmirBuild:
    """Questions of the four types, built from triples."""

    triples: Annotated[
        Path,
        Meta(description="JSONL or TSV of subject, relation, object (and types); or KAMEL.", extra={"argument": True}),
    ]
    out: Annotated[Path, Meta(description="Directory for train.jsonl, dev.jsonl and test.jsonl.")]
    schema: SchemaPath = None
    seed: Annotated[int, Meta(description="The same seed writes the same bytes.")] = 0

    def run(self, run: BenchmarkRun) -> Findings:
        """Build the questions, and write them in three splits."""
        relations = read_schema(self.schema)
        check_replaceable(self.out, QUESTIONS)
        facts = read_triples(self.triples, relations)
        questions = list(QuestionBuilder(facts, relations, self.seed).questions())
        parts = split(questions, facts, self.seed)
        written = {f"{name}.jsonl": msgspec.json.Encoder().encode_lines(part) for name, part in parts.items()}
        write_directory(self.out, with_record(QUESTIONS, written, {"seed": self.seed}), QUESTIONS)
        counts = {name: Counter(question.type for question in part) for name, part in parts.items()}
        whole = sum(counts.values(), Counter[str]())
        rows = [[kind, whole[kind], *(part[kind] for part in counts.values())] for kind in TYPES]
        left = f"; {len(questions) - whole.total()} that two splits would share are left out"
        run.note(f"{self.out}: {counted(whole.total(), 'question')} on {counted(len(facts), 'fact')}{left}")
        return Findings(dict(whole), [Sheet(["type", "questions", *counts], rows, "questions")])


@dataclass(frozen=True, slots=True, kw_only=True)
class KmirRun:
    """KMIR's questions, for a masked or a causal model."""

    questions: Annotated[
        list[Path],
        Meta(description="Questions, as `kmir build` writes them; several files.", extra={"argument": True}),
    ]
    model: Annotated[str, Meta(description="Masked or causal model: id on the hub, or directory.")]
    out: Annotated[
        Path,
        Meta(description="Directory of the answers, one file per file of questions. A trained model is in OUT-model."),
    ]
    train: Annotated[
        Path | None, Meta(description="Questions that a masked model is trained on first, a causal one is shown.")
    ] = None
    dev: Annotated[Path | None, Meta(description="Questions to stop training early by.")] = None
    shots: Annotated[int, Meta(ge=0, description="Examples of train that a causal model is shown.")] = 5
    choose: Annotated[bool, Meta(description="A causal model's likeliest option, if a question leaves a choice.")] = (
        False
    )
    rate: Annotated[float, Meta(description="Peak learning rate.")] = 5e-5
    epochs: Annotated[int, Meta(ge=1, description="Passes over train.")] = 3
    batch: Annotated[int, Meta(ge=1, description="Questions per step.")] = 32
    seed: Annotated[int, Meta(description="Of training, of examples and of a sample.")] = 0
    limit: Annotated[int | None, Meta(ge=1, description="At most N questions of each type, drawn at random.")] = None

    def run(self, run: BenchmarkRun) -> Findings:
        """Ask the model. After a kill, finished training and answers are not repeated."""
        from lmkbc.probe.model_kinds import model_kind

        check_directory(self.out)
        if len({path.name for path in self.questions}) < len(self.questions):
            raise InputError("two files of questions have the same name, and so would their answers: rename one")
        for path in self.questions:
            check_file(self.out / path.name, *self.questions, self.train, self.dev)
        whole = [read_jsonl(path, Question) for path in self.questions]
        per_file = whole if self.limit is None else [sample(part, self.limit, self.seed) for part in whole]
        lessons, others = ([] if path is None else read_jsonl(path, Question) for path in (self.train, self.dev))
        every = [question for part in per_file for question in part]
        seen = {question.question for question in lessons}
        if repeated := sum(question.question in seen for question in every):
            run.note(
                f"{repeated} of {len(every)} questions are in {self.train} too: their answers are taught, not known"
            )
        kind = model_kind(self.model, offline=run.offline)
        replies = self._masked(every, lessons, others, run) if kind == "masked" else self._causal(every, lessons, run)
        rows = iter(zip(every, replies, strict=True))
        for path, part in zip(self.questions, per_file, strict=True):
            answers = [{"id": question.id, "ret": text} for question, text in (next(rows) for _ in part)]
            write_bytes(self.out / path.name, msgspec.json.Encoder().encode_lines(answers))
            how = f"{path} {self.out / path.name}{'' if self.limit is None else ' --answered'}"
            run.note(f"wrote {self.out / path.name}: score it with 'lmkbc probe kmir score {how}'")
        return Findings({"model": self.model, "kind": kind, "questions": len(every), "answers": str(self.out)})

    def _masked(
        self, every: Sequence[Question], lessons: Sequence[Question], others: Sequence[Question], run: BenchmarkRun
    ) -> list[str]:
        from lmkbc.local.checkpoint import identity
        from lmkbc.masked.backbone import load
        from lmkbc.probe.masked_answers import finetuned, guesses

        plan = TrainingPlan(
            rate=self.rate, epochs=self.epochs, batch=self.batch, seed=self.seed, decay=0.01, patience=2, every=200
        )
        with run.progress() as report:
            backbone = load(self.model, offline=run.offline)
            if lessons:
                mark = identity(self.model, backbone.model) or self.model
                place = self.out.with_name(f"{self.out.name}-model")
                backbone = finetuned(backbone, lessons, others, plan, place, mark, report)
            else:
                run.note("without --train the model was never taught to answer with eight masks: expect little")
            return guesses(backbone, every, report)

    def _causal(self, every: Sequence[Question], lessons: Sequence[Question], run: BenchmarkRun) -> list[str]:
        if self.dev:
            raise InputError(
                f"{self.model} is a causal model, which is shown examples and not trained: leave out --dev, "
                "or train an adapter with 'lmkbc train lora'"
            )
        shots = self.shots if self.train else 0
        model = opened(self.model, run)
        if not shots:
            run.note("without examples (--train, --shots) the model cannot know the form of answers: expect little")
        requests = list(prompts(every, lessons, shots, self.seed))
        replies = chosen(model, every, requests) if self.choose else {}
        free = [place for place in range(len(every)) if place not in replies]
        answers = texts(model, [requests[place] for place in free], sampling(shots), run, "questions")
        replies |= {place: text.strip().rstrip(".") for place, text in zip(free, answers, strict=True)}
        return [replies[place] for place in range(len(every))]


@dataclass(frozen=True, slots=True, kw_only=True)
class KmirScore:
    """Scores of answers: token F1 by type and topic, and consistency over the questions of a fact."""

    questions: Annotated[Path, Meta(description="Questions, as `kmir build` writes them.", extra={"argument": True})]
    answers: Annotated[
        Path, Meta(description='JSONL of {"id", "ret"}: a guess, or a list of guesses.', extra={"argument": True})
    ]
    answered: Annotated[bool, Meta(description="Leave out what has no answer, as after a run with --limit.")] = False
    table: TableNames = None
    corpus: Annotated[Path | None, Meta(description="Text, or JSONL of title and text, for --table co-occurrence.")] = (
        None
    )
    triples: Annotated[Path | None, Meta(description="What the questions were built from, for the same.")] = None
    schema: SchemaPath = None

    def run(self, run: BenchmarkRun) -> Findings:
        """Score the answers, with the published figures for comparison."""
        tables = wanted_tables(self.table, TABLES, DEFAULT)
        if "co-occurrence" in tables and not (self.corpus and self.triples):
            raise InputError("--table co-occurrence counts names in a text: give --corpus, and --triples for the names")
        file = read_jsonl(self.questions, Question)
        guesses = read_guesses(self.answers, file)
        items = [question for question in file if question.id in guesses] if self.answered else file
        if unanswered := sum(question.id not in guesses for question in items):
            run.note(f"no answer to {unanswered} of {counted(len(items), 'question')}: counted as wrong")
        table = score(items, guesses)
        sheets = [SHEETS[name](table, items) for name in tables if name in SHEETS]
        values = asdict(table)
        if "chance" in tables:
            expected = chance(items, file)
            values["chance"] = expected
            sheets.append(by_chance(table, expected))
        if "co-occurrence" in tables and self.corpus and self.triples:
            relations = read_schema(self.schema)
            pairs = asked_pairs(items, read_triples(self.triples, relations), relations)
            counts = pair_counts(pairs, (f"{row.title} {row.text}" for row in text_rows(self.corpus)))
            by_count = curves(graded(items, guesses), counts)
            values["co-occurrence"] = by_count
            sheets.append(by_cooccurrence(by_count))
        return Findings(values, sheets)


BLANK = "___"
ASKS = f"Here {BLANK} stands for"
CLOSING = " .!?\"'"


def sampling(shots: int) -> Sampling:
    """Return greedy sampling to the end of a line, or to the instruction, which small models repeat.

    Without examples, a model does not know that one answer is enough, so a full stop ends it.
    """
    return Sampling(temperature=0.0, max_tokens=24, stop=("\n", f" {ASKS}" if shots else ". "))


def lead(question: Question) -> str:
    """Return the text before the answer: the cloze up to its mask, or the whole cloze with a blank and an instruction.

    InputError for a question without exactly one mask.
    """
    before, *after = question.question.split(MASK)
    if len(after) != 1:
        raise InputError(f"question {question.id!r} needs {MASK} exactly once: {question.question!r}")
    if before.strip() and not after[0].strip(CLOSING):
        return before.rstrip()
    return f"{before}{BLANK}{after[0]} {ASKS}"


def prompts(questions: Sequence[Question], train: Sequence[Question], shots: int, seed: int = 0) -> Iterator[Prompt]:
    """Yield a prompt per question, after `shots` solved questions of its type about other facts.

    InputError if `train` has too few of a type.
    """
    pools = grouped((example.type, example) for example in train)
    drawn = {kind: random.Random(f"{seed} {kind}").sample(pool, len(pool)) for kind, pool in pools.items()}
    for question in questions:
        others = (example for example in drawn.get(question.type, ()) if example.fact != question.fact)
        chosen = [example for example, _ in zip(others, range(shots), strict=False)]
        if len(chosen) < shots:
            raise InputError(
                f"the train file has {len(chosen)} questions of type {question.type!r} on other facts, too few for "
                f"{shots} shots: give more, or say --shots {len(chosen)}"
            )
        solved = "".join(f"{lead(example)} {example.answer[0]}.\n" for example in chosen)
        yield Prompt((Message("user", solved),) if solved else (), (Message("user", lead(question)),), "completion")


def chosen(model: LanguageModel, questions: Sequence[Question], requests: Sequence[Prompt]) -> dict[int, str]:
    """Return place -> likeliest option, for each question with options; "" if its prompt exceeds the window."""
    places = [place for place, question in enumerate(questions) if question.choices]
    choices = [questions[place].choices for place in places]
    scored = model.score([requests[place] for place in places], choices)
    return {
        place: max(zip(row, names, strict=True))[1] if row and max(row) > -math.inf else ""
        for place, names, row in zip(places, choices, scored, strict=True)
    }
