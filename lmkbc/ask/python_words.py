"""Words in Python source: read from its syntax tree, never imported or run.

Texts that code composes become templates: `f"{who} speaks {mask}."` is a text with two slots, `who` and `mask`.
"""

from __future__ import annotations

import ast
import re
import string
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard

LONGEST = 400_000
"""Maximum number of characters of a source, and of a text composed of its strings."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Place in a text that is unknown before the code runs. expression: the code's expression for it."""

    expression: str


Text = tuple[str | Slot, ...]
"""A text, as literal parts and slots."""

Value = Text | list["Value"]
"""A text, or a list of values."""


class _UnreadError(Exception):
    """An expression that is neither a text nor a list of texts."""


@dataclass
class _Scope:
    """Values of variables after a few statements, and values of the wanted variable by case.

    wanted: the variable to find. cases: name -> value, from code such as `if kind == "name": prompt = "..."`.
    """

    wanted: str
    values: dict[str, Value] = field(default_factory=dict)
    cases: dict[str, Value] = field(default_factory=dict)


class VariableText(NamedTuple):
    """Value of a variable at the end of its scope, if known, and its values by case."""

    value: Value | None
    cases: Mapping[str, Value]


def read_python(source: str, path: str, when: str = "") -> VariableText:
    """Return the value of a variable in Python source. Raise ValueError if it is missing or holds no strings.

    path: "PROMPTS" of the module, "ask.prompt" of a function, "Model.__init__.text" of a class. The path "ask.return"
    is the return value of a function. The path "ask.content[2]" is the value of the third key "content" in its dicts.
    when: a condition, such as "kind == 'open'"; only the statements under it are read. With "not kind == 'open'", those
    under its else are read.

    A loop is read once.
    """
    if len(source) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST:,} characters")
    try:
        with warnings.catch_warnings(action="ignore"):  # about invalid escapes
            body: Sequence[ast.stmt] = ast.parse(source).body
    except (SyntaxError, MemoryError) as error:
        raise ValueError(f"it is no Python that can be read: {error}") from None
    *scopes, wanted = path.split(".")
    for name in scopes:
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        if not found:
            raise ValueError(f"it defines no {name!r} of {path!r}")
        body = found[-1].body
    if when:
        body = _following(when, body)
    if keyed := re.fullmatch(r"(\w*)\[(\d+)\]", wanted):
        return VariableText(_under(keyed[1], int(keyed[2]), body), {})
    scope = _Scope(wanted)
    _run(body, scope)
    words = VariableText(scope.values.get(wanted), scope.cases)
    if words.value is None and not words.cases:
        assigned = any(wanted == name for node in body for name in _assigned(node))
        raise ValueError(
            f"what it assigns to {path!r} is no text that can be read"
            if assigned
            else f"it assigns nothing to {path!r}"
        )
    return words


def _following(condition: str, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Return the statements under a condition, or those under its else if the text begins with "not "."""
    for node in (part for statement in body for part in ast.walk(statement) if isinstance(part, ast.If)):
        test = ast.unparse(node.test)
        if condition in (test, f"not {test}"):
            return node.body if condition == test else node.orelse
    raise ValueError(f"it has no condition {condition!r}")


def _under(key: str, number: int, body: Sequence[ast.stmt]) -> Value:
    """Return the value of the n-th key with the given name."""
    tables = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Dict)]
    pairs = [pair for table in tables for pair in zip(table.keys, table.values, strict=True)]
    found = [value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key]
    found.sort(key=lambda value: (value.lineno, value.col_offset))
    known = _known(found[number], _Scope(key)) if number < len(found) else None
    if known is None:
        raise ValueError(f"it has no text {number} under a key {key!r}")
    return known


def _run(body: Iterable[ast.stmt], scope: _Scope) -> None:
    """Read statements in order."""
    for node in body:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                _assign(_assigned(target), value, scope)
            case ast.Return(value=ast.expr() as value):
                _assign(["return"], value, scope)
            case ast.AugAssign(target=ast.Name(name), op=ast.Add(), value=value):
                _assign([name], ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), value), scope)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [item])) if isinstance(
                scope.values.get(name), list
            ):
                scope.values[name] = [*scope.values[name], _text(item, scope)]
            case ast.For(target=target, body=inner):
                _forget(_assigned(target), scope)
                _run(inner, scope)
            case ast.If():
                _branch(node, scope)
            case ast.FunctionDef() | ast.ClassDef():
                pass
            case _:
                _forget(_assigned(node), scope)


def _branch(node: ast.If, scope: _Scope) -> None:
    """Read an if and its else separately; values that they assign are recorded only as cases."""
    name = _compared(node.test)
    for body, case in ((node.body, name), (node.orelse, None)):
        inner = _Scope(scope.wanted, dict(scope.values), scope.cases)
        _run(body, inner)
        value = inner.values.get(scope.wanted)
        given = any(scope.wanted in _assigned(line) for line in body if isinstance(line, ast.Assign))
        if case is not None and (given or (value is not None and value is not scope.values.get(scope.wanted))):
            _add_case(case, value, scope)
    _forget(_assigned(node), scope)


def _compared(test: ast.expr) -> str | None:
    """Return the text that a condition compares with."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        match part:
            case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(str(text))]):
                return text
    return None


def _assign(names: Sequence[str], value: ast.expr, scope: _Scope) -> None:
    """Read an assignment.

    A variable without a known text becomes a slot in texts. The values of a dict are cases.
    """
    known = None
    if isinstance(value, ast.Dict) and list(names) == [scope.wanted]:
        for key, item in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                _add_case(key.value, _known(item, scope), scope)
    elif len(names) == 1:
        known = _known(value, scope)
    _forget(names, scope)
    if known is not None:
        scope.values[names[0]] = known


def _add_case(name: str, value: Value | None, scope: _Scope) -> None:
    if value is None:
        raise ValueError(f"what it assigns to {scope.wanted!r} for {name!r} is no text that can be read")
    if scope.cases.setdefault(name, value) != value:
        raise ValueError(f"it says two things of {name!r}: {scope.wanted!r} is assigned twice")


def _known(node: ast.expr, scope: _Scope) -> Value | None:
    """Return the value of an expression that is a text or a list of texts; else None."""
    try:
        return _value(node, scope)
    except _UnreadError:
        return None


def _forget(names: Iterable[str], scope: _Scope) -> None:
    for name in names:
        scope.values.pop(name, None)


def _assigned(node: ast.AST) -> list[str]:
    """Return the names that a statement or target assigns, attributes included."""
    stored = [part for part in ast.walk(node) if isinstance(getattr(part, "ctx", None), ast.Store)]
    return [part.id if isinstance(part, ast.Name) else part.attr for part in stored if _is_named(part)]


def _is_named(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
    return isinstance(node, ast.Name | ast.Attribute)


def _value(node: ast.expr, scope: _Scope) -> Value:
    """Return the value of an expression. Raise _UnreadError if it is no text and no list."""
    match node:
        case ast.Constant(str(text)):
            return (text,)
        case ast.List(items) | ast.Tuple(items):
            return [_text(item, scope) for item in items]
        case ast.Name(name) | ast.Attribute(_, name) if name in scope.values:
            return scope.values[name]
        case ast.JoinedStr(parts):
            return _joined(_interpolated(part, scope) for part in parts)
        case ast.BinOp(left, ast.Add(), right):
            sides = [_text(left, scope), _text(right, scope)]
            texts = [side for side in sides if isinstance(side, tuple)]
            if len(texts) == len(sides) and any(isinstance(part, str) for text in texts for part in text):
                return _joined(texts)
        case ast.Call(ast.Attribute(of, "format"), given, named):
            return _formatted(_value(of, scope), given, named, scope)
    raise _UnreadError


def _text(node: ast.expr, scope: _Scope) -> Value:
    """Return the value of an expression; a slot if it is unknown."""
    known = _known(node, scope)
    return (Slot(ast.unparse(node)),) if known is None else known


def _interpolated(part: ast.expr, scope: _Scope) -> Text:
    """Return a part of an f-string."""
    inner = part.value if isinstance(part, ast.FormattedValue) and part.format_spec is None else part
    value = _text(inner, scope)
    return value if isinstance(value, tuple) else (Slot(ast.unparse(inner)),)


def _formatted(text: Value, given: Sequence[ast.expr], named: Sequence[ast.keyword], scope: _Scope) -> Text:
    """Return the text of "... {} ... {name}".format(...). Raise _UnreadError for other formats."""
    if not isinstance(text, tuple) or not all(isinstance(part, str) for part in text):
        raise _UnreadError
    positional = iter(given)
    keywords = {one.arg: one.value for one in named}
    parts: list[Text] = []
    for literal, slot, spec, conversion in string.Formatter().parse("".join(map(str, text))):
        parts.append((literal,))
        if slot is None:
            continue
        filled = next(positional, None) if slot == "" else keywords.get(slot)
        if filled is None or spec or conversion:
            raise _UnreadError
        parts.append(_interpolated(filled, scope))
    return _joined(parts)


def _joined(texts: Iterable[Text]) -> Text:
    """Return texts as one, with neighbouring literal parts joined."""
    parts: list[str | Slot] = []
    for text in texts:
        for part in text:
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        if sum(len(part) for part in parts if isinstance(part, str)) > LONGEST or len(parts) > LONGEST:
            raise ValueError(f"a text of it is longer than {LONGEST:,} characters")
    return tuple(parts)
