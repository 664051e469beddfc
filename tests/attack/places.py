"""An attack needs a little of this: data, a workspace, recipes, and models as small as they come."""

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import tiny_causal
import tiny_masked

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7f3a91c2"
RELATIONS = ("CountryBordersCountry", "PersonPlaysInstrument", "RiverBasinsCountry")
ROWS = {"train": 14, "val": 8, "test": 8}
"""Of each relation, by split."""
CHAT = """
description = "A server is asked; impatient."
[[generate]]
component = "chat"
model = "stand-in"
shots = {{ k = 1 }}
sampling = {{ temperature = 0.0, max_tokens = 64 }}
prompt = {{ task = "List every {{{{ object_type }}}}." }}
limits = {{ concurrency = 8, total_wait = 1.0, timeout = {timeout} }}
[select]
rule = "cutoff"
threshold = 0.5
"""
EMBEDDED = """
description = "The embedded default without its encoder."
[[generate]]
component = "embedded"
evidence = ["train"]
[select]
rule = "expected-f1"
"""
CAUSAL = """
description = "A causal model reads a question."
[[generate]]
component = "causal"
model = "none"
prompt = { form = "completion", block = "{{ subject }}, {{ phrase }}:" }
shots = { k = 0 }
sampling = { temperature = 0.0, max_tokens = 8 }
[select]
rule = "cutoff"
threshold = 0.5
"""
ENTITIES = """
description = "A taught masked model."
[[generate]]
component = "entity-masked"
[select]
rule = "expected-f1"
"""
PROMPTS = """
description = "A masked model, with soft prompts if it has some."
[[generate]]
component = "masked"
[select]
rule = "cutoff"
threshold = 0.01
"""

FINISHED = ("predictions.jsonl", "predictions.zip")
"""Files that only a run has whose every query was answered."""


class Places:
    """Everything is made once, when it is first asked for, below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def data(self) -> Path:
        """A few rows of the bundled edition."""
        folder = self.root / "data" / "mini"
        folder.mkdir(parents=True)
        for split, count in ROWS.items():
            (folder / f"{split}.jsonl").write_text("".join(_lines(split, count)), encoding="utf-8")
        return folder.parent

    @property
    def rows(self) -> int:
        """How many queries the test split has."""
        return ROWS["test"] * len(RELATIONS)

    def examples(self) -> list[dict[str, Any]]:
        """The train rows."""
        return [json.loads(line) for line in (self.data / "mini" / "train.jsonl").read_text().splitlines()]

    @cached_property
    def masked(self) -> Path:
        """A random BERT that knows the words of the train split."""
        rows = self.examples()
        names = [name for row in rows for name in (row["SubjectEntity"], *row["ObjectEntities"])]
        words = {word for name in names for word in name.split() if word.isalpha()}
        return tiny_masked.save(self.root / "masked", sorted({*words, *(word.lower() for word in words), "none"}))

    @cached_property
    def causal(self) -> Path:
        """A random GPT-2 of bytes."""
        tiny_causal.save(self.root / "causal", "gpt2", seed=1)
        return self.root / "causal"

    def recipe(self, name: str, text: str) -> Path:
        """A recipe's file."""
        path = self.root / f"{name}.toml"
        if not path.exists():
            path.write_text(text)
        return path

    def chat(self, timeout: float = 20.0) -> Path:
        """A recipe that asks a server, and gives up soon."""
        return self.recipe(f"chat-{timeout:g}", CHAT.format(timeout=timeout))

    def workspace(self, folder: Path) -> Path:
        """This checkout's relations and editions, with thresholds of their own."""
        made = folder / "workspace"
        if not made.exists():
            made.mkdir()
            (made / "thresholds").mkdir()
            for name in ("relations", "eval"):
                (made / name).symlink_to(ROOT / name)
        return made

    def environment(self, folder: Path) -> dict[str, str]:
        """Variables that keep a run to its folder."""
        return {"XDG_CACHE_HOME": str(folder / "cache"), "OPENAI_API_KEY": CANARY}


def _lines(split: str, count: int) -> Iterator[str]:
    taken = dict.fromkeys(RELATIONS, 0)
    for line in (ROOT / "eval" / "mini" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines():
        relation = json.loads(line)["Relation"]
        if taken.get(relation, count) < count:
            taken[relation] += 1
            yield line + "\n"


def tree(folder: Path, without: Iterable[str] = ()) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    left = set(without)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in left
    }
