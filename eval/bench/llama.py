"""Our torch path against llama.cpp at its best setting, on the same real prompts and the same GGUF file.

Prompts are few-shot triples about the labelled held-out split. Prompts of a relation follow each other, so that both
sides can share prefixes. The number of prompts per relation limits how many are decoded at a time. With --relations, a
few relations have as many prompts each as in the whole split.

llama.cpp runs in process, without HTTP. Its slots decode in one batch, with every prompt cache on. Each number of slots
is a side; compare with the best of them. Each side is a process of its own. The sides take turns, portion by portion,
so that load on the machine affects all. CPU time is that of the active side.

All sides have the same stop strings, end tokens and max_tokens. Ours also stops if an answer repeats itself. Out:
tokens of an answer. Same: share of equal texts among the answers that ended by themselves both here and on the first
side.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from eval.bench import model_of, parsed, parser_of, timed
from lmkbc.ask.builder import PromptBuilder, PromptSettings
from lmkbc.ask.examples import Shots
from lmkbc.ask.style import PromptStyle
from lmkbc.models.located import gguf_file
from lmkbc.workspace import Workspace

SIDES = ("torch-float32", "torch-bfloat16", "llama.cpp")
STYLE = PromptStyle(form="completion", block="{{ subject }}, {{ phrase }}:")


class Completed(NamedTuple):
    """An answer up to the line's end, its number of tokens, and whether it ended by itself."""

    text: str
    tokens: int
    ended: bool


Answer = Callable[[Sequence[str]], list[Completed]]


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--prompts", type=int, help="so many, evenly from all relations (default: the whole split)")
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--shots", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--no-stop", action="store_true", help="let answers continue beyond their end, to max_tokens")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--relations", type=int, help="so many relations, the first ones (default: all)")
    parser.add_argument("--slots", type=int, nargs="+", default=[8], help="of llama.cpp: prompts decoded at a time")
    parser.add_argument("--portions", type=int, default=4, help="in how many the sides take turns")
    parser.add_argument("--only", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="a packaged model, or FILE.gguf")
    few = {"edition": "mini", "prompts": 8, "shots": 1, "portions": 1, "relations": 1, "max_tokens": 4, "slots": [2]}
    given = parsed(parser, argv, threads=1, **few)
    with model_of(given) as model:
        if (path := gguf_file(model)) is None:
            sys.exit(f"{model} is no GGUF file, and llama.cpp reads nothing else")
        measure(given, path)


def measure(given: argparse.Namespace, path: Path) -> None:
    """Let the sides take turns, and print their rates."""
    portions = list(prompts(Workspace(data=given.data), given))
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # of the processes that begin now
    llamas = [f"llama.cpp-{slots}" for slots in given.slots if "llama.cpp" in given.only]
    names = [*(name for name in given.only if name != "llama.cpp"), *llamas]
    sides = {name: Side(name, str(path), given) for name in names}
    print(f"{sum(map(len, portions))} prompts of {given.edition}, {given.threads} threads, {path.name}")
    for number, portion in enumerate(portions):
        for side in list(sides.values())[:: 1 if number % 2 == 0 else -1]:
            side.take(portion)
        print(f"portion {number + 1} of {len(portions)} done", file=sys.stderr, flush=True)
    first = sides[names[0]]
    print("side              load s  CPU s a prompt  wall s a prompt   out  CPU ms a token   same")
    for name, side in sides.items():
        side.end()
        count = max(len(side.answers), 1)
        pairs = zip(side.answers, first.answers, strict=True)
        both = [one.text == other.text for one, other in pairs if one.ended and other.ended]
        same = sum(both) / max(len(both), 1)
        out = sum(one.tokens for one in side.answers) / count
        spent = f"{side.cpu / count:14.3f}  {side.wall / count:15.3f}"
        token = 1000 * side.cpu / count / max(out, 1)
        print(f"{name:16} {side.load:7.1f}  {spent}  {out:4.1f}  {token:14.1f}  {same:5.3f}")


def prompts(workspace: Workspace, given: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the prompts in portions. Each portion has prompts of every relation, those of a relation together."""
    edition = workspace.edition(given.edition)
    relations = {name: workspace.relation(name) for name in edition.relations}
    asks = PromptSettings(prompt=STYLE, shots=Shots(k=given.shots))
    asking = PromptBuilder(edition, relations, workspace.examples(edition, "train"), asks, workspace.relations)
    asked = list(edition.relations)[: given.relations]
    queries = [one for one in workspace.queries(edition, edition.held_out) if one.relation in asked]
    places: Counter[str] = Counter()
    order = []
    for query in queries:
        order.append((places[query.relation], query))
        places[query.relation] += 1
    chosen = [query for _, query in sorted(order, key=lambda one: one[0])][: given.prompts]
    size = -(-len(chosen) // given.portions)
    for portion in (chosen[start : start + size] for start in range(0, len(chosen), size)):
        yield [asking.prompt(query).text for query in sorted(portion, key=lambda query: query.relation)]


class Side:
    """One side, in a process of its own. load, cpu, wall: seconds so far."""

    def __init__(self, name: str, path: str, given: argparse.Namespace) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._line, far = spawn.Pipe()
        kind: Any = threading.Thread if given.small else spawn.Process
        self._worker = kind(target=work, args=(name, path, given, far), daemon=True)
        self._worker.start()
        self.load: float = self._line.recv()
        self.cpu = self.wall = 0.0
        self.answers: list[Completed] = []

    def take(self, portion: Sequence[str]) -> None:
        """Send a portion to the process, and add its answers and times."""
        self._line.send(portion)
        answers, cpu, wall = self._line.recv()
        self.answers += answers
        self.cpu += cpu
        self.wall += wall

    def end(self) -> None:
        """End the process."""
        self._line.send(None)
        self._worker.join()


def work(name: str, path: str, given: argparse.Namespace, line: Connection) -> None:
    """Answer portions when they arrive, and send back the answers and times."""
    kind, _, setting = name.rpartition("-")

    def ready() -> Answer:
        made = llama(path, given, int(setting)) if kind == "llama.cpp" else causal(path, given, setting)
        made(["Warm:"])
        return made

    answer, _, seconds = timed(ready)
    line.send(seconds)
    while (portion := line.recv()) is not None:
        line.send(timed(answer, portion))


def causal(path: str, given: argparse.Namespace, dtype: str) -> Answer:
    """Return our path: a batch whose common prefixes are computed once."""
    import torch

    from lmkbc.local.checkpoint import load
    from lmkbc.local.decode import Decoding
    from lmkbc.local.model import CausalModel

    torch.set_num_threads(given.threads)
    model = CausalModel(*load(path, dtype=dtype, offline=True))
    how = Decoding(max_tokens=given.max_tokens, stops=() if given.no_stop else STYLE.stops)

    def answer(portion: Sequence[str]) -> list[Completed]:
        found = dict(model.complete(portion, how))
        draws = [found[place][0] for place in range(len(portion))]
        return [Completed((draw.text or "").strip(), draw.tokens, draw.finished) for draw in draws]

    return answer


def llama(path: str, given: argparse.Namespace, slots: int) -> Answer:
    """Return llama.cpp's path: as many requests at a time as it has slots. A slot caches the prefix of its prompts."""
    import llama_server

    server = llama_server.opened(path, context=2048 * slots, slots=slots, threads=given.threads)
    asks = {"temperature": 0.0, "max_tokens": given.max_tokens, "cache_prompt": True}
    asks |= {} if given.no_stop else {"stop": list(STYLE.stops)}

    def one(prompt: str) -> Completed:
        done = server.handle_completions({"prompt": prompt, **asks})
        (choice,), tokens = done["choices"], done["usage"]["completion_tokens"]
        return Completed(str(choice["text"]).strip(), int(tokens), choice["finish_reason"] == "stop")

    def answer(portion: Sequence[str]) -> list[Completed]:
        with ThreadPoolExecutor(slots) as pool:
            return list(pool.map(one, portion))

    return answer
