"""The whole attack: kills, faults, damage and hostile text, and one table of what was tried and what failed.

A case of a test is a try, and a test's name is its attack. `--attack N` asks for N tries of each attack that is drawn
at random, and for all of those that are listed; without it each is tried a little, as a part of the suite.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forge import Ended, Forge
from places import Places

FEW = 1
"""Tries of an attack within the suite."""
SAMPLE = 32
"""Of listed cases, each so manieth is within the suite."""
Command = Callable[[Path], Sequence[object]]


@dataclass(frozen=True)
class Disturbed:
    """A command's folder after kills, and how it ended. starts: how often it was begun, the last time included."""

    folder: Path
    ended: Ended
    kills: int
    starts: int


def tries(config: pytest.Config) -> int | None:
    """Return what --attack says; None where it is not given."""
    given: int | None = config.option.attack
    return given


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(tries(metafunc.config) or FEW))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every attack as slow, and give its name."""
    item.add_marker("slow")
    item.user_properties.append(("attack", _attack(item)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name each try's attack, and leave out most of the listed cases unless all are asked for."""
    own = [item for item in items if Path(__file__).parent in item.path.parents]
    seen, left = defaultdict[str, int](int), []
    for item in own:
        if item.get_closest_marker("listed"):
            test = getattr(item, "originalname", "")
            if tries(config) is None and seen[test] % SAMPLE:
                left.append(item)
            seen[test] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def _attack(item: pytest.Item) -> str:
    """A test's name in words, and what it was tried on where its cases differ in that."""
    name = getattr(item, "originalname", item.name).removeprefix("test_").replace("_", " ")
    called = getattr(item, "callspec", None)
    return f"{name} {called.params.get('artefact', '')}".rstrip() if called else name


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "listed: cases of which the suite tries some, and the whole attack all")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table, where the whole attack was asked for."""
    if tries(config) is None:
        return
    done, failed, why = defaultdict[str, int](int), defaultdict[str, int](int), dict[str, str]()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            told = dict(report.user_properties) if hasattr(report, "user_properties") else {}
            name = told.get("attack")
            if name is None or (outcome == "passed" and report.when != "call"):
                continue
            done[name] += outcome != "skipped" and report.when != "teardown"
            failed[name] += outcome in ("failed", "error")
            if outcome == "skipped":
                why[name] = str(report.longrepr[2])
    wide = max(map(len, done), default=0)
    terminalreporter.section("attack", sep="=")
    terminalreporter.write_line(f"{'attack':{wide}}  tries  failures")
    for name in sorted(done):
        terminalreporter.write_line(f"{name:{wide}}  {done[name]:5}  {failed[name]:8}  {why.get(name, '')}".rstrip())
    terminalreporter.write_line(f"{'all':{wide}}  {sum(done.values()):5}  {sum(failed.values()):8}")


@pytest.fixture(scope="session")
def forge(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Forge]:
    made = Forge(tmp_path_factory.mktemp("forge"), heaviest=tries(pytestconfig) is not None)
    yield made
    made.close()


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Small data, workspaces, recipes and models."""
    return Places(tmp_path_factory.mktemp("places"))


@pytest.fixture
def disturbed(forge: Forge, places: Places, tmp_path: Path) -> Callable[..., Disturbed]:
    """Runs a command, in a folder of its own, that is killed at random moments until it finishes.

    between: checks the folder after each kill. how: what else `Forge.run` is given.
    """

    def run(
        command: Command, seconds: float, seed: int, between: Callable[[Path], None] = lambda _: None, **how: Any
    ) -> Disturbed:
        draw = random.Random(seed)
        for attempt in range(8):
            folder = tmp_path / f"killed-{attempt}"
            folder.mkdir()
            started = partial(forge.run, env=places.environment(folder), cwd=folder, **how)
            kills, cuts = 0, draw.choice((1, 1, 2, 3))
            for _ in range(cuts):
                moment = draw.uniform(0, seconds)
                cut = started(command(folder), kill_after=moment)
                print(f"seed {seed}: {'killed' if cut.killed else 'ended before'} {moment:.3f} of {seconds:.3f} s")
                assert cut.killed or cut.code == 0, cut.err
                kills += cut.killed
                between(folder)
            if kills:
                ended = started(command(folder))
                assert "Traceback" not in ended.err
                assert ended.code == 0, ended.err
                return Disturbed(folder, ended, kills, cuts + 1)
            seconds *= 0.6  # the machine is less busy than it was: a kill behind the end is none
        raise AssertionError("no kill came before the end")

    return run
