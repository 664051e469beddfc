"""One recipe with one model in three or four ways: local, over a server, by vLLM, and from recorded replies.

    python eval/bench/one_recipe.py [--system lix23] [--edition 2023] [--limit 20]

The server is llama.cpp on loopback, with the same GGUF file (lmkbc[llamacpp]). It stores keys and values in half
precision, so a few of its answers differ. If a recipe samples, all differ. With vLLM installed, it is a fourth
way. The recipe is the same file each time. Printed: seconds of the whole command, official F1 on the asked queries, and
number of rows that differ from the first run's. A reply that cannot be parsed counts as an empty answer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lmkbc.cli.terminal import error_status

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from llama_server import serving

from lmkbc.models.located import gguf_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="lix23")
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--limit", type=int, default=20, help="queries")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    given = parser.parse_args()
    path = gguf_file(given.model)
    if path is None:
        sys.exit(f"{given.model} is no GGUF file, and llama.cpp reads nothing else")
    vllm = find_spec("vllm") is not None
    common = ["--split", "val", "--untuned", "--no-report", "--failed-as-empty"]
    common += ["--edition", given.edition, "--system", given.system, "--limit", str(given.limit)]
    with TemporaryDirectory() as folder, serving(Path(folder) / "server.log", path) as url:
        ways = {
            "this machine": ["--model", given.model, "--store", f"{folder}/local.sqlite"],
            "server": ["--base-url", url, "--any-model", "--store", f"{folder}/server.sqlite"],
            **(
                {"vLLM": ["--model", given.model, "--backend", "vllm", "--store", f"{folder}/vllm.sqlite"]}
                if vllm
                else {}
            ),
            "recorded": ["--from", f"{folder}/this machine/replies.jsonl.gz"],
        }
        first: list[dict[str, Any]] = []
        print(f"{'asked':14} {'seconds':>8} {'F1':>6}  rows that differ")
        for name, words in ways.items():
            out = Path(folder) / name
            start = time.monotonic()
            run("predict", *common, *words, "--out", str(out))
            seconds = time.monotonic() - start
            rows = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
            first = first or rows
            differ = sum(row != other for row, other in zip(rows, first, strict=True))
            lines = [line.split() for line in run("evaluate", str(out)).splitlines() if line.startswith("*** Average")]
            print(f"{name:14} {seconds:8.1f} {lines[0][5]:>6}  {differ} of {len(rows)}", flush=True)


def run(*words: str) -> str:
    """Run a command of lmkbc, and return its output. If it fails, exit with its errors."""
    done = subprocess.run([sys.executable, "-m", "lmkbc", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"lmkbc {' '.join(words)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    with error_status():
        main()
