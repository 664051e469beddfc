"""The one validator: a recipe's plain table to a frozen dataclass, nested ones included, every wrong part named.

A dataclass is the only list of what may be set; what makes sense beyond its types is checked in its `__post_init__`,
which raises ValueError. A field that holds tables of other shapes, such as parts of another dataclass, is declared as
`Mapping[str, Any]`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from lmkbc.errors import InputError, check_known, did_you_mean
from lmkbc.renamed import renamed

Settings = TypeVar("Settings")
Make = Callable[[type, Any], Any]

ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
MANY = {bool: "true and false", int: "whole numbers", float: "numbers", str: "strings"}


def checked(kind: type[Settings], table: Any, what: str, make: Make | None = None) -> Settings:
    """Return the settings in a table. InputError names the setting; `what` names the thing that is set, as in "prompt".

    make: from a type that is no dataclass and a value, what the value stands for; TypeError says what is wrong with it.
    """
    table = _Check(what, make).part(kind, table, "")
    try:
        return msgspec.convert(table, kind, dec_hook=make)
    except msgspec.ValidationError as error:  # said by a dataclass itself, since every part is of its type
        reason, place = _parted(error)
        raise InputError(f"{what}: {f'{place}: ' if place else ''}{reason}") from None
    except InputError as error:  # said of a part that a dataclass looks into itself
        raise InputError(f"{what}: {error}") from None


def listed(names: str | None) -> list[str] | None:
    """Return the names of a comma-separated option; None if it was not given. InputError if one is empty."""
    if names is None:
        return None
    given = [name.strip() for name in names.split(",")]
    if not all(given):
        raise InputError(f"{names!r} names nothing at one of its commas: give names with one comma between two")
    return given


def changed(settings: Settings, table: Mapping[str, Any], what: str) -> Settings:
    """Return the settings with those of a table in their place. InputError as from `checked`."""
    own = {field.name: getattr(settings, field.name) for field in fields(settings)}  # type: ignore[arg-type]
    return checked(type(settings), {**own, **table}, what)


def check_fields(made: object, what: str) -> None:
    """Check the types of a dataclass that Python code made, and of those within. InputError names the first misfit.

    A list may stand for a tuple, and any set for a frozen one. Types that Python cannot compare, such as protocols, are
    left to type checkers.
    """
    for path, value, kind in _misfits(made, type(made), ""):
        options = [option for option in _options(kind) if option is not types.NoneType]
        raise InputError(f"{what}: {path} is {value!r}: give {' or '.join(dict.fromkeys(map(_in_python, options)))}")


Misfit = tuple[str, object, Any]
"""The path of a field, its value, and the type that is declared."""


def _misfits(value: Any, kind: Any, path: str) -> Iterator[Misfit]:
    """Yield what is of another type than declared, by the alternative that fits best."""
    found = [list(_within(value, option, path)) for option in _options(kind) if _resembles(value, option)]
    yield from min(found, key=len) if found else [(path, value, kind)]


def _within(value: Any, option: Any, path: str) -> Iterator[Misfit]:
    """Yield the misfits in the parts of a value."""
    args = get_args(option)
    if is_dataclass(option):
        for name, kind in _hints(option).items():  # type: ignore[arg-type]
            yield from _misfits(getattr(value, name), kind, _below(path, name))
    elif isinstance(value, Mapping) and len(args) == 2:
        for key, item in value.items():
            yield from _misfits(key, args[0], f"a key of {path}")
            yield from _misfits(item, args[1], f"{path}[{key!r}]")
    elif isinstance(value, list | tuple | set | frozenset) and args:
        for number, item in enumerate(value):
            yield from _misfits(item, args[number] if _fixed(option) else args[0], f"{path}[{number}]")


def _resembles(value: Any, option: Any) -> bool:
    """Return whether a value is of a type, what is within it aside."""
    origin = get_origin(option) or option  # None, where a mapping's values are
    if origin is Literal:
        return value in get_args(option)
    if origin in (int, float):
        return isinstance(value, int | origin) and not isinstance(value, bool)
    if origin is tuple and isinstance(value, list | tuple):
        return not _fixed(option) or len(value) == len(get_args(option))
    try:
        return isinstance(value, Set if origin is frozenset else origin or types.NoneType)
    except TypeError:
        return True


def _in_python(option: Any) -> str:
    """Return what a type is called where Python is written."""
    if option is bool:
        return "True or False"
    if isinstance(option, type) and is_dataclass(option):
        return f"{option.__name__}(...)"
    if _origin(option, Set):
        return "a set"
    return "a dictionary" if _origin(option, Mapping) else _wanted(option)


class _Check(NamedTuple):
    """Goes through a table beside its declaration, since msgspec passes over unknown names and tells no keys."""

    what: str
    make: Make | None

    def part(self, kind: Any, value: Any, path: str) -> Any:
        """Return what stands at a path, as in "prompt.slots[2]", with new names in place of old ones.

        InputError where it is not of its declared type.
        """
        for option in _options(kind):
            args = get_args(option)
            if isinstance(value, Mapping) and is_dataclass(option):
                return self._table(option, value, path)  # type: ignore[arg-type]
            if isinstance(value, Mapping) and _origin(option, Mapping):
                return {name: self.part(args[1], inner, _below(path, name)) for name, inner in value.items()}
            if isinstance(value, list | tuple) and _origin(option, Sequence):
                kinds = args if _fixed(option) else args[:1] * len(value)
                if len(kinds) != len(value):
                    raise InputError(self._refusal(kind, value, path))
                parts = enumerate(zip(kinds, value, strict=True))
                return [self.part(part, inner, f"{path}[{number}]") for number, (part, inner) in parts]
            if isinstance(value, str) and get_origin(option) is Literal:
                value = renamed(value, args)
        self._value(kind, value, path)
        return value

    def _table(self, kind: type, table: Mapping[str, Any], path: str) -> dict[str, Any]:
        hints = _hints(kind)
        found = {}
        for name, value in {renamed(str(name), hints): value for name, value in table.items()}.items():
            check_known(name, hints, f"{self.what} has no setting {_below(path, name)!r}")
            found[name] = self.part(hints[name], value, _below(path, name))
        for field in fields(kind):
            if field.name not in found and field.default is MISSING and field.default_factory is MISSING:
                raise InputError(f"{self.what} needs {_below(path, field.name)}: give it a value")
        return found

    def _value(self, kind: Any, value: Any, path: str) -> None:
        try:
            msgspec.convert(value, kind, dec_hook=self.make)
        except msgspec.ValidationError as error:
            reason, _ = _parted(error)
            own = reason[:1].islower()  # said by `make`, since msgspec begins with a capital
            raise InputError(self._refusal(kind, value, path, reason if own else "")) from None
        except InputError as error:  # said by `make` of a part within
            raise InputError(f"{self.what}: setting {path!r}: {error}") from None

    def _refusal(self, kind: Any, value: Any, path: str, reason: str = "") -> str:
        place = f"{self.what}: setting {path!r}" if path else self.what
        return f"{place} is {value!r}: {reason or _hint(kind, value)}"


def _hint(kind: Any, value: Any) -> str:
    """Return what to give in a value's place."""
    options = [option for option in _options(kind) if option is not types.NoneType]
    if len(options) == 1 and get_origin(options[0]) is Literal:
        return did_you_mean(str(value), map(str, get_args(options[0])))
    return f"give {' or '.join(dict.fromkeys(map(_wanted, options)))}"


def _wanted(option: Any) -> str:
    """Return what a type is called in TOML."""
    args = get_args(option)
    if option in ONE:
        return ONE[option]
    if get_origin(option) is Literal:
        return " or ".join(map(repr, args))
    if not _origin(option, Sequence):
        return "a table"
    number = f"{len(args)} " if _fixed(option) else ""
    return f"a list of {number}{MANY.get(args[0], 'tables' if _wanted(args[0]) == 'a table' else 'such')}"


def _origin(option: Any, kind: type) -> bool:
    """Return whether a type is a list or a table of declared parts."""
    origin = get_origin(option)
    return isinstance(origin, type) and issubclass(origin, kind)


def _fixed(option: Any) -> bool:
    """Return whether a list's length is declared, each place with its type."""
    return get_origin(option) is tuple and Ellipsis not in get_args(option)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else f"{name}"


def _parted(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return what msgspec says, and the path of where."""
    reason, _, place = str(error).partition(" - at `$")
    return reason, place.removesuffix("`").removeprefix(".")


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
