"""Names of models on this machine, as transformers loads them."""

from __future__ import annotations

from pathlib import Path

from lmkbc.models.base import Quantise
from lmkbc.models.located import generative, gguf_file
from lmkbc.progress import Report, silent


def located(name: str, revision: str | None = None, quantise: Quantise = "none", report: Report = silent) -> str:
    """Return the name by which transformers loads the model: a directory, or an id of the hub.

    A GGUF file is converted to a directory, of this quantisation. report: callback for the progress of the conversion.
    Raise InputError for a GGUF file that cannot be read.
    """
    if (path := gguf_file(name, revision)) is not None:
        from lmkbc.local.gguf.convert import unpacked  # imported late: loads torch

        return str(unpacked(path, quantise, report))
    known = None if Path(name).is_dir() else generative(name)
    return known.hub if known else name
