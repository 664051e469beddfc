"""Each option that a command shows is read by it, or refused."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer
from loopback import Loopback
from opened import recipe_file

import lmkbc
from lmkbc import InputError, LmkbcError, registry
from lmkbc.commands.typed import spread
from lmkbc.session import options


class UsedError(Exception):
    """The value of an option was used: the command need not go on."""


class StandIn:
    """The value of an option, which notes whether anything is done with it, beyond being passed on."""

    used = False

    def _use(self, *_: object, **__: object) -> Any:
        self.used = True
        raise UsedError

    __bool__ = __str__ = __repr__ = __format__ = __fspath__ = __iter__ = __len__ = __hash__ = _use  # type: ignore[assignment]
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __getattr__ = _use  # type: ignore[assignment]
    __index__ = __int__ = __float__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __getitem__ = _use


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Values of options: a server, a recipe that asks it, two runs and a knowledge base."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "table.json").write_text("{}")
    (folder / "s.csv").write_text("id,name,class\nQ657,Chad,country\n")
    (folder / "ws" / "thresholds" / "mini").mkdir(parents=True)
    (folder / "ws" / "thresholds" / "mini" / "prior.toml").write_text("")
    recipe_file(folder / "chat.toml", {"component": "chat", "model": "m"})
    for name in ("first", "second"):
        lmkbc.predict("val", edition="mini", system="prior", limit=8, out=folder / "runs" / name)
    lmkbc.build(folder / "s.csv", folder / "kb", edition="mini", system="prior", least=0.0)
    with Loopback() as server:
        yield {"folder": folder, "url": server.url}


RUN = {"edition": "mini", "system": "chat.toml", "search_table": Path("table.json")}
SCENES: dict[str, dict[str, Any]] = {
    "predict": RUN | {"split": "val", "limit": 2, "out": Path("run")},
    "ask": RUN | {"subject": "Chad", "relation": "CountryBordersCountry"},
    "build": RUN | {"subjects": Path("s.csv"), "out": Path("base"), "limit": 1},
    "tune": RUN | {"split": "val", "limit": 12, "trials": 0, "folds": 2},
    "probe.controls": RUN | {"limit": 12, "trials": 0, "folds": 2},
    "probe.invented": RUN | {"subjects": 1, "relation": "CountryBordersCountry"},
    "compare": {"runs": [Path("runs/first"), Path("runs/second")]},
    "report": {"run": Path("runs/first")},
    "runs": {"folder": Path("runs")},
    "audit": {"knowledge": Path("kb")},
}
"""Command -> the values of a call that asks a server, where it can."""
WHERE = {
    "max_cost": {"prices": (1.0, 1.0)},
    "build budget": {"grow": 1},
    "build novelty": {"grow": 1},
    "build grow_by": {"grow": 1},
    "tune overwrite": {"limit": None, "workspace": Path("ws"), "system": "prior"},
}
"""Command and option -> further values with which it has an effect."""
PLAIN = {"tuned": False, "trials": 40, "folds": 5}
LEFT_OUT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("build", {}, {"budget": 3, "novelty": 0.1, "grow_by": "value"}),
    ("tune", {"write": False}, {"overwrite": True}),
    ("audit", {"known": [Path("kb")]}, {"sample": 3, "seed": 3}),
    ("probe.controls", PLAIN, {"trials": 3, "folds": 3}),
    ("probe.controls", PLAIN | {"random": False}, {"seed": 3}),
]
"""Command, values of a call, and options that have no effect with them."""


def unread(command: Callable[..., None], values: Mapping[str, Any], name: str) -> bool:
    """Return whether a call neither uses nor refuses an option."""
    value = StandIn()
    try:
        command(**{**values, name: value})
    except (UsedError, TypeError):  # a library refuses its type
        return False
    except LmkbcError as error:
        return not value.used and getattr(error, "option", None) != name
    return not value.used


def called(words: str) -> tuple[Callable[..., None], dict[str, Any]]:
    """Return a command, and the values of its call."""
    group, name = words.partition(".")[0], words.rpartition(".")[2]
    command = spread(getattr(import_module(registry.COMMANDS.own[group]), name))
    return command, {name: one.default for name, one in inspect.signature(command).parameters.items()} | SCENES[words]


@pytest.mark.whole(but=["predict", "build", "compare", "runs", "audit", "report"])
@pytest.mark.parametrize("words", SCENES)
def test_each_option_is_read_or_refused(
    words: str, place: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = options._checked
    monkeypatch.setattr(
        options, "_checked", lambda *given: given[-1] if isinstance(given[-1], StandIn) else settle(*given)
    )
    monkeypatch.setattr("webbrowser.open", str)
    monkeypatch.setattr("lmkbc.probe.controls.learned", lambda *_, **__: {})
    for path in place["folder"].iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    command, scene = called(words)
    served = {"base_url": place["url"]} if "base_url" in scene else {}
    fresh = {option: path for option, path in (("store", "{}.sqlite"), ("out", "{}")) if served and option in scene}

    def values(name: str) -> dict[str, Any]:  # no answer of another call is kept
        own = {option: Path(path.format(name)) for option, path in fresh.items()}
        return scene | served | own | WHERE.get(f"{words} {name}", WHERE.get(name, {}))

    assert [name for name in scene if unread(command, values(name), name)] == []


@pytest.mark.parametrize(("words", "values", "given"), LEFT_OUT)
def test_an_option_without_effect_is_refused(words: str, values: dict[str, Any], given: dict[str, Any]) -> None:
    command, scene = called(words)
    for name, value in given.items():
        with pytest.raises(InputError) as refused:
            command(**{**scene, **values, name: value})
        assert refused.value.option == name


GROUPS = {
    hint
    for module in (registry.COMMANDS.get("probe"), registry.COMMANDS.get("train"))
    for app in vars(module).values()
    if isinstance(app, typer.Typer)
    for command in app.registered_commands
    for hint in get_type_hints(command.callback).values()
    if is_dataclass(hint)
}


@pytest.mark.parametrize("group", sorted(GROUPS, key=lambda group: group.__name__))
def test_each_option_of_a_benchmark_or_a_training_is_read_somewhere(group: type[Any]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(lmkbc.__file__).parent.rglob("*.py")]
    trees = [ast.parse(text) for text in texts if group.__name__ in text]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {field.name for field in fields(group)} <= read
