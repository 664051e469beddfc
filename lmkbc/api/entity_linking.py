"""Functions of entity linking: `link` for a file of names, one link explained, an alias index, and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

from msgspec import Meta

from lmkbc.api.scores import run_edition
from lmkbc.commands.keywords import chosen_edition, keywords
from lmkbc.edition import Edition
from lmkbc.errors import InputError, OptionError
from lmkbc.files.places import all_placed, placed
from lmkbc.files.writable import check_file, check_new
from lmkbc.link import explained
from lmkbc.link.explained import LinkReport, Offer
from lmkbc.link.hits import Link, Search
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import LANGUAGES, Built
from lmkbc.link.index_sources import build_index as write_index
from lmkbc.link.linker import Linker
from lmkbc.link.search import Wikidata, open_search, wikidata
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import CONTACT
from lmkbc.names import as_qid
from lmkbc.progress import Report, silent
from lmkbc.run.saved import SavedRun
from lmkbc.session.options import (
    ApiUrl,
    Contact,
    DataDir,
    EditionName,
    Index,
    Offline,
    SearchTable,
    Trust,
    WorkspaceDir,
    settled,
)
from lmkbc.session.subset import names_of
from lmkbc.workspace import Workspace


class LinkSources(TypedDict, total=False):
    """Options for the sources of links."""

    edition: EditionName
    index: Index
    search_table: SearchTable
    offline: Offline
    contact: Contact
    api_url: ApiUrl
    refresh: Annotated[bool, Meta(description="Ask Wikidata again for cached searches.")]
    data: DataDir
    workspace: WorkspaceDir
    trust: Trust


@keywords
def link(
    predictions: Annotated[
        Path | str,
        Meta(description="Run or predictions file whose objects are names.", extra={"argument": True, "default": None}),
    ],
    out: Annotated[Path | str, Meta(description="File for the linked predictions.")] = "linked.jsonl",
    *,
    relation: Annotated[
        str | Sequence[str] | None,
        Meta(
            description="Only rows of this relation. Repeatable. With --explain: the relation of the name.",
            extra={"flags": ("--relation", "-r")},
        ),
    ] = None,
    limit: Annotated[int | None, Meta(ge=1, description="Only the first N rows.")] = None,
    progress: Report = silent,
    **options: Unpack[LinkSources],
) -> LinkReport:
    """Link the names in a predictions file to Wikidata, and return counts and the names without a link.

    Rows about queries of a split here get its SubjectEntityID.

    InputError for wrong input, before anything is searched.
    """
    sources = settled(LinkSources, options)
    space = Workspace(sources["workspace"], sources["data"], trust=sources["trust"])
    run, target = SavedRun.at(Path(predictions)), Path(out)
    source = run.predictions
    check_new(target, source, placed(sources["index"]), placed(sources["search_table"]))
    if limit is not None and limit < 1:
        raise OptionError("limit", f"is {limit}: give at least one row")
    relations = [space.relation(name) for name in names_of(relation)]
    edition = run_edition(space, [run], sources["edition"])
    rows = explained.read_rows(source, space.relations, edition)
    if found := space.split_of({(row.SubjectEntity, row.Relation) for row in rows}, edition):
        explained.identify(rows, space.queries(*found))
    linker = _linker(space, edition, sources)
    part = [row for row in rows if not relations or space.relation(row.Relation) in relations][:limit]
    report = explained.link_rows(part, target, linker, progress)
    if isinstance(linker.search, Wikidata):
        linker.search.ended()
    return report


@keywords
def explain_link(
    text: str, relation: str, *, subject: str = "", **options: Unpack[LinkSources]
) -> tuple[Link, list[Offer], bool]:
    """Return the link of a name, the entities that each source offers, and whether Wikidata or a table was searched.

    Without a table and a contact, train objects and the index decide alone. Options are those of `link`.
    """
    sources = settled(LinkSources, options)
    space = Workspace(sources["workspace"], sources["data"], trust=sources["trust"])
    name = space.relation(relation).names[0]
    contact = sources["contact"] or os.environ.get(CONTACT)
    searches = bool(sources["search_table"] or (contact and not sources["offline"]))
    linker = _linker(space, chosen_edition(space, sources["edition"]), sources, searches=searches)
    chosen, offers = explained.explain(linker, text, name, subject)
    return chosen, offers, searches


def _linker(space: Workspace, edition: Edition, sources: LinkSources, *, searches: bool = True) -> Linker:
    """Return the linker that uses the sources. searches: whether Wikidata or a table of searches is one of them."""
    index = sources["index"]
    search: Search | None = None
    if searches:
        search = open_search(
            placed(sources["search_table"]),
            offline=sources["offline"],
            contact=sources["contact"],
            api_url=sources["api_url"],
            refresh=sources["refresh"],
        )
    train = TrainObjects(space.examples(edition, "train"), space.relations)
    return Linker(space.relations, train, AliasIndex(Path(index)) if index else None, search)


@keywords
def build_index(
    path: Annotated[Path | str, Meta(description="The index to write.", extra={"argument": True})],
    *,
    edition: Annotated[
        str | Sequence[str] | None,
        Meta(description="Add the train objects of this edition. Repeatable.", extra={"flags": ("--edition", "-e")}),
    ] = None,
    table: Annotated[
        Sequence[Path | str] | None,
        Meta(description="Add a table with the columns text and id, or a JSON object from text to QID. Repeatable."),
    ] = None,
    dump: Annotated[Path | str | None, Meta(description="Wikidata JSON dump (.json, .gz, .bz2, .zst).")] = None,
    language: Annotated[
        Sequence[str] | None,
        Meta(description="Names of this language, as in de, beside those of every language. Repeatable."),
    ] = None,
    classes: Annotated[
        Sequence[str] | None,
        Meta(
            description="Keep entities of this class only, as in Q6256. Repeatable.",
            extra={"flags": ("--class",), "metavar": "QID"},
        ),
    ] = None,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> Built:
    """Build an alias index from train splits, tables and a dump. A killed build can be resumed."""
    place, tables, dump_path = Path(path), [*all_placed(table)], placed(dump)
    check_file(place, dump_path, *tables)
    space = Workspace(workspace, data, trust=trust)
    return write_index(
        place,
        splits={name: space.examples(space.edition(name), "train") for name in names_of(edition)},
        relations=space.relations,
        tables=tables,
        dump=dump_path,
        languages=language or LANGUAGES,
        classes=classes or (),
        report=lambda done: progress("lines", done, None),
    )


@keywords
def labels(
    ids: Annotated[str | Sequence[str], Meta(description="QIDs.", extra={"argument": True})],
    *,
    index: Index = None,
    offline: Offline = False,
    contact: Contact = None,
    api_url: ApiUrl = None,
) -> dict[str, str]:
    """Return QID -> label, from the index, and from Wikidata without an index or with a contact."""
    asked = names_of(ids)
    for qid in asked:
        if as_qid(qid) != qid:
            raise InputError(f"{qid!r} is no QID: write one like 'Q42'")
    names = AliasIndex(Path(index)).labels(asked) if index else {}
    if missing := [qid for qid in asked if qid not in names and (not index or contact)]:
        names |= wikidata(offline=offline, contact=contact, api_url=api_url).labels(missing)
    return names
