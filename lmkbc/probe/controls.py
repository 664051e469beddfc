"""Recall or learning: a system's score beside the scores of controls that use only the train split.

After the easy/hard split of Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. A control learns from the
train split alone. So a query that it answers is no evidence of a model's knowledge.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lmkbc.generate.embedded.embedded import Embedded
from lmkbc.generate.spec import GeneratorSpec, sources_of
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.run.submission import answers
from lmkbc.scoring.table import WRONG, Table
from lmkbc.session.run import Run
from lmkbc.tune.learn import tune
from lmkbc.tune.tuning_set import SEED, TuningOptions, TuningSet
from lmkbc.types import Example, Pair, Prediction

CONTROLS = ("prior", "naive-bayes", "embedded")
"""Systems without a language model: most frequent objects, words of the subject's name, and both with similarity."""
RANDOM = "random"
"""The system's own recipe, with random weights in its local models."""

Made = Mapping[str, Sequence[Prediction]]
"""Predictions of each control."""


@dataclass(frozen=True, slots=True)
class ControlRow:
    """Scores on a relation or on all: official F1 of the system and of each control, and the system's on hard queries.

    controls: None for random weights if the system has no local model. hard_f1: None if no query is hard.
    """

    queries: int
    system: float
    controls: Mapping[str, float | None]
    hard: int
    hard_f1: float | None


@dataclass(frozen=True, slots=True)
class Controls:
    """Results of one system: averaged as the edition does, and by relation.

    failed: number of queries without an answer.
    """

    system: str
    overall: ControlRow
    relations: Mapping[str, ControlRow]
    failed: int


def controls(
    run: Run,
    recipe: Recipe,
    examples: Sequence[Example],
    how: TuningOptions | None,
    *,
    known: Made | None = None,
    random: bool = True,
    seed: int = SEED,
    report: Report = silent,
) -> Controls:
    """Run a system and the controls on a labelled split.

    A query is hard if no control answers it with F1 = 1. If the system is itself one of the controls, only the others
    define what is hard. Failed queries count as wrong. known: result of `learned` for the same examples and selection.
    how: tuning of each system, scored out of fold; None for the rules of its recipe.
    random: whether to run the system with random weights too, drawn with `seed`.
    """
    others = dict(learned(run, examples, how, report=report) if known is None else known)
    itself = [name for name in others if read_recipe(run.workspace, name) == recipe]  # a recipe may only share its name
    own = others.pop(itself[0]) if itself else None
    made = own or _predictions(run, recipe, examples, how, report)
    if random:
        with with_random_weights(run, recipe, seed) as drawn:
            if drawn is not None:
                others[RANDOM] = _predictions(*drawn, examples, how, report)
    return compare(run, recipe.name, examples, made, others, [RANDOM] if random else [])


def learned(
    run: Run,
    examples: Sequence[Example],
    how: TuningOptions | None,
    names: Sequence[str] = CONTROLS,
    report: Report = silent,
) -> dict[str, list[Prediction]]:
    """Return the predictions of the controls without a language model. They are the same for every system."""
    plain = replace(run, files=(), model=None)
    return {name: _predictions(plain, read_recipe(run.workspace, name), examples, how, report) for name in names}


def _predictions(
    run: Run, recipe: Recipe, examples: Sequence[Example], how: TuningOptions | None, report: Report
) -> list[Prediction]:
    sets = propose(Plan.of(run, recipe), [example.query for example in examples], report).sets
    if how is None:
        return recipe.select.select_all(sets)
    data = TuningSet(sets, examples, run.edition, run.relations, recipe.select, how)
    return list(tune(data, report=report).predictions)


def compare(
    run: Run,
    name: str,
    examples: Sequence[Example],
    made: Sequence[Prediction],
    others: Made,
    absent: Sequence[str] = (),
) -> Controls:
    """Return the scores of predictions for the same queries. absent: controls to list even if they were not run."""
    edition = run.edition
    gold: dict[Pair, Any] = {(x.query.subject, x.query.relation): edition.gold_column(x) for x in examples}

    def columns(predictions: Sequence[Prediction]) -> dict[Pair, Any]:
        return {(p.query.subject, p.query.relation): WRONG if p.failed else answers(edition, p) for p in predictions}

    own = columns(made)
    whole = edition.metric.evaluate(own, gold)
    tables = {control: edition.metric.evaluate(columns(p), gold, rows=True) for control, p in others.items()}
    answered = {pair for table in tables.values() for pair, row in table.rows if row.f1 == 1.0}
    hard = edition.metric.evaluate(own, {pair: objects for pair, objects in gold.items() if pair not in answered})

    def row(of: Callable[[Table], Any]) -> ControlRow:
        part, rest = of(whole), of(hard)
        count = rest.rows if rest else 0
        shares: dict[str, float | None] = {control: of(table).f1 for control, table in tables.items()}
        shares = shares | {control: shares.get(control) for control in absent}
        return ControlRow(part.rows, part.f1, shares, count, rest.f1 if count else None)

    return Controls(
        system=name,
        overall=row(lambda table: table.overall),
        relations={name: row(lambda table, name=name: table.relations.get(name)) for name in whole.relations},  # type: ignore[misc]
        failed=sum(prediction.failed for prediction in made),
    )


LOCAL = ("causal", "entity-masked", "masked")
"""Components that load a model's weights on this machine."""


@contextmanager
def with_random_weights(run: Run, recipe: Recipe, seed: int = 0) -> Iterator[tuple[Run, Recipe] | None]:
    """Yield the recipe with random weights, and the run to open it in; None if no step has a local model.

    The models are in a temporary directory until the block ends. Sources with the same model share one copy.
    """
    with tempfile.TemporaryDirectory() as folder:
        made: dict[tuple[str, str, str], str] = {}

        def redrawn(table: Mapping[str, Any], component: str = "") -> dict[str, Any]:
            """Return a table with another model, if it names a local one. component: if the table names none."""
            component = component or table["component"]
            name = run.model or table.get("model")
            if not name or not ("model" in table or component in LOCAL):
                return {**table}
            if component not in LOCAL:
                return {**table, "model": str(name)}
            key = component, str(name), str(table.get("revision"))
            if key not in made:
                named = {**table, "component": component, "model": str(name)}
                made[key] = str(_drawn(named, Path(folder) / str(len(made)), run.offline, seed))
            return {**table, "model": made[key]} | ({"revision": None} if "revision" in table else {})

        def of(spec: GeneratorSpec) -> GeneratorSpec:
            """Return a generator's table with other local models, also in its signals."""
            if isinstance(spec, Embedded):
                signals = tuple(redrawn(source) for table in spec.features for source in sources_of(table))
                states = spec.hidden_states and redrawn(spec.hidden_states, "causal")
                return replace(spec, features=signals, hidden_states=states)
            own = {field.name: getattr(spec, field.name) for field in fields(spec)}
            return replace(spec, **{name: value for name, value in redrawn(own).items() if value is not own[name]})

        drawn = tuple(map(of, recipe.generate))
        yield (replace(run, model=None, in_memory={}), replace(recipe, generate=drawn)) if made else None


def _drawn(table: Mapping[str, Any], out: Path, offline: bool, seed: int) -> Path:
    """Save a model of the same architecture, with its tokenizer, objects and soft prompts."""
    from lmkbc.masked import heads, soft_prompts
    from lmkbc.models.loading import quiet
    from lmkbc.train.random_controls import randomised

    model: Any
    name = table["model"]
    if table.get("component") == "causal":
        from lmkbc.local.checkpoint import load as load_causal

        model, tokenizer = load_causal(name, revision=table.get("revision"), offline=offline)
    else:
        from lmkbc.masked.backbone import load as load_masked

        backbone = load_masked(name, revision=table.get("revision"), offline=offline)
        model, tokenizer = backbone.model, backbone.tokenizer
    fresh = randomised(model, seed=seed)
    if model.can_generate():
        fresh.generation_config = model.generation_config
    with quiet():
        fresh.save_pretrained(out)
        tokenizer.save_pretrained(out)
    if (prompts := Path(name) / soft_prompts.FILE).is_file():
        (out / soft_prompts.FILE).write_bytes(prompts.read_bytes())
    if (Path(name) / heads.FILE).is_file():
        known = replace(heads.Entities.read(Path(name)), folds={})  # random weights were trained on no subject
        (out / heads.FILE).write_bytes(known.to_json())
    return out
