"""A command loads what it needs, and ends with a sentence where it is interrupted or cannot write."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import Command
from loopback import Loopback
from opened import recipe_file

from lmkbc import cli, registry

HEAVY = "optuna sqlalchemy polars torch transformers openai httpx2 scipy sklearn matplotlib numpy pint".split()
HEAVY += ["lmkbc.kb", "lmkbc.domain", "lmkbc.probe", "lmkbc.train"]  # outside the core


def called(folder: Path, *words: object, status: int = 0) -> set[str]:
    """The modules of HEAVY that a command has loaded when it is done; it has to end well, or with that status."""
    note = folder / "loaded.json"
    code = (
        f"import atexit, json, pathlib, sys\natexit.register(lambda: pathlib.Path({str(note)!r}).write_text("
        f"json.dumps([name for name in {HEAVY!r} if name in sys.modules])))\n"
        f"sys.argv = {['lmkbc', *map(str, words)]!r}\nfrom lmkbc.cli import main\nmain()"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LMKBC_")}
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert made.returncode == status, made.stderr
    return set(json.loads(note.read_text()))


PREDICT = ("predict", "--edition", "mini", "--split", "val", "--limit", "2", "--search-table", "table.json")
MODELS = {"torch", "transformers", "sklearn"}


@pytest.mark.whole(but=["words0", "words1", "words2"])
@pytest.mark.parametrize(
    ("words", "status", "not_loaded"),
    [
        (("--help",), 0, {*HEAVY}),
        ((*PREDICT, "--system", "prior", "--out", "run"), 0, {*HEAVY} - {"numpy", "httpx2", "matplotlib", "pint"}),
        (("predict", "--edition", "mini", "--split", "nope"), 2, MODELS),
        (("predict", "--edition", "mini", "--relation", "nope"), 2, MODELS),
        (("evaluate", "p.jsonl", "--gold", "p.jsonl", "--edition", "2026"), 0, {*HEAVY} - {"numpy"}),
    ],
)
def test_a_command_loads_only_what_it_needs(
    tmp_path: Path, words: tuple[str, ...], status: int, not_loaded: set[str]
) -> None:
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "p.jsonl").write_text('{"SubjectEntity": "a", "Relation": "hasArea", "ObjectEntities": ["1"]}\n')
    assert not called(tmp_path, *words, status=status) & not_loaded


@pytest.mark.whole
def test_a_local_model_that_answers_verifies_and_links_loads_no_server_s_library(tmp_path: Path) -> None:
    import tiny_causal

    tiny_causal.save(tmp_path / "model", "gpt2")
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "mine.toml").write_text(
        'description = "x"\n[[generate]]\ncomponent = "causal"\nprompt = { form = "completion" }\n'
        "shots = { k = 1 }\nsampling = { max_tokens = 3 }\nverify = { shots = 1 }\n"
        '[link]\nstrategies = ["model"]\nask = { component = "causal" }\n'
        '[select]\nrule = "verified"\ninner = { rule = "top-k", k = 1 }\n'
    )
    model = ("--system", "mine.toml", "--model", "model", "--offline", "--store", "s.sqlite", "--failed-as-empty")
    found = called(tmp_path, *PREDICT, *model, "--out", "run")
    assert "torch" in found
    assert not found & {"openai", "optuna", "polars", "sklearn"}  # the store takes its statements from SQLAlchemy


TABLES = {"audit", "build", "export", "link", "query", "review"}
"""The commands that are about tables."""
OTHERS = [registry.COMMANDS.own[command] for command in sorted({*registry.COMMANDS} - TABLES)]


STEPS = [
    ("lmkbc", {"numpy", "polars", "msgspec", "torch"}),
    (
        "lmkbc.cli.evaluate",
        {"optuna", "sqlalchemy", "polars", "torch", "transformers", "openai", "httpx2", "sklearn", "numpy"},
    ),
    (", ".join(OTHERS), {"polars", "optuna", "torch", "transformers", "openai", "sqlalchemy"}),
    ("lmkbc.select.rule", {"optuna", "sqlalchemy", "torch", "openai", "polars"}),
    ("lmkbc.run.pipeline", {"optuna", "sqlalchemy", "openai", "torch", "transformers"}),
    ("lmkbc.generate.recorded", {"torch", "transformers", "openai", "optuna"}),
    ("lmkbc.generate.language_model", {"torch", "transformers", "optuna", "openai"}),
    ("lmkbc.generate.embedded", {"torch", "transformers"}),
]
"""Modules, imported one after the other, and what is not loaded then."""


def test_a_step_loads_only_its_own_libraries() -> None:
    code = "".join(f"import {module}\nprint(*(name for name in HEAVY if name in sys.modules))\n" for module, _ in STEPS)
    made = subprocess.run(
        [sys.executable, "-c", f"import sys\nHEAVY = {HEAVY!r}\n{code}"], capture_output=True, text=True, check=True
    )
    for (module, not_loaded), names in zip(STEPS, made.stdout.splitlines(), strict=True):
        assert not {*names.split()} & not_loaded, module


WITHOUT_LOCAL = """
import sys
from lmkbc.errors import LOCAL
sys.modules |= dict.fromkeys([*LOCAL, "matplotlib"])
"""


@pytest.mark.whole(but=["words0-pictures"])
@pytest.mark.parametrize(
    ("words", "lacking"),
    [
        (("predict", "--edition", "mini", "--split", "val", "--from", "said.jsonl", "--failed-as-empty"), "pictures"),
        pytest.param(
            ("predict", "--edition", "mini", "--split", "val", "--system", "naive-bayes", "--limit", "2"),
            "pictures",
            marks=pytest.mark.whole,
        ),
        pytest.param(
            ("tune", "--edition", "mini", "--split", "val", "--system", "prior", "--trials", "0", "--no-write"),
            "",
            marks=pytest.mark.whole,
        ),
        pytest.param(
            ("build", "--subjects", "s.csv", "--edition", "mini", "--system", "prior", "--out", "kb"),
            "",
            marks=pytest.mark.whole,
        ),
        (("predict", "--edition", "mini", "--split", "val", "--limit", "2"), "local"),
    ],
)
def test_an_install_without_local_models_does_the_rest_and_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], lacking: str
) -> None:
    monkeypatch.setenv("LMKBC_REPORT", "1")
    row = {"SubjectEntity": "Bosnia and Herzegovina", "Relation": "CountryBordersCountry", "completions": ["Serbia"]}
    (tmp_path / "said.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "s.csv").write_text("id,name,class\nQ657,Chad,country\n")
    code = f"{WITHOUT_LOCAL}\nsys.argv = {['lmkbc', *words, '--offline']!r}\n"
    made = subprocess.run(
        [sys.executable, "-c", f"{code}from lmkbc.cli import main\nmain()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == (2 if lacking == "local" else 0), made.stderr
    assert re.findall(r"install lmkbc\[(\w+)\]", made.stderr) == [lacking] * bool(lacking), made.stderr
    pages = [page.read_text() for page in tmp_path.rglob("report.html")]
    assert ["<figure" in page for page in pages] == [False] * (lacking == "pictures")
    assert all("Figures are left out, since matplotlib is not installed" in page for page in pages)


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "shell", [pytest.param("", marks=pytest.mark.whole), "trap '' INT; "], ids=["", "in the background"]
)  # where Ctrl-C is ignored
def test_a_run_that_waits_for_a_server_is_terminated_at_once(tmp_path: Path, shell: str) -> None:
    recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m"})
    with Loopback(delay=120) as server:
        words = ("predict", "-e", "mini", "--system", "chat.toml", "--base-url", server.url)
        command = ["sh", "-c", f'{shell}exec "$@"', "sh", sys.executable, "-m", "lmkbc", *words]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        run = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        while not server.served and run.poll() is None:
            time.sleep(0.05)
        run.terminate()
        _, told = run.communicate(timeout=100)
    assert (run.returncode, told.splitlines()[-1]) == (130, f"error: {cli.INTERRUPTED}; {cli.ANSWERS}")


def test_an_interrupted_run_does_not_wait_for_its_model() -> None:
    """A thread that computes on while Python ends would abort the process."""
    code = """
import threading, time
from typer.core import TyperGroup
from lmkbc import cli

def interrupted(*_):
    threading.Thread(target=time.sleep, args=(99,)).start()
    raise KeyboardInterrupt

TyperGroup.invoke = interrupted
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code, "runs"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, f"error: {cli.INTERRUPTED}\n")


def ended(*arguments: str, out: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "lmkbc", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.whole(but=["arguments0"])
@pytest.mark.parametrize("arguments", [("relations", "list"), ("relations", "list", "--json")])
def test_a_reader_that_goes_away_is_no_failure(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    assert ended(*arguments, out=write) == (0, "")
    os.close(write)


@pytest.mark.whole(but=[">&--1"])
@pytest.mark.parametrize(
    ("closed", "status"),
    [(">&-", 1), ("<&- >&- 2>&-", 1), *(pytest.param(one, 0, marks=pytest.mark.whole) for one in ("<&-", "2>&-"))],
)
def test_a_closed_stream_is_no_traceback(closed: str, status: int) -> None:
    """Output that cannot be written is lost, which is a failure; the other streams are not needed."""
    command = f"{sys.executable} -m lmkbc relations list {closed}"
    made = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    told = "error: the machine refused the output: not writable; mend that, and run the command again\n"
    assert (made.returncode, made.stderr) == (status, told if closed == ">&-" else "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        status, told = ended("relations", "list", out=full.fileno())
    assert (status, told.count("\n"), "No space left on device" in told) == (1, 1, True)


def test_a_dump_that_is_none_is_named_as_the_person_did(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps({"no": "entity"})[:-1])
    assert "dump.json, line 1: " in command.fails("link", "build", "index.sqlite", "--dump", "dump.json")
