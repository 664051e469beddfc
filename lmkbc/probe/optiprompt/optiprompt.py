"""OptiPrompt as a benchmark: manual cloze, soft prompts and fine-tuning, on a masked model and its random controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lmkbc.errors import counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_file
from lmkbc.probe.benchmark import Findings, Means, TableNames, wanted_tables
from lmkbc.probe.optiprompt import optiprompt_data, results
from lmkbc.probe.optiprompt.optiprompt_data import read_prompts
from lmkbc.settings import listed
from lmkbc.train.training import TrainingPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class OptiPromptBenchmark:
    """Prompting methods, and controls: P@1 over relations, and on the facts that no control answers."""

    source: Annotated[
        Path,
        Meta(
            description="KAMEL; or LAMA's directory of relations.jsonl and TREx/ (--train).", extra={"argument": True}
        ),
    ]
    model: Annotated[
        list[str],
        Meta(
            description="Masked model: id or directory; repeatable. All are asked facts whose objects are one token of "
            "each (--table common-tokens); the other tables are of the first."
        ),
    ]
    train: Annotated[
        Path | None, Meta(description="With LAMA: directory of P36/{train,dev}.jsonl, as AutoPrompt made them.")
    ] = None
    properties: Annotated[str | None, Meta(description="Only these relations, comma-separated.")] = None
    lama: Annotated[bool, Meta(description="Only those properties of KAMEL that LAMA has.")] = False
    models: Annotated[
        str | None,
        Meta(description="The model and its controls: pretrained, random, embeddings, comma-separated. Default: all."),
    ] = None
    methods: Annotated[
        str | None,
        Meta(
            description="Of manual, soft-5, soft-10, soft-manual, finetune, comma-separated. Default: all. soft-N: N "
            "vectors. "
            "autoprompt-N: N tokens, searched as in AutoPrompt."
        ),
    ] = None
    prompts: Annotated[
        list[str] | None,
        Meta(description="NAME=FILE of prompts as JSONL, or a directory of P36.jsonl and the like; repeatable."),
    ] = None
    iterations: Annotated[int, Meta(ge=1, description="Steps of AutoPrompt's search.")] = 1000
    most: Annotated[int, Meta(ge=1, description="Facts of a relation to learn, to stop by, and to test on.")] = 1000
    least: Annotated[int, Meta(ge=1, description="Leave out relations with fewer than N facts to learn.")] = 150
    rate: Annotated[float, Meta(description="Peak learning rate of soft prompts.")] = 3e-3
    epochs: Annotated[int, Meta(ge=1, description="Passes over the facts.")] = 10
    batch: Annotated[int, Meta(ge=1, description="Facts per step of soft prompts.")] = 16
    finetune_rate: Annotated[float, Meta(description="Peak learning rate of fine-tuning.")] = 2e-6
    finetune_batch: Annotated[int, Meta(ge=1, description="Facts per step of fine-tuning.")] = 2
    patience: Annotated[int, Meta(ge=0, description="Epochs without a better loss before stopping; 0: all.")] = 0
    seed: Annotated[int, Meta(description="Seed of random weights and vectors.")] = 0
    table: TableNames = None
    facts: Annotated[Path | None, Meta(description="Write what every row answers to each test fact, as JSONL.")] = None
    kept: Annotated[Path | None, Meta(description="File of what is finished; a killed run goes on from it.")] = None

    def run(self, means: Means) -> Findings:
        """Train and test relation by relation."""
        from lmkbc.models.masked.backbone import load
        from lmkbc.models.masked.vocabulary import Words
        from lmkbc.probe.optiprompt.experiment import Experiment, ExperimentRunner

        default = (*results.DEFAULT, "common-tokens") if len(self.model) > 1 else results.DEFAULT
        wanted = wanted_tables(self.table, results.TABLES, default)
        check_file(self.kept, self.source)
        check_file(self.facts, self.source, self.kept)
        shared: dict[str, Any] = {"epochs": self.epochs, "patience": self.patience, "seed": self.seed}
        how = Experiment(
            soft=TrainingPlan(rate=self.rate, batch=self.batch, **shared),
            finetune=TrainingPlan(rate=self.finetune_rate, batch=self.finetune_batch, decay=0.01, **shared),
            models=tuple(listed(self.models) or optiprompt_data.MODELS),
            methods=tuple(listed(self.methods) or optiprompt_data.METHODS),
            iterations=self.iterations,
            prompts=read_prompts(self.prompts or ()),
            seed=self.seed,
        )
        data = optiprompt_data.read(self.source, self.train, listed(self.properties), lama=self.lama)
        backbones = {name: load(name, offline=means.offline) for name in self.model}
        words = [Words(backbone.tokenizer) for backbone in backbones.values()]
        relations = optiprompt_data.learnable(
            data, lambda name: all(one.single(name) is not None for one in words), least=self.least, most=self.most
        )
        found: dict[str, Mapping[str, results.Answers]] = {}
        scores: dict[str, dict[str, results.MethodScore]] = {}
        for name, backbone in backbones.items():
            runner = ExperimentRunner(backbone, relations, how)
            with means.progress() as report:
                found[name] = runner.run(self.kept, report)
            scores[name] = results.table(relations, found[name], runner.unhelped())
        answers, table = found[self.model[0]], scores[self.model[0]]
        tested = counted(sum(len(relation.facts) for relation in relations), "fact")
        means.note(f"{counted(len(relations), 'relation')}, {tested}; paper: BERT-base on T-REx")
        if lacking := [row for row in results.EASY if row not in table]:
            easy = f"easy is what the other controls answer, for want of {', '.join(lacking)}"
            means.note(f"{easy}: no figure to compare")
        fact_rows = list(results.fact_rows(relations, answers))
        if self.facts is not None:
            write_bytes(self.facts, msgspec.json.Encoder().encode_lines(fact_rows))
        sheets = [
            results.overall(table),
            results.by_relation(relations, answers),
            results.majority_share(relations, answers),
            results.facts(fact_rows),
            results.common_tokens(scores),
        ]
        values = {name: {row: asdict(line) for row, line in one.items()} for name, one in scores.items()}
        return Findings(
            values if len(values) > 1 else values[self.model[0]],
            [sheet for sheet in sheets if sheet.name in wanted],
        )
