"""Tiny random masked models with a WordPiece tokenizer of whole words and single letters, saved as a user has them."""

import string
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

POSITIONS = 128
SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}


def tokenizer(words: Iterable[str], longest: int = POSITIONS, *, lowercase: bool = False) -> PreTrainedTokenizerFast:
    """The words are one token each; everything else is spelt by letters."""
    letters = string.ascii_letters + string.digits
    pieces = [*SPECIAL.values(), *words, *letters, *(f"##{letter}" for letter in letters), *".,?':"]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    raw = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True) if lowercase else None  # type: ignore[assignment]
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    raw.decoder = decoders.WordPiece()
    return PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=longest, **SPECIAL)


def save(folder: Path, words: Iterable[str] = (), seed: int = 0) -> Path:
    """A random BERT of two layers; weights are drawn wide, so that likeliest words are clear."""
    known = tokenizer(words)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(known),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        initializer_range=0.2,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    known.save_pretrained(folder)
    return folder
