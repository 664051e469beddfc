"""The validator: it turns a recipe's plain table into a frozen dataclass, nested ones included.

A dataclass is the only list of the possible settings. Its `__post_init__` checks what types cannot express and raises
ValueError. A field whose tables have other shapes, such as parts of another dataclass, is declared as `Mapping[str,
Any]`. A table may name a subclass in the code of a system, as in `component = "mave26/questions"`; its fields are the
settings then.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import isabstract
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from lmkbc.components import components_of, systems_with_code
from lmkbc.errors import InputError, check_known, did_you_mean

COMPONENT = "component"
"""Setting of a table that names its class."""
Settings = TypeVar("Settings")
Make = Callable[[type, Any], Any]

ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
MANY = {bool: "true and false", int: "whole numbers", float: "numbers", str: "strings"}


def checked(kind: type[Settings], table: Any, what: str, make: Make | None = None) -> Settings:
    """Return the settings in a table. Raise InputError with the name of the wrong setting.

    what: name of the table for messages, such as "prompt". make: called with a type that is no dataclass and a value;
    returns the object for the value, or raises TypeError with the reason.
    """
    made: Settings = _Check(what, make).part(kind, table, "")
    return made


class ReadBy(NamedTuple):
    """Reader of a setting, declared beside its type: `field: Annotated[int, ReadBy(...)] = 0`.

    words: what reads it, for messages. holds: whether it is there; gets the setting's table and those around it, the
    innermost first and the recipe last.
    """

    words: str
    holds: Callable[..., bool]


def check_read(made: Any, around: tuple[Any, ...], what: str, path: str = "") -> None:
    """Raise InputError for a setting that differs from its default and that nothing reads, also in tables within.

    made: dataclass of a table. around: the tables around it, the innermost first.
    """
    hints = typing.get_type_hints(type(made), include_extras=True)
    for field in fields(made):
        value, place = getattr(made, field.name), _below(path, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        for about in getattr(hints[field.name], "__metadata__", ()) if value != default else ():
            if isinstance(about, ReadBy) and not about.holds(made, *around):
                raise InputError(f"{what}: setting {place!r} has no effect: only {about.words} reads it; leave it out")
        for number, part in enumerate(value) if isinstance(value, tuple) else [("", value)]:
            if is_dataclass(part):
                check_read(part, (made, *around), what, place if number == "" else f"{place}[{number}]")


def listed(names: str | None) -> list[str] | None:
    """Return the names in a comma-separated option; None if it was not given. Raise InputError if a name is empty."""
    if names is None:
        return None
    given = [name.strip() for name in names.split(",")]
    if not all(given):
        raise InputError(f"{names!r} names nothing at one of its commas: give names with one comma between two")
    return given


def changed(settings: Settings, table: Mapping[str, Any], what: str) -> Settings:
    """Return settings with some replaced by those in a table. Raise InputError as `checked` does."""
    return checked(type(settings), {**_values(settings), **table}, what) if table else settings


def check_fields(made: object, what: str) -> None:
    """Check the field types of a dataclass made in Python, and of those within it.

    Raise InputError with the first wrong field. A list is accepted for a tuple, and any set for a frozen set. Protocols
    are left to type checkers.
    """
    _Check(what, in_python=True).part(type(made), made, "")


class _Check(NamedTuple):
    """Check of a table against its declaration. msgspec alone ignores unknown names and does not report keys.

    in_python: whether objects are checked, not tables of a file; messages then use Python's words.
    """

    what: str
    make: Make | None = None
    in_python: bool = False

    def part(self, kind: Any, value: Any, path: str) -> Any:
        """Return the value at a path, such as "prompt.slots[2]". Raise InputError if it is not of its declared type."""
        for option in () if kind in ONE else _options(kind):
            args = get_args(option)
            if is_dataclass(option) and isinstance(value, option):  # type: ignore[arg-type]
                return self._settings(type(value), _values(value), path) if self.in_python else value
            if is_dataclass(option) and isinstance(value, Mapping) and not self.in_python:
                return self._made(option, value, path)  # type: ignore[arg-type]
            if isinstance(value, Mapping) and _origin(option, Mapping):
                for name in value if self.in_python else ():
                    self.part(args[0], name, f"a key of {path}")
                return {name: self.part(args[1], inner, self._item(path, name)) for name, inner in value.items()}
            if isinstance(value, list | tuple | Set) and _origin(option, (Sequence, Set)):
                kinds = args if _fixed(option) else args[:1] * len(value)
                if len(kinds) != len(value):
                    raise InputError(self._refusal(kind, value, path))
                parts = enumerate(zip(kinds, value, strict=True))
                made = (self.part(part, inner, f"{path}[{number}]") for number, (part, inner) in parts)
                return frozenset(made) if _origin(option, Set) else list(made) if _origin(option, list) else tuple(made)
        return self._value(kind, value, path)

    def _item(self, path: str, name: Any) -> str:
        return f"{path}[{name!r}]" if self.in_python else _below(path, name)

    def _made(self, kind: type, table: Mapping[str, Any], path: str) -> Any:
        """Return the dataclass of a table, of the class in a system's code that the table names."""
        place = f"{self.what}: {f'{path}: ' if path else ''}"
        if COMPONENT not in _hints(kind) and (isabstract(kind) or COMPONENT in table):
            kind = _part(table.get(COMPONENT), kind, place)
            table = {name: value for name, value in table.items() if name != COMPONENT}
        found = self._settings(kind, table, path)
        try:
            return kind(**found)
        except InputError as error:  # from a dataclass that checks one of its parts
            raise InputError(f"{self.what}: {error}") from None
        except (ValueError, TypeError) as error:  # from the dataclass's own check: all types are right here
            raise InputError(f"{place}{error}") from None

    def _settings(self, kind: type, table: Mapping[str, Any], path: str) -> dict[str, Any]:
        hints = _hints(kind)
        found = {}
        for name, value in table.items():
            if instead := getattr(kind, "REMOVED", {}).get(name):
                raise InputError(f"{self.what} has no setting {_below(path, name)!r} any more: {instead}")
            if name not in hints and (part := _having(name, kind)):
                where = f"{self.what} has no setting {_below(path, name)!r}"
                raise InputError(f"{where}: {part!r} has it; name that as component, or as rule")
            check_known(name, hints, f"{self.what} has no setting {_below(path, name)!r}")
            found[name] = self.part(hints[name], value, _below(path, name))
        for field in fields(kind):
            if field.name not in found and field.default is MISSING and field.default_factory is MISSING:
                raise InputError(f"{self.what} needs {_below(path, field.name)}: give it a value")
        return found

    def _value(self, kind: Any, value: Any, path: str) -> Any:
        if isinstance(value, float) and math.isnan(value):
            raise InputError(self._refusal(float, value, path))
        try:
            return msgspec.convert(value, kind, dec_hook=self.make)
        except msgspec.ValidationError as error:
            reason, _ = _parted(error)
            from_make = reason[:1].islower()  # msgspec's own messages begin with a capital
            raise InputError(self._refusal(kind, value, path, reason if from_make else "")) from None
        except TypeError:
            if not self.in_python:  # a protocol
                raise
        except InputError as error:  # from `make`, about a part within
            raise InputError(f"{self.what}: setting {path!r}: {error}") from None

    def _refusal(self, kind: Any, value: Any, path: str, reason: str = "") -> str:
        setting = path if self.in_python else f"setting {path!r}"
        place = f"{self.what}: {setting}" if path else self.what
        return f"{place} is {value!r}: {reason or _hint(kind, value, _in_python if self.in_python else _wanted)}"


def _parts(system: str, base: type) -> dict[str, type]:
    """Return the classes of a system's code that are subclasses of a table's own class, by name."""
    of_system = components_of(system).items()
    return {part: kind for part, kind in of_system if isinstance(kind, type) and issubclass(kind, base)}


def _part(name: object, base: type, where: str) -> type:
    """Return the class that a table names as its component. Raise InputError for another name.

    where: beginning of the message.
    """
    parts = _parts(str(name).partition("/")[0], base)
    if name not in parts:
        near = did_you_mean(str(name), parts) if parts else "give 'SYSTEM/NAME', of a system whose code has such a part"
        raise InputError(f"{where}component is {name!r}: {near}")
    return parts[str(name)]


def _having(name: str, base: type) -> str:
    """Return a part of a bundled system that is a table of this kind with a further setting; "" if there is none.

    REPLACES of a part names settings that it stands for as a whole.
    """
    parts = (pair for system in systems_with_code() for pair in _parts(system, base).items())
    having = (part for part, kind in parts if name in (*_hints(kind), *getattr(kind, "REPLACES", ())))
    return next(having, "")


def _in_python(option: Any) -> str:
    """Return the name of a type for a Python user."""
    if option is bool:
        return "True or False"
    if isinstance(option, type) and is_dataclass(option):
        return f"{option.__name__}(...)"
    if _origin(option, Set):
        return "a set"
    return "a dictionary" if _origin(option, Mapping) else _wanted(option)


def _hint(kind: Any, value: Any, wanted: Callable[[Any], str]) -> str:
    """Return the advice on what to give instead of a value. wanted: returns the name of a type."""
    options = [option for option in _options(kind) if option is not types.NoneType]
    if len(options) == 1 and get_origin(options[0]) is Literal:
        return did_you_mean(str(value), map(str, get_args(options[0])))
    return f"give {' or '.join(dict.fromkeys(map(wanted, options)))}"


def _wanted(option: Any) -> str:
    """Return the name of a type for a TOML user."""
    args = get_args(option)
    if option in ONE:
        return ONE[option]
    if get_origin(option) is Literal:
        return " or ".join(map(repr, args))
    if not _origin(option, Sequence):
        return "a table"
    number = f"{len(args)} " if _fixed(option) else ""
    return f"a list of {number}{MANY.get(args[0], 'tables' if _wanted(args[0]) == 'a table' else 'such')}"


def _origin(option: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a type is a generic of `kind`, such as a list or a table."""
    origin = get_origin(option)
    return isinstance(origin, type) and issubclass(origin, kind)


def _fixed(option: Any) -> bool:
    """Return whether a type is a tuple of fixed length, with a type for each place."""
    return get_origin(option) is tuple and Ellipsis not in get_args(option)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else f"{name}"


def _parted(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return msgspec's reason, and the path of the wrong value."""
    reason, _, place = str(error).partition(" - at `$")
    return reason, place.removesuffix("`").removeprefix(".")


def _values(made: Any) -> dict[str, Any]:
    """Return the fields of a dataclass's object by name."""
    return {field.name: getattr(made, field.name) for field in fields(made)}


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
