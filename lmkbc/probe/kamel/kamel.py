"""KAMEL as a benchmark: its data from any triples, and its questions to a local model or a server.

Data: Kalo and Fichtel 2022; the filters and their order are those of the authors' create_train_dev_test_split.py. Their
first step keeps only facts that English Wikipedia states. It is left to the user.

Questions: every answer is stored as soon as it arrives, so that a killed run can be resumed. The tables show the
published scores for comparison.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import DirectoryKind, check_replaceable, with_record, write_bytes, write_directory
from lmkbc.files.writable import check_new
from lmkbc.models.base import Form, Prompt, Sampling
from lmkbc.models.store_place import default_place
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Sheet, opened, percent, texts, wanted_tables
from lmkbc.probe.kamel.kamel_data import (
    END,
    LAMA,
    SPLITS,
    Kamel,
    KamelAnswer,
    KamelFact,
    check_wording,
    prompts,
    questions,
    read_kamel,
)
from lmkbc.probe.kamel.kamel_scores import (
    PUBLISHED,
    PUBLISHED_LABELS,
    PUBLISHED_LAMA,
    PUBLISHED_MAJORITY,
    PUBLISHED_PROPERTIES,
    KamelTable,
    by_year,
    query_score,
    score,
    year_properties,
    year_table,
)
from lmkbc.probe.kmir.questions import TypedTriple, read_rows
from lmkbc.probe.lama.lama_data import Pair, pairs_of, read_trex
from lmkbc.settings import listed

TABLES = ("overall", "by-answers", "by-property", "years", "lama-facts")
"""Tables of the command, in the order of printing. The last one needs LAMA's facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KamelBenchmark:
    """KAMEL's questions, for a local causal model or for a server's."""

    source: Annotated[
        Path,
        Meta(
            description="KAMEL.tar.xz, or the directory that holds P36/test.jsonl and the like.",
            extra={"argument": True},
        ),
    ]
    model: Annotated[str, Meta(description="Causal model (id, directory), or the server's name for one.")]
    shots: Annotated[int, Meta(ge=0, description="Examples before each question; the paper has 1, 5 and 10.")] = 5
    fixed: Annotated[
        bool,
        Meta(
            description="The same examples per property (fast), or others per query.",
            extra={"flags": ("--fixed/--random",)},
        ),
    ] = False
    seed: Annotated[int, Meta(description="Seed of the examples.")] = 0
    properties: Annotated[str | None, Meta(description="Only these properties, comma-separated.")] = None
    split: Annotated[Literal["test", "dev"], Meta(description="test or dev.")] = "test"
    limit: Annotated[int | None, Meta(ge=1, description="At most N queries per property.")] = None
    templates: Annotated[Path | None, Meta(description="Questions in place of ours, such as the authors' file.")] = None
    lama: Annotated[
        Path | None, Meta(description="LAMA's directory of relations.jsonl and TREx/, whose facts are asked as well.")
    ] = None
    lama_train: Annotated[
        Path | None, Meta(description="AutoPrompt's P36/train.jsonl as examples for LAMA's; default: KAMEL's train.")
    ] = None
    table: Annotated[
        str | None, Meta(description=f"Print only these tables, comma-separated, of {', '.join(TABLES)}.")
    ] = None
    out: Annotated[Path | None, Meta(description="Write the completions as JSONL.")] = None
    form: Annotated[
        Literal["chat", "completion"], Meta(description="How a server is asked: chat (turns) or completion (one text).")
    ] = "chat"

    def run(self, run: BenchmarkRun) -> Findings:
        """Ask the model, and score its answers in the published way and after stripping."""
        tables = wanted_tables(self.table, TABLES, TABLES if self.lama else TABLES[:-1])
        kept = default_place(run.servers.get("store"))
        check_new(self.out, self.source, self.templates, kept if isinstance(kept, Path) else None)
        wording, wanted = questions(self.templates), listed(self.properties)
        data = read_kamel(self.source, properties=wanted, splits=("train", self.split))
        given = data.properties if wanted is None else sorted(set(wanted), key=lambda name: (len(name), name))
        for name in given:
            data.of(name, self.split)  # raises InputError for a missing split before a model is loaded
        lama = lama_questions(self.lama, data, self.lama_train) if self.lama and "lama-facts" in tables else None
        shared = [name for name in given if name in (LAMA if lama is None else lama.properties)]
        names = _needed({"years": year_properties(data, given), "lama-facts": shared}, given, tables)
        check_wording(names, wording)
        local = run.servers.get("base_url") is None
        form: Form = "completion" if local or self.form == "completion" else "chat"
        asked = [*self.questions(data, wording, names, form=form)]
        of_lama = [*self.questions(lama, wording, shared, form=form, split="test")] if lama else []
        answers = texts(opened(self.model, run), [prompt for _, prompt in asked + of_lama], sampling(form), run)
        pairs = [(fact, text.strip()) for (fact, _), text in zip(asked + of_lama, answers, strict=True)]
        replies, lamas = pairs[: len(asked)], pairs[len(asked) :]
        drawn = f"{self.shots} {'fixed' if self.fixed else 'random'} shots" if self.shots else "no shots"
        many = f"{counted(len(replies), 'query')} of {counted(len(names), 'property')}"
        more = f", and {len(lamas)} of LAMA" if lamas else ""
        run.note(f"{self.model}, {drawn}: {many}, {self.split}{more}")
        if "lama-facts" in tables and not self.lama:
            run.note("LAMA's facts are not asked: name the directory of its relations.jsonl and TREx/ with --lama")
        if self.out is not None:
            rows = (
                {"property": fact.property, "subject": fact.subject, "completion": text, "facts": whose}
                for whose, part in (("KAMEL", replies), ("LAMA", lamas))
                for fact, text in part
            )
            write_bytes(self.out, msgspec.json.Encoder().encode_lines(rows), new=True)
        compared = lama_tables([pair for pair in replies if pair[0].property in shared], lamas)
        return self._findings(data, replies, compared, tables)

    def questions(
        self,
        data: Kamel,
        wording: Mapping[str, str],
        names: Iterable[str],
        *,
        form: Form = "completion",
        split: str | None = None,
    ) -> Iterator[tuple[KamelFact, Prompt]]:
        """Yield the facts of some properties, at most `limit` of each, with their prompts."""
        for name in names:
            facts, train = data.of(name, split or self.split), data.of(name, "train")
            chosen = list(islice(facts, self.limit))
            yield from prompts(chosen, train, wording, self.shots, fixed=self.fixed, seed=self.seed, form=form)

    def _findings(
        self, data: Kamel, replies: list[tuple[KamelFact, str]], compared: LamaTables, tables: Collection[str]
    ) -> Findings:
        ways = {
            "published": score(replies),
            "published, labels only": score(replies, alternatives=False),
            "stripped": score(replies, strip=True),
            "stripped, labels only": score(replies, strip=True, alternatives=False),
        }
        controls = learned(data, (fact for fact, _ in replies))
        beside = {name: score(made) for name, made in controls.items()}
        if left := hard(replies, controls):
            beside["published, what no control answers"] = score(left)
        whole = ways | beside
        years = year_table(data, replies)
        values: dict[str, Any] = {way: asdict(table) for way, table in whole.items()} | {"years": years}
        sheets = [overall(whole), by_answers(whole), by_property(ways)]
        sheets += [by_year(years)] if years["answers"] else []
        sheets += [by_facts(compared)] if compared else []
        if "lama-facts" in tables:
            values["lama-facts"] = {whose: asdict(table) for whose, (table, _) in compared.items()}
        return Findings(values, [sheet for sheet in sheets if sheet.name in tables])


def _needed(needs: Mapping[str, Collection[str]], given: Sequence[str], tables: Collection[str]) -> Sequence[str]:
    """Return the properties to ask. needs: table -> its properties, if it does not need all. InputError for none."""
    if set(tables) - needs.keys():
        return given
    names = [name for name in given if any(name in needs[table] for table in tables)]
    if not names:
        those = " or ".join(tables)
        raise InputError(f"no property asked about belongs into the table {those}: name others with --properties")
    return names


def sampling(form: Form) -> Sampling:
    """Return the paper's sampling: greedy decoding until `%`, at most a hundred tokens.

    A chat model ends its answers by itself.
    """
    return Sampling(temperature=0.0, max_tokens=100, stop=(END,) if form == "completion" else None)


def overall(ways: Mapping[str, KamelTable]) -> Sheet:
    """Return the table of means over properties by way of scoring, also F1 of each group; then the paper's figures.

    +-: half of the 95 % interval of F1, by bootstrap over queries.
    """
    heads = ["scoring", "P %", "R %", "F1 %", "+-", "entities", "literals", "LAMA's", "properties"]
    rows: list[list[Any]] = []
    for way, table in ways.items():
        groups = [mean.f1 if mean.count else None for mean in (table.entities, table.literals, table.lama)]
        mean = table.overall
        rows.append([way, *percent(mean.p, mean.r, mean.f1, table.half_width, *groups), mean.count])
    for name, scores in PUBLISHED.items():
        rows += ([f"paper: {name}, {counted(k, 'shot')}", *values, *[None] * 4, 234] for k, values in scores.items())
    for name, labels in PUBLISHED_LABELS.items():
        rows += (
            [f"paper: {name}, {counted(k, 'shot')}, labels only", None, None, f1, *[None] * 4, 234]
            for k, f1 in labels.items()
        )
    rows.append(["paper: majority object", None, None, PUBLISHED_MAJORITY, *[None] * 4, 234])
    rows += ([f"paper: OPT-13b, 10 shots, {whose}", *[None] * 6, f1, 40] for whose, f1 in PUBLISHED_LAMA.items())
    return Sheet(heads, rows, "overall")


def by_answers(ways: Mapping[str, KamelTable]) -> Sheet:
    """Return the table of F1 by the number of gold answers of a query."""
    counts = sorted({count for table in ways.values() for count in table.by_answers})
    scores = {way: [table.by_answers.get(count) for count in counts] for way, table in ways.items()}
    rows: list[list[Any]] = [
        [way, *percent(*(mean.f1 if mean else None for mean in means))] for way, means in scores.items()
    ]
    rows.append(["queries", *(mean.count if mean else None for mean in scores["published"])])
    return Sheet(["F1 % by number of gold answers", *map(str, counts)], rows, "by-answers")


def by_property(ways: Mapping[str, KamelTable]) -> Sheet:
    """Return the table of scores by property."""
    scored = [f"F1 %, {way}" for way in ways]
    heads = ["property", "kind", "queries", "P %, published", "R %, published", *scored, "F1 %, paper"]
    plain = ways["published"]
    rows = [
        [
            *(name, plain.kinds[name], mean.count),
            *percent(mean.p, mean.r, *(table.properties[name].f1 for table in ways.values())),
            PUBLISHED_PROPERTIES.get(name),
        ]
        for name, mean in plain.properties.items()
    ]
    return Sheet(heads, rows, "by-property")


KAMELS, LAMAS = PUBLISHED_LAMA
"""Names of the rows, by the origin of the facts."""


def lama_questions(directory: Path, data: Kamel, examples: Path | None = None) -> Kamel:
    """Return LAMA's facts of KAMEL's properties as a test split, with a train split for examples.

    examples: directory with P36/train.jsonl, as AutoPrompt made them and the paper used them; default: KAMEL's train
    split.
    """
    facts: dict[tuple[str, str], tuple[KamelFact, ...]] = {}
    for relation in read_trex(directory):
        if relation.name in LAMA and (relation.name, "train") in data.facts:
            taught = data.of(relation.name, "train")
            train = (
                taught
                if examples is None
                else _facts(relation.name, pairs_of(examples / relation.name / "train.jsonl"))
            )
            facts |= {(relation.name, "test"): _facts(relation.name, relation.facts), (relation.name, "train"): train}
    return Kamel(facts)


def _facts(name: str, pairs: Sequence[Pair]) -> tuple[KamelFact, ...]:
    return tuple(KamelFact(name, subject, (KamelAnswer(object_),)) for subject, object_ in pairs)


LamaTables = Mapping[str, tuple[KamelTable, KamelTable]]
"""Scores of KAMEL's facts and of LAMA's, by name of the row: as published, and after stripping."""


def lama_tables(kamels: Sequence[tuple[KamelFact, str]], lamas: Sequence[tuple[KamelFact, str]]) -> LamaTables:
    """Return the scores of the answers to KAMEL's facts, and to LAMA's if they were asked."""
    asked = {KAMELS: kamels, LAMAS: lamas}
    return {whose: (score(pairs), score(pairs, strip=True)) for whose, pairs in asked.items() if pairs}


def by_facts(tables: LamaTables) -> Sheet:
    """Return the table, with the paper's figures below."""
    heads = ["facts", "P %", "R %", "F1 %", "+-", "F1 %, stripped", "questions", "relations"]
    rows = []
    for whose, (plain, stripped) in tables.items():
        mean, asked = plain.overall, sum(of_property.count for of_property in plain.properties.values())
        shares = percent(mean.p, mean.r, mean.f1, plain.half_width, stripped.overall.f1)
        rows.append([whose, *shares, asked, mean.count])
    for whose, f1 in PUBLISHED_LAMA.items():
        rows.append([f"paper: OPT-13b, 10 shots, {whose}", None, None, f1, None, None, None, 40])
    return Sheet(heads, rows, "lama-facts", "LAMA's facts beside KAMEL's, table 4 of the paper")


Answered = list[tuple[KamelFact, str]]


def learned(benchmark: Kamel, facts: Iterable[KamelFact]) -> dict[str, Answered]:
    """Return control -> its answers to some facts, one object each.

    A control learns a property's objects and the words of its subjects, and nothing else (after Zhong, Friedman and
    Chen, NAACL 2021); the paper has the first one. No control learns from a train fact whose subject is in these facts.
    """
    from lmkbc.train.random_controls import LearnedControls

    tested = list(facts)
    train = benchmark.train_of(tested)
    controls = LearnedControls((fact.subject, fact.property, answer.shown) for fact in train for answer in fact.objects)
    answers = {"majority of train": controls.majority, "naive Bayes of train": controls.naive_bayes}
    return {name: [(fact, answer(fact.subject, fact.property)) for fact in tested] for name, answer in answers.items()}


def hard(answers: Sequence[tuple[KamelFact, str]], controls: Mapping[str, Sequence[tuple[KamelFact, str]]]) -> Answered:
    """Return the answers to queries that no control answers in full. The controls' answers are in the same order."""
    easy = [
        any(query_score(*pair, strip=True) == (1.0, 1.0) for pair in pairs)
        for pairs in zip(*controls.values(), strict=True)
    ]
    return [pair for pair, is_easy in zip(answers, easy, strict=True) if not is_easy]


MOST = 10
"""Most objects of a question."""
LAYOUT = DirectoryKind("data in KAMEL's layout", "manifest.json", form=re.compile(r"P[0-9]+/(?:train|dev|test)\.jsonl"))
"""Kind of the directory that `kamel-build` writes."""
_PROPERTY = re.compile(r"P[0-9]+")

Objects = dict[str, tuple[int, list[str]]]
"""Object of a question -> (number of its first triple, from 0, and its aliases)."""
Queries = dict[str, dict[str, Objects]]
"""Property -> subject -> its objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KamelBuild:
    """Data in KAMEL's layout, built from triples."""

    triples: Annotated[
        Path,
        Meta(
            description="JSONL or TSV of subject, property, object; JSONL may have object_aliases. Or KAMEL.",
            extra={"argument": True},
        ),
    ]
    out: Annotated[Path, Meta(description="Directory for P36/train.jsonl and the like.")]
    train: Annotated[int, Meta(ge=1, description="Questions of a property to learn from.")] = 1000
    dev: Annotated[int, Meta(ge=1, description="Questions to choose settings by.")] = 200
    test: Annotated[int, Meta(ge=1, description="Questions to test on.")] = 200
    seed: Annotated[int, Meta(description="The same seed writes the same bytes.")] = 0

    def run(self, run: BenchmarkRun) -> Findings:
        """Filter the triples, draw the questions of each property, and write them in three splits."""
        check_replaceable(self.out, LAYOUT)
        rows = read_rows(self.triples)
        if others := [row.relation for row in rows if not _PROPERTY.fullmatch(row.relation)]:
            raise InputError(f"{self.triples}: {others[0]!r} is no property as KAMEL's layout has them: write P36")
        sizes = {"train": self.train, "dev": self.dev, "test": self.test}
        drawn, counts = selected(rows, sum(sizes.values()), self.seed)
        files: dict[str, bytes] = {}
        for name, queries in drawn.items():
            subjects = iter(queries.items())
            for split in SPLITS:
                lines = [_line(*next(subjects), split) for _ in range(sizes[split])]
                files[f"{name}/{split}.jsonl"] = msgspec.json.Encoder().encode_lines(lines)
        write_directory(self.out, with_record(LAYOUT, files, {"seed": self.seed}), LAYOUT)
        many = counted(sum(map(len, drawn.values())), "query")
        run.note(f"{self.out}: {many} of {counted(len(drawn), 'property')}")
        heads = ["filter", "facts removed", "facts left", "queries left", "properties left"]
        table = [[what, *count.values()] for what, count in counts.items()]
        return Findings(counts, [Sheet(heads, table, "filters")])


def selected(rows: Sequence[TypedTriple], size: int, seed: int) -> tuple[Queries, dict[str, dict[str, int]]]:
    """Return `size` questions of each property in random order, and the counts of each filter.

    Subjects with the same name are the same subject. InputError if no property has enough questions.
    """
    queries: Queries = {}
    for number, row in enumerate(rows):
        objects = queries.setdefault(row.relation, {}).setdefault(row.subject, {})
        aliases = objects.setdefault(row.object, (number, []))[1]
        aliases += [alias for alias in row.object_aliases if alias not in aliases]
    filters: dict[str, Callable[[str, dict[str, Objects]], dict[str, Objects]]] = {
        "fact that is there already": lambda _, by_subject: by_subject,
        "object within its subject's name": lambda _, by_subject: {
            subject: kept
            for subject, objects in by_subject.items()
            if (kept := {name: about for name, about in objects.items() if not is_part(name, subject)})
        },
        f"subject of more than {MOST} objects": lambda _, by_subject: {
            subject: objects for subject, objects in by_subject.items() if len(objects) <= MOST
        },
        f"property of fewer than {size} queries": lambda _, by_subject: by_subject if len(by_subject) >= size else {},
        "not drawn": lambda name, by_subject: {
            subject: by_subject[subject] for subject in random.Random(f"{seed} {name}").sample(sorted(by_subject), size)
        },
    }
    before, counts = len(rows), dict[str, dict[str, int]]()
    for what, kept_of in filters.items():
        queries = {name: kept for name, by_subject in queries.items() if (kept := kept_of(name, by_subject))}
        facts = sum(len(objects) for by_subject in queries.values() for objects in by_subject.values())
        left = {"facts": facts, "queries": sum(map(len, queries.values())), "properties": len(queries)}
        counts[what] = {"removed": before - facts, **left}
        before = facts
    if not queries:
        raise InputError(f"no property has {size} queries after the filters: lower --train, --dev or --test")
    return queries, counts


def is_part(label: str, subject: str) -> bool:
    """Return whether a label is an n-gram of the subject's words. Case and commas are ignored.

    The authors' script removes commas only from the subject. So KAMEL has "I, Robot" as an object of "I, Robot".
    """
    part, whole = (f" {' '.join(name.lower().replace(',', ' ').split())} " for name in (label, subject))
    return part in whole


def _line(subject: str, objects: Objects, split: str) -> dict[str, Any]:
    """Return a line of a split: labels, and in the test split all names. There, literals have no label, as in KAMEL."""
    index = [number for number, _ in objects.values()]
    if split != "test":
        return {"index": index, "sub_label": subject, "obj_label": list(objects)}
    named = [
        {"rdf": None, "chosen": name, "alternative": list(dict.fromkeys([*aliases, name]))}
        if KamelAnswer(name).literal
        else {"rdf": name, "chosen": name, "alternative": [alias for alias in aliases if alias != name]}
        for name, (_, aliases) in objects.items()
    ]
    return {"index": index, "sub_label": subject, "obj_label": named}
