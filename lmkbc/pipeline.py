"""A run: the way of the data from queries to a submission directory.

generate -> link -> group -> pool -> select -> write. `propose` is the part that costs something; `decide` and
`run_files` are cheap, so tuning and prediction share the first and differ in the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lmkbc import submission, thresholds
from lmkbc.ask.context.passages import lines as lines_of
from lmkbc.edition import Edition
from lmkbc.files import jsonl
from lmkbc.generate.replay import shares
from lmkbc.link.linker import Linker
from lmkbc.models.files import (
    file_digest,
    model_name,
    paths_in,
    portable,
)
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run import Run
from lmkbc.select.pool import Pool
from lmkbc.select.rule import PerRelation
from lmkbc.types import (
    CandidateSet,
    Notes,
    Passage,
    Prediction,
    Query,
    Selector,
)

PACKAGES = ("lmkbc", "numpy", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pooled candidates of all queries, in query order.

    usage: generator -> tokens and cost of this run's calls. passages: what the prompts of a query held.
    """

    queries: tuple[Query, ...]
    sets: tuple[CandidateSet, ...]
    usage: Mapping[str, Any] = field(default_factory=dict)
    passages: Mapping[Query, Sequence[Passage]] = field(default_factory=dict)


def propose(run: Run, recipe: Recipe, queries: Sequence[Query], report: Report = silent) -> Proposals:
    """Generate, link, clean and pool the candidates of all queries."""
    run = replace(run, spellings=recipe.clean.spellings, report=report)
    groups: list[list[CandidateSet]] = []
    usage: dict[str, Any] = {}
    passages: dict[Query, Sequence[Passage]] = {}
    linking = Notes()
    answers = shares(recipe.generate, run.files, run.edition)
    replayed = any(files is not None for files in answers)
    links = recipe.link.open(run, linking, replayed=replayed) if run.edition.target == "id" else None
    types = recipe.clean.open(run)
    for spec, files in zip(recipe.generate, answers, strict=True):
        notes = Notes()
        for name, generator in spec.opened(run if files is None else replace(run, answers=files), notes):
            proposed = _in_order(generator.generate(queries), queries, name, report)
            if links is not None:
                proposed = _linked(links, proposed, report)
            if types is not None:
                proposed = [types.keep(candidates) for candidates in proposed]
            groups.append([recipe.clean.kept(one, run.relations[one.query.relation]) for one in proposed])
            if notes.usage:
                usage[name] = _summed(usage.get(name, {}), notes.usage)
        passages |= notes.passages
    if grouper := recipe.group.open(run, grouping := Notes()):
        groups = grouper.grouped(groups)
        usage |= {"group": grouping.usage} if grouping.usage else {}
    usage |= {"link": linking.usage} if linking.usage else {}
    pool = Pool(run.edition, recipe.pool)
    report("pool (queries)", 0, len(queries))
    sets = tuple(pool.merge(groups))
    report("pool (queries)", len(queries), len(queries))
    return Proposals(tuple(queries), sets, usage, passages)


def _in_order(
    proposed: Iterable[CandidateSet], queries: Sequence[Query], name: str, report: Report
) -> list[CandidateSet]:
    """Generators may answer in any order; a query that occurs twice is answered once."""
    by_query: dict[Query, CandidateSet] = {}
    total = len(set(queries))
    report(f"{name} (queries)", 0, total)
    for done, candidates in enumerate(proposed, start=1):
        by_query[candidates.query] = candidates
        report(f"{name} (queries)", done, total)
    return [by_query[query] for query in queries]


def _summed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What generators of one name used together; what is not known of one, such as a cost, is what the others tell."""
    sums = {key: value + (before.get(key) or 0) for key, value in now.items() if value is not None}
    return {**now, **before, **sums}


def _linked(links: Linker, proposed: Sequence[CandidateSet], report: Report) -> list[CandidateSet]:
    linked = []
    report("link (queries)", 0, len(proposed))
    for done, candidates in enumerate(links.link(proposed), start=1):
        linked.append(candidates)
        report("link (queries)", done, len(proposed))
    return linked


def selector_for(run: Run, recipe: Recipe, *, any_data: bool = False) -> tuple[PerRelation, dict[str, Any]]:
    """The selector of a run: the workspace's thresholds for this edition and system, else the recipe's own rule.

    Returns it and where it comes from. InputError for thresholds tuned on other data, unless allowed.
    """
    space, edition = run.workspace, run.edition
    path = thresholds.path_of(space.folder("thresholds"), edition.name, recipe.name)
    if not path.is_file():
        own = ", another for some relations" if recipe.select.rules else ""
        how = f"selected by the recipe's rule {recipe.select.general.name!r}{own}, untuned"
        return recipe.select, {"how": how}
    selector, provenance = thresholds.read(path, recipe.select)
    labelled = {split_sha256(run, split) for split in ("train", edition.held_out)}
    expected = provenance.data_sha256 if provenance.data_sha256 in labelled else min(labelled)
    thresholds.check(provenance, recipe.name, expected, force=any_data)
    return selector, {"how": f"selected by thresholds/{edition.name}/{recipe.name}.toml", **asdict(provenance)}


def split_sha256(run: Run, split: str) -> str:
    """The hash of a split's file."""
    return submission.sha256(jsonl.read_bytes(run.workspace.split_path(run.edition, split)))


def decide(selector: Selector, sets: Iterable[CandidateSet]) -> list[Prediction]:
    """Select from every query's candidates."""
    return [selector.select(candidates) for candidates in sets]


def run_files(
    run: Run,
    recipe: Recipe,
    split: str,
    proposals: Proposals,
    predictions: Sequence[Prediction],
    provenance: Mapping[str, Any],
    *,
    failed_as_empty: bool = False,
    limit: int | None = None,
) -> dict[str, bytes]:
    """The files of a run directory; no zip of a run that was limited to the first queries of the split.

    Where queries failed, there is the list of what is missing; unless they are to count as empty answers, there are no
    predictions then, but the candidates of the others.
    """
    edition = run.edition
    files: dict[str, bytes] = {}
    failed = any(prediction.failed for prediction in predictions)
    if failed_as_empty or not failed:
        lines = submission.prediction_lines(edition, predictions)
        zipped = submission.archive(lines)
        names = recipe.link.unlinked == "name"
        submission.check(edition, run.relations, proposals.queries, zipped, unlinked=names)
        files = {submission.PREDICTIONS: lines} | ({submission.ARCHIVE: zipped} if limit is None else {})
    if failed:
        files[submission.MISSING] = submission.missing_lines(proposals.sets)
    if any(not candidates.failed for candidates in proposals.sets):
        files[submission.CANDIDATES] = submission.candidate_lines(proposals.sets)
    if proposals.passages:
        files[submission.RETRIEVED] = lines_of(proposals.passages)
    manifest = {
        "edition": edition.name,
        "split": split,
        **({} if limit is None else {"limit": limit}),
        "system": recipe.name,
        "model": run.model and model_name(run.model),
        "recipe": portable(recipe.tables),
        "selection": provenance,
        "counts": _counts(edition, predictions, proposals.sets),
        "inputs": inputs(run, recipe, ("train", split)),
        "outputs": {name: submission.sha256(content) for name, content in files.items()},
        "versions": {name: version(name) for name in PACKAGES},
    }
    files[submission.MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2, default=dict) + "\n").encode()
    return files


def _counts(edition: Edition, predictions: Sequence[Prediction], sets: Sequence[CandidateSet]) -> dict[str, Any]:
    """How much came of a run.

    dropped: empty answers whose models named objects of which none could be kept; dropped_objects: rule -> objects.
    draws: what became of them -> how many.
    """
    sizes = [len(submission.answers(edition, prediction)) for prediction in predictions]
    failed = sum(prediction.failed for prediction in predictions)
    losses = [submission.losses(edition, candidates) for candidates in sets]
    spent = [
        bool(lost) and not any(map(edition.value, candidates.candidates))
        for lost, candidates in zip(losses, sets, strict=True)
    ]
    rules = Counter(loss.rule for lost in losses for loss in lost)
    counts = {"queries": len(predictions), "objects": sum(sizes), "failed": failed, "empty": sizes.count(0) - failed}
    draws = Counter(str(state) for candidates in sets for state in candidates.draws)
    return counts | {
        "dropped": sum(spent),
        "dropped_objects": dict(sorted(rules.items())),
        "draws": dict(sorted(draws.items())),
    }


def _models(run: Run, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The models of this machine that a run asked, and other files that its recipe names, likewise."""
    asking = [recipe.tables.get(step, ()) for step in ("generate", "link", "group")]
    for path in dict.fromkeys(paths_in([{"model": run.model}, *asking])):
        yield model_name(path), file_digest(path)


def inputs(run: Run, recipe: Recipe, splits: Sequence[str] = ("train",)) -> dict[str, str]:
    """What a run reads beside its queries, and the models of this machine that it asks: name -> SHA-256, no path."""
    return {**dict(_inputs(run, splits)), **dict(_models(run, recipe))}


def _inputs(run: Run, splits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a run read, by file name, with its SHA-256: never a path of this machine."""
    space, edition = run.workspace, run.edition
    for name in dict.fromkeys(splits):
        yield f"{edition.folder}/{name}", submission.sha256(jsonl.read_bytes(space.split_path(edition, name)))
    for path in (*run.files, *filter(None, (run.search_table,))):
        yield Path(path).name, submission.sha256(jsonl.read_bytes(path))
    if run.index is not None:
        with run.index.open("rb") as file:
            yield run.index.name, hashlib.file_digest(file, "sha256").hexdigest()
