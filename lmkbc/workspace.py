"""Plug-ins: finds and loads relations, editions, systems and thresholds, by path and by name.

A workspace is a directory with `relations/`, `eval/`, `systems/` or `thresholds/`. It lies over the bundled content
(the checkout's, else the copy in the wheel): a name of its own goes first, and all others stay. Without edition
modules, its relations are an edition of their own. Modules are loaded on first use. An error names the module's file.
Those of a workspace are run only if the user trusts them (see `lmkbc.files.trusted`): the bytes that were looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from functools import cached_property, lru_cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import msgspec

from lmkbc.components import CODE, SYSTEMS, register
from lmkbc.edition import Edition
from lmkbc.errors import InputError, check_known, did_you_mean
from lmkbc.files.fact_rows import ENDINGS
from lmkbc.files.places import data_dirs, placed, warn_no_data_dir
from lmkbc.files.reader import opened, read_toml
from lmkbc.files.splits import check_values, name_objects, read_examples, read_queries
from lmkbc.files.trusted import FILE, check_code, shell_quoted
from lmkbc.files.workspace_file import WorkspaceFile, nearest, settings_of
from lmkbc.kinds.kind import kind_of
from lmkbc.names import QID, name_key, subject_key
from lmkbc.relation import EntityClass, Relation, Relations
from lmkbc.scoring.matchers import KindScorer
from lmkbc.settings import check_fields
from lmkbc.types import Example, Query

PACKAGE = Path(__file__).resolve().parent
FOLDERS = ("relations", "eval", "systems", "thresholds")
OWN_DATA = "data"
"""Folder of a workspace with the splits of its own relations."""
PARAPHRASES, CLASSES, RECIPE = "paraphrases.toml", "classes.toml", "recipe.toml"
"""Files with a name of their own: further clozes, classes of subjects, and the recipe of a system that is a folder."""
Plugin = TypeVar("Plugin", Relation, Edition, dict[str, Any])


class Workspace:
    """Relations, editions, systems and thresholds for a command.

    root: a workspace directory; None for the nearest one at or above the current directory, else only bundled content.
    data: directory of the splits (see `lmkbc.files.places.data_dirs`).
    trust: whether to trust the workspace's code from now on. Without it, an UntrustedError asks the user to.
    """

    def __init__(self, root: Path | str | None = None, data: Path | str | None = None, *, trust: bool = False) -> None:
        root, data, self._trust = placed(root), placed(data), bool(trust)
        if root is not None and not root.is_dir():
            raise InputError(f"{root} is not a directory: a workspace holds relations/, eval/ and thresholds/")
        if root is not None and not ((root / FILE).is_file() or any((root / name).is_dir() for name in FOLDERS)):
            raise InputError(f"{root} is no workspace: it needs {FILE}, or one of the folders {', '.join(FOLDERS)}")
        self.root = nearest(Path.cwd(), trust=self._trust) if root is None else root
        self.settings = WorkspaceFile() if self.root is None else settings_of(self.root)
        data_dirs(data)  # raises InputError if the directory does not exist
        self._data, self._checked = data, set[Path]()

    def folders(self, name: str) -> list[Path]:
        """Return the directories of one kind of content: the workspace's, and the bundled one."""
        own = () if self.root is None else (self.root / name,)
        return list({place.resolve(): place for place in (*own, _bundled_folder(name)) if place.is_dir()}.values())

    def own(self, name: str) -> Path:
        """Return the directory for new content of one kind: the workspace's, which need not exist, else the checkout's.

        InputError without a workspace, unless the current directory is in the checkout.
        """
        if self.root is None and PACKAGE.parent not in (Path.cwd(), *Path.cwd().parents):
            raise InputError(
                f"there is no workspace here to write {name}/ to: an empty file {FILE} makes this folder one; or name "
                "one with --workspace, or write nothing (--no-write)"
            )
        return (self.root or PACKAGE.parent) / name

    @cached_property
    def relations(self) -> Relations:
        """Return all relations, by every spelling of every edition. The workspace's come before those of plug-ins."""
        found = {name: place for folder in reversed(self._relation_modules) for name, place in folder.items()}
        relations = {name: relation for name, (_, relation) in found.items()}
        for path, relation in found.values():
            if relation.other_side():
                _check_other_side(relation, relations, path)
        return Relations(relations)

    @cached_property
    def own_relations(self) -> dict[str, Relation]:
        """Return the relations of the workspace's own modules, by name."""
        own = self._relation_modules[0] if self.root and (self.root / "relations").is_dir() else {}
        return {relation.name: relation for _, relation in own.values()}

    @cached_property
    def code(self) -> Mapping[Path, Mapping[Path, bytes]]:
        """Return the content of the workspace's own modules, by folder and path. UntrustedError unless it is trusted.

        The checkout or the wheel that runs is no workspace of its own.
        """
        if self.root is None:
            return {}
        own = [
            self.root / name for name in FOLDERS[:2] if (self.root / name).resolve() != _bundled_folder(name).resolve()
        ]
        found = {folder: {path: _content(path) for path in _modules(folder)} for folder in own}
        systems = self.root / "systems"
        if systems.resolve() != SYSTEMS.resolve():
            found[systems] = {path: _content(path) for path in sorted(systems.glob(f"*/{CODE}"))}
        check_code(self.root, dict(pair for files in found.values() for pair in files.items()), trust=self._trust)
        return found

    @cached_property
    def _relation_modules(self) -> list[dict[str, tuple[Path, Relation]]]:
        """Return the relations of each folder with their modules, by every spelling."""
        return [
            _by_spelling(_paraphrased(folder, self._load_all(folder, "RELATION", Relation)))
            for folder in self.folders("relations")
        ]

    @cached_property
    def classes(self) -> dict[str, EntityClass]:
        """Return the classes of subjects, by QID."""
        paths = [folder / CLASSES for folder in self.folders("relations")]
        tables = [_read_classes(path) for path in paths if path.is_file()]
        return {qid: entity_class for table in reversed(tables) for qid, entity_class in table.items()}

    @cached_property
    def editions(self) -> dict[str, Edition]:
        """Return all editions, by name: those of the workspace, then the bundled ones."""
        own, bundled_here = self.own_editions, self._read_editions(self.folders("eval")[-1])
        return own | {name: edition for name, edition in bundled_here.items() if name not in own}

    @property
    def is_empty(self) -> bool:
        """Return whether there is a workspace file, and neither a relation nor an edition beside it."""
        return self.root is not None and (self.root / FILE).is_file() and not self.own_editions

    @cached_property
    def own_editions(self) -> dict[str, Edition]:
        """Return the workspace's own editions: those of its modules, else its relations as one edition."""
        if self.root is None:
            return {}
        made = self._read_editions(self.root / "eval")
        if made or not self.own_relations:
            return made
        ids, name = self.settings.answers == "ids", self.settings.name or self.root.resolve().name
        if name in self._read_editions(_bundled_folder("eval")):
            raise InputError(
                f"{self.root / FILE}: name is {name!r}{'' if self.settings.name else ', by its folder'}, which is the "
                "name of another edition: give your relations a name of their own there"
            )
        edition = Edition(
            name=name,
            challenge="",
            folder=OWN_DATA,
            relations=tuple(self.own_relations),
            splits=dict.fromkeys(("train", "val", "test")),
            column="ObjectEntitiesID" if ids else "ObjectEntities",
            target="id" if ids else "string",
        )
        return {edition.name: edition.knowing(self.relations)}

    def _read_editions(self, folder: Path) -> dict[str, Edition]:
        """Return the editions of a folder, by name."""
        editions: dict[str, Edition] = {}
        for path, edition in self._load_all(folder, "EDITION", Edition):
            if edition.name in editions:
                raise InputError(f"{path}: an edition named {edition.name!r} exists already; rename one")
            for name in edition.relations:
                if name not in self.relations:
                    hint = did_you_mean(name, self.relations)
                    raise InputError(f"{path}: relations names {name!r}, which no module in relations/ has; {hint}")
            editions[edition.name] = edition.knowing(self.relations)
        return editions

    def _load_all(self, folder: Path, attribute: str, kind: type[Plugin]) -> list[tuple[Path, Plugin]]:
        """Return what the modules of a folder define: the workspace's by their trusted bytes, else the bundled ones."""
        states: Any = self.code.get(folder)
        if states is None:
            states = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in _modules(folder)}
        return [(path, _load(path, state, attribute, kind)) for path, state in states.items()]  # type: ignore[arg-type]

    def relation(self, name: str) -> Relation:
        """Return a relation by its own name or any edition's spelling."""
        check_known(name, self.relations, f"unknown relation {name!r}", "lmkbc relations list")
        return self.relations[name]

    def edition(self, name: str) -> Edition:
        """Return an edition by name; 2025 as a number is a name, too."""
        name = str(name)
        check_known(name, self.editions, f"unknown edition {name!r}")
        return self.editions[name]

    def recipe_path(self, name: str) -> Path:
        """Return the file of a recipe: the workspace's or a bundled one by name, any other by path."""
        known = self._recipes
        path = known.get(name, Path(name))
        path = path / RECIPE if (path / RECIPE).is_file() else path
        if path.suffix == ".toml" and path.is_file():
            return path
        if path.exists():
            raise InputError(
                f"{name} is no recipe: a recipe is a TOML file, as 'lmkbc systems show recorded' prints one; recorded "
                "answers are given with --from"
            )
        if path.suffix == ".toml" or len(path.parts) > 1:
            raise InputError(f"{name} does not exist: check the path")
        raise InputError(f"unknown system {name!r}: {did_you_mean(name, known, 'lmkbc systems list')}")

    def load_code(self, recipe: Path) -> None:
        """Run the code beside a recipe, and register its components. A bundled system's is loaded when it is used.

        Raise InputError for code outside of the workspace, UntrustedError for code that the user has not trusted.
        """
        path = recipe.absolute().with_name(CODE)
        if recipe.name != RECIPE or not path.is_file() or SYSTEMS in path.resolve().parents:
            return
        own = {} if self.root is None else self.code[self.root / "systems"]
        content = next((text for place, text in own.items() if place.resolve() == path.resolve()), None)
        if content is None:
            raise InputError(
                f"{path} is not run, since it lies in no workspace: put its folder into systems/ of one, or take the "
                "recipe alone, under another name"
            )
        name, components = system_name(recipe), _load(path, content, "COMPONENTS", dict)
        if wrong := next((part for part in components if part.partition("/")[0] != name), None):
            raise InputError(f"{path}: COMPONENTS names {wrong!r}: begin it with the system's name, {name}/")
        register(name, components, content)

    def system_names(self) -> list[str]:
        """Return the names of the workspace's and the bundled recipes."""
        return sorted(self._recipes)

    @cached_property
    def _recipes(self) -> dict[str, Path]:
        """Return the files of recipes, by name."""
        folders = (SYSTEMS, *(() if self.root is None else (self.root / "systems",)))
        places = (path for folder in folders for path in (*folder.glob("*.toml"), *folder.glob(f"*/{RECIPE}")))
        return {system_name(path): path for path in places}

    @cached_property
    def _data_dirs(self) -> list[Path]:
        """Return the directories of splits, in order. If no option gives one, warn once about the environment."""
        if self._data is None:
            warn_no_data_dir()
        return data_dirs(self._data)

    def split_path(self, edition: Edition, split: str) -> Path:
        """Return the file of a split. "val" and "dev" both mean the edition's labelled held-out split."""
        split = edition.split_named(split)
        check_known(split, edition.splits, f"edition {edition.name} has no split {split!r}")
        folders = self._data_dirs
        if edition.is_bundled:  # it is stored with its module, or in its workspace
            folders = [*folders, *filter(None, (self.root,)), *self.folders("eval")]
        for folder in folders:
            found = [path for end in ENDINGS if (path := folder / edition.folder / f"{split}{end}").exists()]
            if len(found) > 1:
                raise InputError(f"{found[0]} and {found[1].name} are both there: keep one of them")
            if found:
                return found[0]
        place = folders[len(self._data_dirs) if edition.is_bundled else 0] / edition.folder
        how = f"run 'lmkbc data fetch {edition.name}', or give its directory with --data or LMKBC_DATA"
        if edition.is_bundled:
            how = (
                f"write {split}.csv, with columns subject, relation and object (docs/your-own.md), or make it from "
                "Wikidata with 'lmkbc data make'; 'lmkbc build' and 'lmkbc ask' need none"
            )
        raise InputError(f"the {split} split of edition {edition.name} is not in {place}: {how}")

    def gold_path(self, edition: Edition, split: str) -> Path:
        """Return the file of a labelled split. Raise InputError for test, whose gold is not published.

        Raise it also for an object of one's own rows that no answer can match.
        """
        if not self.has_gold(edition, split):
            raise InputError(f"the test split of edition {edition.name} has no gold: use train or {edition.held_out}")
        path = self.split_path(edition, split)
        if edition.name in self.own_editions and path not in self._checked:
            check_values(path, edition, self.relations)
            self._checked.add(path)
        return path

    def has_gold(self, edition: Edition, split: str) -> bool:
        """Return whether a split is labelled: any but test, of which a challenge publishes no gold.

        In an edition of one's own, test is labelled if its rows name objects.
        """
        own = edition.name in self.own_editions and self.has_data(edition, split)
        return split != "test" or (own and name_objects(self.split_path(edition, split)))

    def has_data(self, edition: Edition, split: str = "train") -> bool:
        """Return whether the file of a split exists."""
        try:
            return self.split_path(edition, split).is_file()
        except InputError:
            return False

    def split_of(self, pairs: Collection[tuple[str, str]], first: Edition | None = None) -> tuple[Edition, str] | None:
        """Return the split here that asks most of some pairs of subject and relation, if it asks more than half.

        Spellings do not count. Of several, one comes first that calls the relations so, then one of the edition
        `first`, then the smallest. A split that cannot be read asks none.
        """
        relations, asked = {relation for _, relation in pairs}, dict[tuple[int, int, bool, int], tuple[Edition, str]]()
        for one in self.editions.values():
            own = {relation: one.spelt(relation) for relation in relations}
            named = {(subject_key(subject), own[relation] or relation) for subject, relation in pairs}
            exact = len(relations & {*one.relations})
            for name in one.splits if any(own.values()) else ():
                with suppress(InputError):
                    there = {(subject_key(query.subject), query.relation) for query in self.queries(one, name)}
                    if 2 * len(there & named) > len(named):
                        asked.setdefault((len(there & named), exact, one == first, -len(there)), (one, name))
        return asked[max(asked)] if asked else None

    def queries(self, edition: Edition, split: str) -> list[Query]:
        """Return the queries of a split."""
        return read_queries(self.split_path(edition, split), edition)

    def examples(self, edition: Edition, split: str) -> list[Example]:
        """Return the queries and objects of a labelled split. Objects of one's own are as facts have them."""
        examples = read_examples(self.gold_path(edition, split), edition)
        if not isinstance(edition.metric.scorer, KindScorer):
            return examples
        return [_as_kept(one, self.relation(one.query.relation)) for one in examples]


def _as_kept(example: Example, relation: Relation) -> Example:
    write = partial(kind_of(relation).as_kept, relation=relation)
    return replace(example, objects=tuple(replace(one, names=tuple(map(write, one.names))) for one in example.objects))


def system_name(path: Path) -> str:
    """Return the name of a recipe: that of its folder if the file is a folder's recipe, else the file's own."""
    return path.absolute().parent.name if path.name == RECIPE else path.stem


def bundled(kind: str, name: str, suffix: str) -> Path:
    """Return a file that a recipe names: that of a bundled system by the system's name, any other by path."""
    known = {path.parent.name: path for path in SYSTEMS.glob(f"*/{kind}{suffix}")}
    path = known.get(name, Path(name))
    if not path.is_file():
        hint = did_you_mean(name, known)
        raise InputError(f"{kind} {name!r} is no file: give the path of one, or the name of a bundled one ({hint})")
    return path


def _paraphrased(folder: Path, loaded: Sequence[tuple[Path, Relation]]) -> list[tuple[Path, Relation]]:
    """Return the relation modules of a folder, with the further clozes that the folder holds for them."""
    path = folder / PARAPHRASES
    table = read_toml(path) if path.is_file() else {}
    known = [relation.name for _, relation in loaded]
    for name, clozes in table.items():
        check_known(name, known, f"{path} words {name!r}, which no module here is named")
        if not (isinstance(clozes, list) and all(isinstance(cloze, str) for cloze in clozes)):
            raise InputError(f"{path}, {name}: give a list of clozes, each in quotes")
    try:
        return [(at, replace(relation, paraphrases=tuple(table.get(relation.name, ())))) for at, relation in loaded]
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _by_spelling(modules: Sequence[tuple[Path, Relation]]) -> dict[str, tuple[Path, Relation]]:
    """Return relations with their modules, by every spelling. InputError for a spelling that two of them have."""
    found: dict[str, tuple[Path, Relation]] = {}
    for path, relation in modules:
        for name in relation.spellings():
            other, _ = found.setdefault(name, (path, relation))
            if other != path:
                raise InputError(f"{path}: the name {name!r} is already taken by {other}; rename one")
    return found


def _check_other_side(relation: Relation, relations: Mapping[str, Relation], path: Path) -> None:
    """Raise InputError for a missing or unsuitable inverse_of, and for different types of a symmetric relation."""
    if relation.symmetric:
        if relation.subject_type.qid != relation.object_type.qid:
            raise InputError(f"{path}: symmetric is True, but subjects and objects are of different types")
        return
    known = {one.name for one in relations.values()}
    check_known(relation.inverse_of, known, f"{path}: inverse_of names {relation.inverse_of!r}, which no module has")
    other = relations[relation.inverse_of]
    if other.symmetric or other.inverse_of not in ("", relation.name):
        raise InputError(f"{path}: inverse_of names {other.name!r}, whose own other side is {other.other_side()!r}")
    if (relation.subject_type.qid, relation.object_type.qid) != (other.object_type.qid, other.subject_type.qid):
        raise InputError(f"{path}: inverse_of names {other.name!r}, whose subjects are not of the type of its objects")


def _read_classes(path: Path) -> dict[str, EntityClass]:
    """Read a table of classes. Raise InputError for wrong content, and for a name that two classes have."""
    try:
        table = msgspec.convert(read_toml(path), dict[Annotated[str, msgspec.Meta(pattern=f"^{QID}$")], EntityClass])
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}; write QID = {{ names = [...], below = [...] }}") from None
    owners: dict[str, str] = {}
    for qid, one in table.items():
        for name in map(name_key, one.names):
            if owners.setdefault(name, qid) != qid:
                raise InputError(f"{path}, {qid}: {owners[name]} is called {name!r} too; leave the name to one of them")
    return table


def _bundled_folder(name: str) -> Path:
    """Return the bundled folder of one kind of content: the checkout's, else the copy in the wheel."""
    of_checkout = PACKAGE.parent / name
    return of_checkout if of_checkout.is_dir() else PACKAGE / f"_{name}"


def _modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"{shell_quoted(path)} is no regular file, so it is no module: remove it")
    with opened(path) as file:
        return file.read()


@lru_cache(maxsize=1024)
def _load(path: Path, state: Any, attribute: str, kind: type[Plugin]) -> Plugin:
    """Return what a module defines. A module is run and checked once, until its file changes.

    state: time and size of a bundled module's file, whose compiled form is kept beside it; the bytes of any other.
    """
    module = ModuleType(f"lmkbc_workspace.{path.parent.name}.{path.stem}")
    module.__file__ = str(path)
    loader = SourceFileLoader(module.__name__, str(path))
    try:
        code = loader.source_to_code(state, path) if isinstance(state, bytes) else loader.get_code(loader.name)
        exec(code, module.__dict__)  # type: ignore[arg-type]  # noqa: S102 -- the user trusts it
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plug-in may fail in any way; the user needs the file and the reason
        raise InputError(f"{path}: {type(error).__name__}: {error}") from error
    value = getattr(module, attribute, None)
    if not isinstance(value, kind):
        problem = "is missing" if value is None else f"is a {type(value).__name__}"
        raise InputError(f"{path}: {attribute} {problem}; define {attribute} = {kind.__name__}(...)")
    if is_dataclass(value):
        check_fields(value, str(path))
    return value
