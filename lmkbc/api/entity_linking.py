"""Functions of entity linking: `link` for a file of names, one link explained, an alias index, and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lmkbc.api.keywords import chosen_edition, keywords
from lmkbc.edition import Edition
from lmkbc.errors import InputError, OptionError
from lmkbc.files.places import placed
from lmkbc.files.writable import check_file
from lmkbc.link import explained
from lmkbc.link.evidence import Link, Search
from lmkbc.link.explained import LinkReport, Offer
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import LANGUAGES, Built
from lmkbc.link.index_sources import build_index as write_index
from lmkbc.link.linker import Linker
from lmkbc.link.search import open_search, wikidata
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import API_URL, CONTACT
from lmkbc.names import as_qid
from lmkbc.progress import Report, silent
from lmkbc.run.subset import names_of
from lmkbc.workspace import Workspace


@keywords
def link(
    predictions: Path | str,
    out: Path | str = "linked.jsonl",
    *,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    edition: str | None = None,
    index: Path | str | None = None,
    search_table: Path | str | None = None,
    offline: bool = False,
    contact: str | None = None,
    api_url: str = API_URL,
    refresh: bool = False,
    data: Path | str | None = None,
    workspace: Path | str | None = None,
    progress: Report = silent,
) -> LinkReport:
    """Link the names in a predictions file to Wikidata, and return counts and the names without a link.

    predictions: file whose objects are names. out: file for the linked predictions.
    relation: relations whose rows are linked, default all. limit: number of rows to link, from the first.
    index: alias index, made by 'lmkbc link build'. search_table: recorded searches of Wikidata.
    contact: your name and e-mail address, for Wikidata; default $LMKBC_CONTACT. api_url: MediaWiki API.
    refresh: whether to ask Wikidata again for cached searches.

    InputError for wrong input, before anything is searched.
    """
    space, source, target = Workspace(workspace, data), Path(predictions), Path(out)
    check_file(target, source, placed(index), placed(search_table))
    if limit is not None and limit < 1:
        raise OptionError("limit", f"is {limit}: give at least one row")
    relations = [space.relation(name) for name in names_of(relation)]
    rows = explained.read_rows(source, space.relations)
    chosen = chosen_edition(space, edition)
    search = open_search(placed(search_table), offline=offline, contact=contact, api_url=api_url, refresh=refresh)
    part = [row for row in rows if not relations or space.relation(row.Relation) in relations][:limit]
    return explained.link_rows(part, target, _linker(space, chosen, index, search), progress)


@keywords
def explain_link(
    text: str,
    relation: str,
    *,
    subject: str = "",
    edition: str | None = None,
    index: Path | str | None = None,
    search_table: Path | str | None = None,
    offline: bool = False,
    contact: str | None = None,
    api_url: str = API_URL,
    refresh: bool = False,
    data: Path | str | None = None,
    workspace: Path | str | None = None,
) -> tuple[Link, list[Offer], bool]:
    """Return the link of a name, the entities that each source offers, and whether Wikidata or a table was searched.

    Without a table and a contact, train objects and the index decide alone. Options are those of `link`.
    """
    space = Workspace(workspace, data)
    name = space.relation(relation).names[0]
    chosen, search = chosen_edition(space, edition), None
    if search_table or (not offline and (contact or os.environ.get(CONTACT))):
        search = open_search(placed(search_table), offline=offline, contact=contact, api_url=api_url, refresh=refresh)
    found, offers = explained.explain(_linker(space, chosen, index, search), text, name, subject)
    return found, offers, search is not None


def _linker(space: Workspace, edition: Edition, index: Path | str | None, search: Search | None) -> Linker:
    train = TrainObjects(space.examples(edition, "train"), space.relations)
    return Linker(space.relations, train, AliasIndex(Path(index)) if index else None, search)


@keywords
def build_index(
    path: Path | str,
    *,
    edition: str | Sequence[str] | None = None,
    table: Sequence[Path] = (),
    dump: Path | None = None,
    language: Sequence[str] = LANGUAGES,
    classes: Sequence[str] = (),
    data: Path | str | None = None,
    workspace: Path | str | None = None,
    progress: Report = silent,
) -> Built:
    """Build an alias index from train splits, tables and a dump. A killed build can be resumed.

    edition: editions whose train objects are added. table: tables of text and QID. dump: Wikidata's JSON dump.
    language: languages of the dump's names. classes: QIDs of classes; other entities of the dump are left out.
    """
    place = Path(path)
    check_file(place, dump, *table)
    space = Workspace(workspace, data)
    return write_index(
        place,
        splits={name: space.examples(space.edition(name), "train") for name in names_of(edition)},
        relations=space.relations,
        tables=table,
        dump=dump,
        languages=language,
        classes=classes,
        report=lambda done: progress("lines", done, None),
    )


@keywords
def labels(
    ids: Sequence[str],
    *,
    index: Path | str | None = None,
    offline: bool = False,
    contact: str | None = None,
    api_url: str = API_URL,
) -> dict[str, str]:
    """Return QID -> label, from the index, and from Wikidata without an index or with a contact."""
    for qid in ids:
        if as_qid(qid) != qid:
            raise InputError(f"{qid!r} is no QID: write one like 'Q42'")
    names = AliasIndex(Path(index)).labels(ids) if index else {}
    if missing := [qid for qid in ids if qid not in names and (not index or contact)]:
        names |= wikidata(offline=offline, contact=contact, api_url=api_url).labels(missing)
    return names
