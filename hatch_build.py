"""What a wheel carries of the workspace: relations, editions and thresholds, benchmarks left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIED = ("relations", "eval", "thresholds")
LEFT = {"bench", "__pycache__"}


class Workspace(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the folders into the package, each under its name with an underscore before it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, one by one; an editable install finds them in the checkout."""
        if version == "editable":
            return
        for folder in CARRIED:
            for path in sorted((Path(self.root) / folder).iterdir()):
                if path.name not in LEFT:
                    build_data["force_include"][str(path)] = f"lmkbc/_{folder}/{path.name}"
