"""Every bundled recipe with a generative source on one real local model, on a few rows of each relation.

    python eval/bench/real_model.py --edition 2023 --per-relation 10 [--recipes lix23,bl23-gpt-ids] [--server]
        [--figures FILE]

The table has a row per recipe, after its baselines. Columns: official macro-F1 on these rows, untuned, by the recipe's
own rule. Shares of draws by state: empty, with all objects dropped, cut off, not parsed, or missing. Tokens of prompts
and answers, answers from the store, and prompt tokens saved by shared prefixes. Seconds.

--server asks the same model through llama.cpp on loopback. Answers are stored in --store, so a killed run can be
resumed. Names are linked by train objects and by the recorded search table; no recipe reads any other text.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import figures

from lmkbc.cli.terminal import error_status, progress
from lmkbc.edition import Edition
from lmkbc.errors import LmkbcError
from lmkbc.files.places import cache_dir
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.located import gguf_file
from lmkbc.pipeline import propose
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.tune.tune import official
from lmkbc.types import Example, Prediction
from lmkbc.workspace import Workspace

FLOORS = ("prior", "embedded")
SEARCH = Path("wikidata/search_first_hit.json")
SLOTS, CONTEXT, PORT = 4, 8192, 18431
"""Settings of the server: requests at a time, tokens of each, and its port. Keys of stored answers have the port."""
STATES = ("abstained", "dropped", "cut", "truncated", "unparsed", "missing")
COUNTED = ("prompt_tokens", "completion_tokens", "from_store", "saved_by_prefixes")
COLUMNS = {"tokens in": "prompt_tokens", "out": "completion_tokens", "saved by prefixes": "saved_by_prefixes"}
"""Columns of the documents' table -> their names in a run's usage."""
HEAD = ("recipe", "F1", *STATES, "tokens in", "out", "stored", "shared", "seconds")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", required=True)
    parser.add_argument("--per-relation", type=int, default=10, help="rows of each relation, the first ones")
    parser.add_argument("--recipes", help="names, parted by commas (default: all that are meant for the edition)")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="a name of this machine's, or FILE.gguf")
    parser.add_argument("--server", action="store_true", help="through llama.cpp on loopback")
    parser.add_argument(
        "--draws", dest="samples", type=int, help="at most so many draws of a prompt, whatever a recipe says"
    )
    parser.add_argument("--max-tokens", type=int, help="at most so many tokens of an answer, whatever a recipe says")
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--store", type=Path, default=cache_dir() / "real-model.sqlite", help="where answers are kept")
    figures.option(parser)
    given = parser.parse_args(argv)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.pop("OPENAI_BASE_URL", None)
    workspace = Workspace(data=given.data)
    bench = Bench.of(workspace, workspace.edition(given.edition), given.per_relation, given.store)
    caps = {name: cap for name in ("samples", "max_tokens") if (cap := getattr(given, name))}
    print(f"{given.edition} {bench.edition.held_out}, {len(bench.examples)} rows, {given.model}", end="")
    print(" through llama.cpp" * given.server + "".join(f", {name} at most {cap}" for name, cap in caps.items()))
    print("  ".join(f"{name:>9}" if place else f"{name:22}" for place, name in enumerate(HEAD)))
    bench.floors()
    names = given.recipes.split(",") if given.recipes else workspace.system_names()
    with served(given.model) if given.server else nullcontext() as url, progress() as report:
        for name in names:
            recipe = read_recipe(workspace, name)
            if not given.recipes and not meant_for(recipe, bench.edition):
                continue
            if reason := unfit(recipe):
                print(f"{name:22}  skipped: {reason}", flush=True)
                continue
            capped = replace(recipe, generate=tuple(short(spec, caps) for spec in recipe.generate))
            bench.row(name, capped, given.model, url, report)
    figures.record(given.figures, f"real-model-{given.edition}", bench.values)


def meant_for(recipe: Recipe, edition: Edition) -> bool:
    """Return whether a recipe has a generative source, and published scores of this edition or of none."""
    places = [place.split("/")[0] for place in recipe.published]
    source = any(isinstance(spec, LanguageModelSpec) for spec in recipe.generate)
    return source and (edition.name in places or not places)


def unfit(recipe: Recipe) -> str:
    """Return why a recipe cannot be run here; "" if it can."""
    for spec in recipe.generate:
        if isinstance(spec, LanguageModelSpec) and spec.context.reads:
            return f"its context {spec.context.provider!r} reads text from outside the model"
        if spec.component == "recorded":
            return "it reads recorded answers"
        if not isinstance(spec, LanguageModelSpec) and getattr(spec, "model", None):
            return f"its component {spec.component!r} asks a model of another kind"
    return ""


def short(spec: GeneratorSpec, caps: Mapping[str, int]) -> GeneratorSpec:
    """Return a generator's table with fewer draws and shorter answers."""
    if not isinstance(spec, LanguageModelSpec) or not caps:
        return spec

    def capped(settings: Mapping[str, Any], always: bool) -> dict[str, Any]:
        least = {name: min(settings.get(name) or cap, cap) for name, cap in caps.items()}
        return {name: value for name, value in least.items() if always or name in settings}

    whole = {name: getattr(spec.sampling, name) for name in caps}
    own = {
        name: replace(one, sampling={**one.sampling, **capped(one.sampling, False)})
        for name, one in spec.relations.items()
    }
    return replace(spec, sampling=replace(spec.sampling, **capped(whole, True)), relations=own)


@contextmanager
def served(model: str) -> Iterator[str]:
    """Serve the model with llama.cpp, and yield the server's URL."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    import llama_server

    path = gguf_file(model)
    if path is None:
        sys.exit(f"{model} is no GGUF file, and llama.cpp reads nothing else")
    with (
        TemporaryDirectory() as folder,
        llama_server.serving(
            Path(folder) / "log.txt", path, context=SLOTS * CONTEXT, slots=SLOTS, threads=os.cpu_count() or 1, port=PORT
        ) as url,
    ):
        yield url


@dataclass(frozen=True)
class Bench:
    """The rows of an edition that every recipe is asked."""

    run: Run
    examples: Sequence[Example]
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    """Row -> column -> value in documents."""

    @classmethod
    def of(cls, workspace: Workspace, edition: Edition, count: int, store: Path) -> Bench:
        """Return a benchmark of the first rows of each relation of the labelled held-out split."""
        rows: defaultdict[str, list[Example]] = defaultdict(list)
        for example in workspace.examples(edition, edition.held_out):
            rows[example.query.relation].append(example)
        search = workspace.split_path(edition, edition.held_out).parent.parent / SEARCH
        run = Run(
            workspace=workspace,
            edition=edition,
            search_table=search if edition.target == "id" else None,
            offline=True,
            servers=Servers(store=store),
        )
        return cls(run, [example for relation in rows.values() for example in relation[:count]])

    @property
    def edition(self) -> Edition:
        """Return the edition."""
        return self.run.edition

    def floors(self) -> None:
        """Print the rows of the systems that need no language model."""
        empty = [Prediction(example.query) for example in self.examples]
        self._print("(empty)", self._f1(empty))
        for name in FLOORS:
            self.row(f"({name})", read_recipe(self.run.workspace, name))

    def row(
        self,
        called: str,
        recipe: Recipe,
        model: str | None = None,
        url: str | None = None,
        report: Report = silent,
    ) -> None:
        """Run a recipe by its own rule, and print its row."""
        given = {**self.run.servers, "base_url": url, "any_model": True, "concurrency": SLOTS if url else None}
        servers = Servers(**given)  # type: ignore[typeddict-item]
        run = replace(self.run, model=model, servers=servers, offline=url is None, budgets=[])
        start = time.perf_counter()
        try:
            proposals = propose(run, recipe, [example.query for example in self.examples], report)
        except LmkbcError as error:
            print(f"{called:22}  failed: {error}", flush=True)
            return
        seconds = time.perf_counter() - start
        states = Counter(str(state) for one in proposals.sets for state in one.draws)
        counts: Counter[str] = Counter()
        for usage in proposals.usage.values():
            counts.update({name: usage[name] for name in COUNTED if name in usage})
        self._print(called, self._f1(recipe.select.select_all(proposals.sets)), states, counts, seconds)

    def _f1(self, predictions: Sequence[Prediction]) -> float:
        return official({one.query: one for one in predictions}, self.examples, self.edition).overall.f1

    def _print(
        self,
        called: str,
        f1: float,
        states: Mapping[str, int] | None = None,
        counts: Mapping[str, int] | None = None,
        seconds: float = 0.0,
    ) -> None:
        states, counts = states or {}, counts or {}
        total = sum(states.values())
        if counts:
            shares = {name: f"{states.get(name, 0) / total:.3f}" for name in ("abstained", "unparsed")}
            cut = f"{(states.get('cut', 0) + states.get('truncated', 0)) / total:.3f}"
            tokens = {column: str(counts.get(name, 0)) for column, name in COLUMNS.items()}
            row = f"{self.edition.name} {called}"
            self.values[row] = {"F1": f"{f1:.3f}", **shares, "cut off": cut, **tokens}
        cells = [f"{f1:9.3f}"]
        cells += [f"{states.get(name, 0) / total:9.3f}" if total else f"{'-':>9}" for name in STATES]
        cells += [f"{counts[name]:9}" if name in counts else f"{'-':>9}" for name in COUNTED]
        print("  ".join([f"{called:22}", *cells, f"{seconds:9.1f}"]), flush=True)


if __name__ == "__main__":
    with error_status():
        main()
