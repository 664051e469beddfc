"""A domain of one's own: its workspace, relation modules of Wikidata's properties, and labelled data of relations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords
from lmkbc.errors import InputError, OptionError, check_known
from lmkbc.files.places import placed
from lmkbc.files.trusted import FILE, number, remember, risk
from lmkbc.files.writable import check_directory
from lmkbc.progress import Report, silent
from lmkbc.registry import KINDS
from lmkbc.session.options import ApiUrl, Contact, Trust, WorkspaceDir
from lmkbc.session.subset import names_of
from lmkbc.workspace import OWN_DATA, Workspace

if TYPE_CHECKING:
    import polars as pl

    from lmkbc.domain.labelled import DrawnRows


@dataclass(frozen=True)
class LabelledData:
    """Labelled data of a domain. folder: of train.jsonl, val.jsonl, test.jsonl and a manifest. relations: by name."""

    folder: Path
    relations: Mapping[str, DrawnRows]

    @property
    def table(self) -> pl.DataFrame:
        """Return a row per relation: its property, subjects that were listed, read and usable, and rows by split."""
        import polars as pl

        return pl.DataFrame(self.rows())

    def rows(self) -> list[dict[str, str | int]]:
        """Return the rows of the table."""
        return [
            {
                "relation": name,
                "property": drawn.from_property,
                "subjects": drawn.subjects,
                "read": drawn.read,
                "usable": drawn.usable,
                **drawn.rows,
            }
            for name, drawn in self.relations.items()
        ]

    def _repr_html_(self) -> str:
        return shown(f"Labelled data in {self.folder}", self.table)


@keywords
def init(
    folder: Annotated[
        Path | str,
        Meta(
            description="Directory to make; its name is the workspace's.", extra={"argument": True, "metavar": "NAME"}
        ),
    ],
    *,
    relation: Annotated[
        str | Sequence[str] | None,
        Meta(
            description=f"A relation of your own and the kind of its objects: {', '.join(KINDS)}. Repeatable.",
            extra={"flags": ("--relation", "-r"), "metavar": "NAME:KIND"},
        ),
    ] = None,
    answers: Annotated[str, Meta(description="strings: names. ids: QIDs, by links to Wikidata.")] = "strings",
) -> Path:
    """Make a workspace: settings, a recipe, a file for subjects, and modules of relations. Return its path.

    InputError for a folder that is there, a name that is taken, and an unknown kind; then nothing is written.
    """
    from lmkbc.domain.new_workspace import new_workspace

    kinds = [_kind(given) for given in names_of(relation)]
    if len(dict(kinds)) < len(kinds):
        raise OptionError("relation", "names a relation twice: leave one out")
    new_workspace(Path(folder), dict(kinds), answers)
    return Path(folder)


@keywords
def trust(
    folder: Annotated[
        Path | str, Meta(description="Directory of a workspace.", extra={"argument": True, "metavar": "DIR"})
    ],
    *,
    own: Annotated[
        bool,
        Meta(description="It is yours: its modules are run after changes too, as long as no other user can make them."),
    ] = False,
) -> dict[Path, str]:
    """Trust the modules of a workspace as they are now. Return them, and who else can change each, in words.

    A workspace that `lmkbc.init` made is trusted as one's own. InputError for a folder that is none, and for a file
    that every user of the machine can change.
    """
    root, code = Path(folder), Workspace(folder, trust=True).code
    remember({path: path.read_bytes() for path in [root / FILE] if path.is_file()})
    remember({root: number(root)} if own else {})
    return {path: risk(path) for files in code.values() for path in files}


def _kind(given: str) -> tuple[str, str]:
    """Return the name and kind of NAME:KIND. InputError for another form or kind."""
    name, _, kind = given.partition(":")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*", name):
        raise OptionError(
            "relation",
            f"is {given!r}: give NAME:KIND, as in first-appeared:date or hasAuthor:entity; a name has letters from a "
            "to z and A to Z, digits, and single '-' or '_' between them; its sentences may be in any language",
        )
    check_known(kind, [*KINDS, *KINDS.plugged()], f"the kind of {name} is {kind!r}")
    return name, kind


@keywords
def new_relations(
    properties: Annotated[
        str | Sequence[str],
        Meta(
            description="Properties of Wikidata, as in P36, or relations of your own with their kinds, as in "
            "supplier:entity.",
            extra={"argument": True, "metavar": "PID"},
        ),
    ],
    *,
    of: Annotated[
        str | None,
        Meta(
            description="Class of the subjects, as in Q9143. Default: the classes that each property allows.",
            extra={"metavar": "QID"},
        ),
    ] = None,
    offline: Annotated[bool, Meta(description="Ask nothing: write skeletons, which say what to fill in.")] = False,
    dump: Annotated[
        Path | str | None,
        Meta(
            description="Wikidata JSON dump (.json, .gz, .bz2, .zst) to read in place of the API.",
            extra={"metavar": "FILE"},
        ),
    ] = None,
    contact: Contact = None,
    api_url: ApiUrl = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
) -> list[Path]:
    """Write a relation module for each property of Wikidata, and return their paths. No file is replaced.

    With NAME:KIND in place of properties, the modules are of relations of one's own, and nothing is asked.

    InputError for a property that is unknown or cannot be asked for, and for a name that a relation of the workspace
    has; then nothing is written.
    """
    from lmkbc.domain import modules
    from lmkbc.domain.properties import check_ids
    from lmkbc.link.wikidata import API_URL, Client

    given = names_of(properties)
    own_kinds = any(":" in one for one in given)
    if of and (own_kinds or (offline and dump is None)):
        raise OptionError("of", "has no effect on skeletons: leave out offline, or give a property and a dump")
    root = placed(workspace) or Workspace(trust=trust).root
    if root is None:
        raise InputError("there is no workspace here: make one with 'lmkbc init NAME', or name one with --workspace")
    folder = root / "relations"
    check_directory(folder)
    own = Workspace(root, trust=trust).own_relations.values() if folder.is_dir() else ()
    taken = [name for relation in own for name in relation.spellings()]
    if own_kinds:
        return modules.own_relations(dict(map(_kind, given)), folder, taken=taken)
    check_ids(given)
    client = None if offline or dump is not None else Client(contact, api_url or API_URL)
    return modules.new_relations(given, folder, client=client, dump=placed(dump), subject_class=of or "", taken=taken)


@keywords
def make_data(
    relations: Annotated[
        str | Sequence[str] | None,
        Meta(
            description="Relations, by any of their names. Default: all of the workspace.",
            extra={"argument": True, "metavar": "RELATION"},
        ),
    ] = None,
    out: Annotated[
        Path | str | None,
        Meta(description=f"Directory to write to. Default: {OWN_DATA}/ in the workspace.", extra={"metavar": "DIR"}),
    ] = None,
    *,
    per_relation: Annotated[int, Meta(description="Rows of a relation, in train, val and test together.")] = 200,
    seed: Annotated[int, Meta(description="Seed of the draw.")] = 0,
    language: Annotated[str, Meta(description="Language of labels and aliases, as in pt-br.")] = "en",
    endpoint: Annotated[
        str | None, Meta(description="SPARQL query service over Wikidata. Default: its own.", extra={"metavar": "URL"})
    ] = None,
    offline: Annotated[bool, Meta(description="Use the answers in the cache alone.")] = False,
    contact: Contact = None,
    refresh: Annotated[bool, Meta(description="Ask again for answers in the cache.")] = False,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> LabelledData:
    """Make labelled data of relations from Wikidata: train, val and test in LM-KBC's layout, which share no subject.

    A killed run goes on from the cache, and the same answers give the same bytes. InputError for a relation without a
    property or class, and for a class of too few subjects; then nothing is written.
    """
    from lmkbc.domain import labelled
    from lmkbc.domain.sparql import QUERY_URL, query_client

    space, address = Workspace(workspace, trust=trust), endpoint or QUERY_URL
    if out is None and space.root is None:
        raise InputError("there is no workspace here: make one with 'lmkbc init NAME', or name a directory with --out")
    folder = placed(out) or (space.root or Path()) / OWN_DATA
    chosen = [*map(space.relation, names_of(relations))] or [*space.own_relations.values()]
    drawn = labelled.make_data(
        list({relation.name: relation for relation in chosen}.values()),
        folder,
        client=None if offline else query_client(contact, address),
        endpoint=address,
        per_relation=per_relation,
        seed=seed,
        language=language,
        refresh=refresh,
        progress=progress,
    )
    return LabelledData(folder, drawn)
