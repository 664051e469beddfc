"""KAMEL as asked of a server that answers by subject, for the tests of its scores and of its prompts."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from command import Command
from loopback import Body, Loopback
from rows import jsonl

Objects = Sequence[str | tuple[str, Sequence[str]] | Mapping[str, Any]]
"""Objects of a fact: a label, a label and its other names, or a row as KAMEL has it."""


def row(subject: str, objects: Objects) -> dict[str, Any]:
    """Return a line of a split."""
    named = [
        one
        if isinstance(one, Mapping)
        else {"rdf": one, "chosen": one, "alternative": []}
        if isinstance(one, str)
        else {"rdf": one[0], "chosen": one[0], "alternative": [*one[1]]}
        for one in objects
    ]
    return {"sub_label": subject, "obj_label": named}


def year(*years: str) -> list[dict[str, Any]]:
    """Return years as objects of the test split."""
    return [{"rdf": None, "chosen": one, "alternative": [f"1 May {one}", one]} for one in years]


def written(root: Path, **facts: Mapping[str, Mapping[str, Objects]]) -> Path:
    """Write data: property -> split -> subject -> its objects. Labels alone stand in train, as in KAMEL."""
    for name, splits in facts.items():
        for split in ("train", "test"):
            own = splits.get(split, {})
            lines = [
                {"sub_label": subject, "obj_label": [*objects]} if split == "train" else row(subject, objects)
                for subject, objects in own.items()
            ]
            jsonl(root / name / f"{split}.jsonl", lines)
    return root


def asked(
    command: Command, data: Path, reply: Callable[[str], str], *options: object, names: Sequence[str] = ()
) -> tuple[Any, str, list[Body]]:
    """Return what `probe kamel` prints, what it tells, and the requests to the server.

    The question of every property is its name and the subject in brackets.

    reply: function from a subject to its answer. names: properties; default: those of the folder.
    """
    templates = data.parent / "templates.csv"
    templates.write_text(
        "".join(f"{name},{name} of <[S]>?\n" for name in names or sorted(one.name for one in data.iterdir()))
    )

    def answer(body: Body) -> str:
        text = body["messages"][-1]["content"] if "messages" in body else body["prompt"].rsplit("\n", 1)[-1]
        return reply(re.findall("<(.*)>", text)[-1])

    with Loopback(answer) as server:
        words = (data, "--model", "m", "--base-url", server.url, "--store", data.parent / "s.sqlite", *options)
        printed, told = command.done(
            "probe", "kamel", *words, *(() if "--templates" in options else ("--templates", templates))
        )
        bodies = [*server.requests]
    return json.loads(printed) if "--json" in options else printed, told, bodies
