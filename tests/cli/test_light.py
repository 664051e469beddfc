"""A command loads what it needs: nothing of the field to be listed, no server's library for a local model."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("optuna", "sqlalchemy", "polars", "torch", "transformers", "openai", "httpx", "httpx2", "sklearn", "numpy")


def loaded(code: str) -> set[str]:
    """The modules of HEAVY that are loaded once the code has run in a fresh interpreter."""
    ending = f"import sys; print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    made = subprocess.run([sys.executable, "-c", f"{code}\n{ending}"], capture_output=True, text=True, check=True)
    return set(made.stderr.split())


def test_help_loads_nothing_of_the_field() -> None:
    code = (
        "import contextlib\nfrom lmkbc.cli import build\nwith contextlib.suppress(SystemExit):\n    build()(['--help'])"
    )
    assert loaded(code) == set()


@pytest.mark.parametrize(
    ("module", "not_loaded"),
    [
        (
            "lmkbc.cli.evaluate",
            {"optuna", "sqlalchemy", "polars", "torch", "transformers", "openai", "httpx2", "sklearn", "numpy"},
        ),
        ("lmkbc.select.registry", {"optuna", "sqlalchemy", "torch", "openai", "polars"}),
        ("lmkbc.pipeline", {"optuna", "sqlalchemy", "openai", "torch", "transformers"}),
        ("lmkbc.generate.causal", {"openai", "optuna"}),
        ("lmkbc.generate.chat", {"torch", "transformers", "optuna"}),
        ("lmkbc.generate.recorded", {"torch", "transformers", "openai", "optuna"}),
    ],
)
def test_a_step_loads_only_its_own_libraries(module: str, not_loaded: set[str]) -> None:
    assert not loaded(f"import {module}") & not_loaded
