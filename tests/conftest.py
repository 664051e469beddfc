"""Fixtures that many tests share: the official data, and an environment wiped of everything a user may have set."""

import gc
import logging
import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the processors, and their models are too small for threads
os.environ.pop("HF_HUB_OFFLINE", None)  # a library reads it once, when it is imported

import hypothesis
import pytest
from browsing import chromium
from command import Command
from postgres import Server

ROOT = Path(__file__).resolve().parent.parent
# the same tries each time, so that a commit passes or fails whoever asks; `make attack` searches on. A busy machine is
# no failure
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=12)
hypothesis.settings.register_profile("attack", deadline=None, max_examples=300)
hypothesis.settings.load_profile("suite")
NUMBERS = count()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker takes a file at a time, and the attacks as one, so that what their tests share is made once.

    The files come in the order of the tests, the slow ones first, so that the last to end are short.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "attack" if "attack" in Path(file).parts else file

    return Scheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attack", type=int, metavar="N", help="Try each attack N times, and every listed case.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the whole attack tries, and begin with files that open a real model or hold a slow test."""
    left = {item for item in items if _is_whole(item)} if config.option.attack is None else set()
    if left:
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]
    model, slow = ({_scope(item) for item in items if item.get_closest_marker(name)} for name in ("model", "slow"))
    items.sort(key=lambda item: (_scope(item) not in model, _scope(item) not in slow))


def _is_whole(item: pytest.Item) -> bool:
    """Return whether the suite leaves a test out.

    Cases are named by id or a part of an id. `but`: those that it tries. `only`: those that it leaves out, so that it
    tries what a new part of the engine adds.
    """
    case = getattr(item, "callspec", None)
    names = {case.id, *case.id.split("-")} if case else set()
    marks = [mark.kwargs for mark in item.iter_markers("whole")]
    return any(
        bool(names & {*mark["only"]}) if "only" in mark else names.isdisjoint(mark.get("but", ())) for mark in marks
    )


def _scope(item: pytest.Item) -> Path:
    """Return the file of a test, or the folder of the attacks."""
    return item.path.parent if "attack" in item.path.parts else item.path


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what asks PostgreSQL."""
    if "postgres" in getattr(item, "fixturenames", ()):
        item.add_marker("server")


def pytest_collection() -> None:
    """While everything is imported, nothing is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and leave imported objects out of it: they stay. Both took a tenth of the time.

    Loggers of torch hand on what they get: pytest adds its handlers, six times a test, to all that do not.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    for name in filter(lambda name: name.startswith("torch"), logging.root.manager.loggerDict):
        logging.getLogger(name).propagate = True


def pytest_unconfigure() -> None:
    """Until all ends, and what is bound to C is looked through once more."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the official splits, or a skip that says how to give it."""
    path = Path(os.environ.get("LMKBC_DATA", ROOT.parent / "shared" / "data"))
    if not (path / "lmkbc2023").is_dir():
        pytest.skip("official data absent: set LMKBC_DATA to the directory that holds lmkbc2022/, lmkbc2023/, ...")
    return path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tiny causal model, which no test changes."""
    import tiny_causal

    return tiny_causal.save(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tensors as small as a tiny model's only wait when several threads share them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def chat(tmp_path: Path) -> Any:
    """Opens generators over a server, which keep its answers in the test's own folder."""
    from opened import chat

    return partial(chat, tmp_path)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls of `lmkbc` in this process, in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)


@pytest.fixture(scope="session", autouse=True)
def _trusted(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests write is the user's own, in a state directory that is theirs alone."""
    import lmkbc

    folder = tmp_path_factory.getbasetemp()
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    (folder / "lmkbc.toml").touch()
    lmkbc.trust(folder, own=True)
    (folder / "lmkbc.toml").unlink()


@pytest.fixture(autouse=True)
def _clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("LMKBC_", "OPENAI_", "HF_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LMKBC_RAISE", "1")  # so that a fault of the reader of replies is seen
    monkeypatch.setenv("LMKBC_REPORT", "0")  # whose figures take longer than a small run
    # most tests keep nothing, and a folder for each takes its time: without one, a name that no other test has
    folders = request.getfixturevalue("tmp_path_factory").getbasetemp()
    has_one = "tmp_path" in request.fixturenames
    place = request.getfixturevalue("tmp_path") / "cache" if has_one else folders / f"cache-{next(NUMBERS)}"
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    logger = logging.getLogger("lmkbc")  # what the command makes of it is no other test's
    monkeypatch.setattr(logger, "handlers", [*logger.handlers])
    monkeypatch.setattr(logger, "propagate", True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server that tests share, or a skip that says what it lacks."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a module."""
    with chromium() as opened:
        yield opened
