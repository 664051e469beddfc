"""`lmkbc link`: strings to Wikidata QIDs, with the evidence for each; and the offline index for linking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lmkbc.api.entity_linking import build_index, explain_link, link
from lmkbc.api.entity_linking import labels as labels_of
from lmkbc.cli.terminal import note, progress, show_json, show_table
from lmkbc.errors import InputError, counted
from lmkbc.link.explained import LinkReport
from lmkbc.link.index_sources import LANGUAGES
from lmkbc.link.wikidata import API_URL


class _DefaultGroup(TyperGroup):
    """A group with a default command: `lmkbc link FILE` means `lmkbc link file FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if none is named."""
        named = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return super().parse_args(ctx, args if named else ["file", *args])


app = typer.Typer(
    cls=_DefaultGroup, no_args_is_help=True, help="Link names to Wikidata, and explain links.", rich_markup_mode=None
)
Contact = Annotated[
    str | None, typer.Option(help="Your name and e-mail address, for Wikidata. Default: $LMKBC_CONTACT.")
]
ApiUrl = Annotated[str, typer.Option("--api-url", help="MediaWiki API, such as a mirror's.")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Ask Wikidata again for cached searches.")]


@app.command("file", epilog="Example: lmkbc link predictions.jsonl --edition 2023 --search-table search.json")
def file(
    predictions: Annotated[Path | None, typer.Argument(help="Predictions file whose objects are names.")] = None,
    out: Annotated[Path, typer.Option(help="File for the linked predictions.")] = Path("linked.jsonl"),
    why: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="NAME", help="Explain how this name is linked, as in Germany; needs --relation."
        ),
    ] = None,
    relation: Annotated[
        list[str] | None,
        typer.Option(
            "--relation", "-r", help="Only rows of this relation. Repeatable. With --explain: the relation of the name."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N rows.")] = None,
    subject: Annotated[str, typer.Option(help="With --explain: the subject that has this object.")] = "",
    edition: str | None = None,
    index: Path | None = None,
    search_table: Path | None = None,
    offline: bool = False,
    contact: Contact = None,
    api_url: ApiUrl = API_URL,
    refresh: Refresh = False,
    json: bool = False,
    data: Path | None = None,
    workspace: Path | None = None,
) -> None:
    """Link a predictions file (the default), or explain one link. Every link has its evidence."""
    if (predictions is None) == (why is None) or (why is not None and len(relation or ()) != 1):
        raise InputError("give either a predictions file to link, or both --explain TEXT and --relation NAME")
    sources: dict[str, Any] = {
        "edition": edition,
        "index": index,
        "search_table": search_table,
        "offline": offline,
        "contact": contact,
        "api_url": api_url,
        "refresh": refresh,
        "data": data,
        "workspace": workspace,
    }
    if why is not None and relation is not None:
        _explain(why, relation[0], subject, sources)
    elif predictions is not None:
        with progress() as report_progress:
            report = link(predictions, out, relation=relation, limit=limit, progress=report_progress, **sources)
        if json:
            show_json([tally._asdict() for tally in report.tallies()])
        else:
            _print(report)
        note(f"{out}: written; {counted(len(report.unlinked), 'text stays', 'texts stay')} unlinked")


def _explain(text: str, relation: str, subject: str, sources: dict[str, Any]) -> None:
    found, offers, searched = explain_link(text, relation, subject=subject, **sources)
    fits = {True: "yes", False: "no", None: "unknown"}
    rows = [
        ["*" if chosen else "", evidence, hit.id, hit.label, hit.description, fits[fit]]
        for evidence, hit, fit, chosen in offers
    ]
    show_table(["", "evidence", "id", "label", "description", "of the type"], rows)
    note(f"{text!r} -> {found.id or 'unlinked'} ({found.evidence}: {found.strategy})")
    if not searched:
        note("linked by train objects and --index alone; --contact asks Wikidata too, --search-table asks a table")


@app.command("build", epilog="Example: lmkbc link build aliases.sqlite --edition 2023 --dump latest-all.json.bz2")
def build(
    path: Annotated[Path, typer.Argument(help="The index to write.")],
    edition: Annotated[
        list[str] | None, typer.Option("--edition", "-e", help="Add the train objects of this edition. Repeatable.")
    ] = None,
    table: Annotated[
        list[Path] | None, typer.Option(help="Add a table of text and QID (JSON or CSV). Repeatable.")
    ] = None,
    dump: Annotated[Path | None, typer.Option(help="Wikidata JSON dump (.json, .gz, .bz2, .zst).")] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(help="Names of this language, as in de, beside those of every language. Repeatable."),
    ] = None,
    class_: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="QID", help="Keep entities of this class only, as in Q6256. Repeatable."),
    ] = None,
    data: Path | None = None,
    workspace: Path | None = None,
) -> None:
    """Build an alias index from train splits, tables and a dump. A killed build can be resumed."""
    with progress() as report:
        built = build_index(
            path,
            edition=edition,
            table=table or (),
            dump=dump,
            language=language or LANGUAGES,
            classes=class_ or (),
            data=data,
            workspace=workspace,
            progress=report,
        )
    for source, line, reason in built.broken:
        note(f"{_file(source, dump)}, line {line}: skipped, {reason}")
    note(
        f"{path}: {counted(built.entities, 'entity')}, {counted(built.names, 'name')}, "
        f"{counted(len(built.broken), 'broken line')}"
    )
    if not built.entities:
        note(f"{path} finds nothing: give train splits, a table of text and id, or a JSON dump of Wikidata")


def _file(source: str, dump: Path | None) -> str:
    """Return a source's name for messages. A dump's name in the index also has its size and filters."""
    return str(dump) if dump is not None and source.startswith(f"{dump.name} ") else source


@app.command("labels", epilog="Example: lmkbc link labels Q584 Q183 --index aliases.sqlite")
def labels(
    ids: Annotated[list[str], typer.Argument(help="QIDs.")],
    index: Path | None = None,
    offline: bool = False,
    contact: Contact = None,
    api_url: ApiUrl = API_URL,
) -> None:
    """Show the label of each QID."""
    names = labels_of(ids, index=index, offline=offline, contact=contact, api_url=api_url)
    show_table(["id", "label"], [[qid, names.get(qid)] for qid in ids])


def _print(report: LinkReport) -> None:
    columns = ["relation", "evidence", "strategy", "linked", "unlinked", "ambiguous"]
    show_table(columns, [list(tally) for tally in report.tallies()])
    show_table(["relation", "linked", "unlinked", "ambiguous"], [[n, *c] for n, c in report.per_relation().items()])
