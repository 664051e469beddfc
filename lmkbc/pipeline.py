"""A run: the way of the data from queries to a submission directory.

generate -> link -> pool -> select -> write. `propose` is the part that costs something; `decide` and `run_files` are
cheap, so tuning and prediction share the first and differ in the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lmkbc import submission, thresholds
from lmkbc.ask.context.passages import Passage
from lmkbc.ask.context.passages import lines as lines_of
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.files import jsonl
from lmkbc.generate.components import Context, completer, generators
from lmkbc.link.ask_model import AskModel
from lmkbc.link.choose import MODEL
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.recipe import Linking
from lmkbc.link.sources import open_search
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.type_filter import TypeFilter
from lmkbc.link.wikidata import CONTACT
from lmkbc.models.files import (
    file_digest,
    model_name,
    paths_in,
    portable,
)
from lmkbc.progress import Report, silent
from lmkbc.recipe import System
from lmkbc.select.pool import Pool, without_subject
from lmkbc.select.registry import build
from lmkbc.settings import checked
from lmkbc.types import (
    CandidateSet,
    Prediction,
    Query,
    Selector,
)

PACKAGES = ("lmkbc", "numpy", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clean:
    """A recipe's table `clean`."""

    types: bool = False


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pooled candidates of all queries, in query order.

    usage: generator -> tokens and cost of this run's calls. retrieved: what was told of a query in its prompt.
    """

    queries: tuple[Query, ...]
    sets: tuple[CandidateSet, ...]
    usage: Mapping[str, Any] = field(default_factory=dict)
    retrieved: Mapping[Query, Sequence[Passage]] = field(default_factory=dict)


def propose(context: Context, system: System, queries: Sequence[Query], report: Report = silent) -> Proposals:
    """Generate, link, clean and pool the candidates of all queries."""
    groups: list[list[CandidateSet]] = []
    usage: dict[str, Any] = {}
    retrieved: dict[Query, Sequence[Passage]] = {}
    links = linker(context, system.link) if context.edition.target == "id" else None
    types = type_filter(context, system)
    for name, generator in generators(replace(context, report=report), system):
        found = _in_order(generator.generate(queries), queries, name, report)
        if links is not None:
            found = _linked(links, found, report)
        if types is not None:
            found = [types.keep(one) for one in found]
        groups.append([without_subject(one, context.relations[one.query.relation]) for one in found])
        usage |= {name: spent} if (spent := getattr(generator, "usage", None)) else {}
        retrieved |= getattr(generator, "retrieved", {})
    usage |= {"link": links.usage} if links is not None and links.usage else {}
    pool = Pool.of(context.edition, system.pool)
    report("pool (queries)", 0, len(queries))
    sets = tuple(pool.merge(groups))
    report("pool (queries)", len(queries), len(queries))
    return Proposals(tuple(queries), sets, usage, retrieved)


def _in_order(found: Iterable[CandidateSet], queries: Sequence[Query], name: str, report: Report) -> list[CandidateSet]:
    """Generators may answer in any order; a query that occurs twice is answered once."""
    by_query: dict[Query, CandidateSet] = {}
    report(f"{name} (queries)", 0, len(queries))
    for done, candidates in enumerate(found, start=1):
        by_query[candidates.query] = candidates
        report(f"{name} (queries)", done, len(queries))
    return [by_query[query] for query in queries]


def linker(context: Context, table: Mapping[str, Any] | None = None) -> Linker:
    """Links by train objects, then by the index where one is given, then by search, as a recipe's table `link` says.

    The search is the recorded table, the cache, or Wikidata where a contact is set.
    """
    known, relations = context.workspace.relations, context.relations
    linking = Linking.of(table or {}, known)
    strategies, keywords = linking.of_edition(known, relations)
    asks = any(MODEL in names for names in strategies.values())
    search = None
    if context.search_table or context.offline or os.environ.get(CONTACT):
        search = open_search(context.search_table, offline=context.offline)
    return Linker(
        relations,
        TrainObjects(context.train, relations),
        AliasIndex(context.index) if context.index else None,
        search,
        strategies=strategies,
        keywords=keywords,
        ask=AskModel(completer(context, linking.ask), relations) if asks else None,
    )


def type_filter(context: Context, system: System) -> TypeFilter | None:
    """What drops objects of the wrong kind, where the recipe wants it. InputError without an index to know them by."""
    if not checked(_Clean, system.clean, "clean").types:
        return None
    if context.index is None:
        raise InputError(
            f"system {system.name} drops objects of another kind, which an index tells: name one with --index "
            "('lmkbc link build' makes it), or set clean.types = false in the recipe"
        )
    return TypeFilter(context.relations, AliasIndex(context.index))


def _linked(links: Linker, found: Sequence[CandidateSet], report: Report) -> list[CandidateSet]:
    linked = []
    report("link (queries)", 0, len(found))
    for done, candidates in enumerate(links.link(found), start=1):
        linked.append(candidates)
        report("link (queries)", done, len(found))
    return linked


def selector_for(context: Context, system: System, *, any_data: bool = False) -> tuple[Selector, dict[str, Any]]:
    """What decides: the workspace's thresholds for this edition and system, else the recipe's own rule.

    Returns the selector and where it comes from. InputError for thresholds tuned on other data, unless allowed.
    """
    space, edition = context.workspace, context.edition
    rule = build(system.select)
    path = thresholds.path_of(space.folder("thresholds"), edition.name, system.name)
    if not path.is_file():
        return rule, {"how": f"selected by the recipe's rule {rule.name!r}, untuned"}
    selector, provenance = thresholds.read(path, rule)
    labelled = {split_sha256(context, split) for split in ("train", edition.held_out)}
    expected = provenance.data_sha256 if provenance.data_sha256 in labelled else min(labelled)
    thresholds.check(provenance, system.name, expected, force=any_data)
    return selector, {"how": f"selected by thresholds/{edition.name}/{system.name}.toml", **asdict(provenance)}


def split_sha256(context: Context, split: str) -> str:
    """The hash of a split's file."""
    return submission.sha256(jsonl.read_bytes(context.workspace.split_path(context.edition, split)))


def decide(selector: Selector, sets: Iterable[CandidateSet]) -> list[Prediction]:
    """Select from every query's candidates."""
    return [selector.select(candidates) for candidates in sets]


def run_files(
    context: Context, system: System, split: str, proposals: Proposals, predictions: Sequence[Prediction],
    provenance: Mapping[str, Any], *, failed_as_empty: bool = False, limit: int | None = None,
) -> dict[str, bytes]:  # fmt: skip
    """The files of a run directory; no zip of a run that was limited to the first queries of the split.

    Where queries failed, and are not to count as empty answers, there are no predictions either, but the candidates of
    the others and the list of what is missing.
    """
    edition = context.edition
    files: dict[str, bytes] = {}
    if failed_as_empty or not any(prediction.failed for prediction in predictions):
        lines = submission.prediction_lines(edition, predictions)
        zipped = submission.archive(lines)
        submission.check(edition, context.relations, proposals.queries, zipped)
        files = {submission.PREDICTIONS: lines} | ({submission.ARCHIVE: zipped} if limit is None else {})
    else:
        files[submission.MISSING] = submission.missing_lines(proposals.sets)
    if any(not one.failed for one in proposals.sets):
        files[submission.CANDIDATES] = submission.candidate_lines(proposals.sets)
    if proposals.retrieved:
        files[submission.RETRIEVED] = lines_of(proposals.retrieved)
    manifest = {
        "edition": edition.name,
        "split": split,
        **({} if limit is None else {"limit": limit}),
        "system": system.name,
        "model": context.model and model_name(context.model),
        "recipe": {step: portable(getattr(system, step)) for step in ("generate", "link", "clean", "pool", "select")},
        "selection": provenance,
        "counts": _counts(edition, predictions, proposals.sets),
        "inputs": dict(_inputs(context, split)) | dict(_models(context, system)),
        "outputs": {name: submission.sha256(content) for name, content in files.items()},
        "versions": {name: version(name) for name in PACKAGES},
    }
    files[submission.MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2, default=dict) + "\n").encode()
    return files


def _counts(edition: Edition, predictions: Sequence[Prediction], sets: Sequence[CandidateSet]) -> dict[str, Any]:
    """How much came of a run.

    dropped: empty answers whose models named objects of which none could be kept; dropped_objects: rule -> objects.
    """
    sizes = [len(submission.answers(edition, prediction)) for prediction in predictions]
    failed = sum(prediction.failed for prediction in predictions)
    losses = [submission.losses(edition, one) for one in sets]
    spent = [bool(lost) and not any(map(edition.value, one.candidates)) for lost, one in zip(losses, sets, strict=True)]
    rules = Counter(loss.rule for lost in losses for loss in lost)
    counts = {"queries": len(predictions), "objects": sum(sizes), "failed": failed, "empty": sizes.count(0) - failed}
    return counts | {"dropped": sum(spent), "dropped_objects": dict(sorted(rules.items()))}


def _models(context: Context, system: System) -> Iterator[tuple[str, str]]:
    """The models of this machine that a run asked, and other files that its recipe names, likewise."""
    for path in dict.fromkeys(paths_in([{"model": context.model}, system.generate, system.link])):
        yield model_name(path), file_digest(path)


def _inputs(context: Context, split: str) -> Iterator[tuple[str, str]]:
    """What a run read, by file name, with its SHA-256: never a path of this machine."""
    space, edition = context.workspace, context.edition
    for name in dict.fromkeys(("train", split)):
        yield f"{edition.folder}/{name}", submission.sha256(jsonl.read_bytes(space.split_path(edition, name)))
    for path in (*context.files, *filter(None, (context.search_table,))):
        yield Path(path).name, submission.sha256(jsonl.read_bytes(path))
    if context.index is not None:
        with context.index.open("rb") as file:
            yield context.index.name, hashlib.file_digest(file, "sha256").hexdigest()
