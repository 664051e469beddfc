"""Pages without figures, for tests of what else a page holds: drawing them takes longer than all the rest."""

from importlib import import_module

import pytest


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no figure drawn."""
    monkeypatch.setattr(import_module("lmkbc.report.run_page"), "_plots", lambda *_: iter(()))
