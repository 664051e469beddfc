"""A training that a test kills: python resume_run.py CHECKPOINT OUT DELAY."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from conftest import make_backbone, make_facts
from safetensors.torch import save_file

from lmkbc.train.loop import Plan
from lmkbc.train.mlm import Masking, train_mlm


def main() -> None:
    torch.set_num_threads(1)
    checkpoint, out, delay = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    backbone, facts = make_backbone(), make_facts()

    def report(step: str, done: int, total: int | None) -> None:
        time.sleep(delay)

    plan = Plan(rate=1e-2, epochs=10, batch=3, every=2, patience=100)
    train_mlm(backbone, facts[:6], facts[6:], plan, Masking(), checkpoint=checkpoint, report=report)
    save_file({name: value.contiguous().clone() for name, value in backbone.model.state_dict().items()}, out)


if __name__ == "__main__":
    main()
