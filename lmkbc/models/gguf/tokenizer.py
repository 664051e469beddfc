"""The tokenizer in a GGUF file: byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), or Gemma's.

The file names the pattern that splits a text before its merges; the patterns are llama.cpp's for that name. An unknown
name is refused: another split gives other tokens, and worse answers.

Gemma's file lists tokens without merges. A token is a merge of any two other tokens, in the order of the tokens, as in
transformers; the order of the scores differs. Blanks are handled as in SentencePiece (Kudo and Richardson 2018).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, cast

from lmkbc.errors import InputError
from lmkbc.models.gguf.header import ELSEWHERE, GEMMA, Header

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

BLANK = "▁"
_CONTROL, _OWN = 3, 4
"""Types of tokens that are never split: control tokens, and tokens that the model's makers added."""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace("{1,3}", "")
_DIGITS, _PLAIN = "digits", ""
SPLITS = {
    "gpt-2": _PLAIN,
    "phi-2": _PLAIN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "command-r": _DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
}
"""`tokenizer.ggml.pre` -> pattern: GPT-2's split, the same with single digits, or another pattern."""


def tokenizer(header: Header, window: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer with its chat template. Raise InputError for an unsupported one."""
    from transformers import PreTrainedTokenizerFast

    kind, split = header.value("tokenizer.ggml.model", str), header.value("tokenizer.ggml.pre", str, "default")
    pieces = header.architecture == GEMMA
    prefixed = header.value("tokenizer.ggml.add_space_prefix", bool, False)
    if not (kind == "llama" and not prefixed if pieces else kind == "gpt2" and split in SPLITS):
        raise InputError(
            f"{header.path} has a tokenizer of the kind {kind!r}, {split!r}, and 'gpt2' is read with "
            f"{', '.join(SPLITS)}, 'llama' of a Gemma: {ELSEWHERE}"
        )
    tokens = _strings(header, "tokenizer.ggml.tokens")
    if pieces:  # the file holds tokens of mere blanks as blanks
        tokens = [BLANK * len(token) if token and not token.strip(" ") else token for token in tokens]
    template = header.value("tokenizer.chat_template", str, "")
    places = {f"{end}_token": token_id(header, key) for end, key in _ENDS.items()}
    ends: dict[str, Any] = {name: tokens[place] for name, place in places.items() if place is not None}
    return PreTrainedTokenizerFast(
        tokenizer_object=_raw(header, tokens, split, ends.get("bos_token")),
        model_max_length=window,
        clean_up_tokenization_spaces=False,
        chat_template=template or None,
        **ends,
    )


_ENDS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def _raw(header: Header, tokens: list[str], split: str, bos: str | None) -> Tokenizer:
    from tokenizers import AddedToken, processors

    words = {token: place for place, token in enumerate(tokens)}
    pieces = header.architecture == GEMMA
    raw = _sentence_pieces(header, words) if pieces else _byte_level(header, words, split)
    if bos is not None and header.value("tokenizer.ggml.add_bos_token", bool, pieces):
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, words[bos])]
        )
    kinds = header.metadata.get("tokenizer.ggml.token_type", ())
    whole = [(token, int(kind)) for token, kind in zip(tokens, kinds, strict=False) if kind in (_CONTROL, _OWN)]
    raw.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in whole if kind == _CONTROL]
    )
    raw.add_tokens([AddedToken(token, normalized=False, special=False) for token, kind in whole if kind == _OWN])
    return raw


def _byte_level(header: Header, words: dict[str, int], split: str) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    lines = _strings(header, "tokenizer.ggml.merges")
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in lines)]
    raw = Tokenizer(models.BPE(vocab=words, merges=merges, ignore_merges=SPLITS[split] is _LLAMA3))
    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern in (_DIGITS, _PLAIN))]
    if pattern is _DIGITS:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    elif pattern is not _PLAIN:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), behavior="isolated"))
    raw.pre_tokenizer = pre_tokenizers.Sequence(steps)
    raw.decoder = decoders.ByteLevel()
    return raw


def _sentence_pieces(header: Header, words: dict[str, int]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    unknown = token_id(header, "unknown")
    unknown_token = None if unknown is None else list(words)[unknown]
    raw = Tokenizer(
        models.BPE(vocab=words, merges=list(_merges(words)), unk_token=unknown_token, fuse_unk=True, byte_fallback=True)
    )
    raw.normalizer = normalizers.Replace(" ", BLANK)
    raw.decoder = decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()])
    return raw


def _merges(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield all pairs of tokens that form a third token, in the order of the third."""
    for token in words:
        for cut in range(len(token) - 1, 0, -1):
            if (left := token[:cut]) in words and (right := token[cut:]) in words:
                yield left, right


def _strings(header: Header, key: str) -> list[str]:
    return cast(list[str], header.value(key, list))


def token_id(header: Header, name: str) -> int | None:
    """Return the id of a special token, such as "eos"; None if there is none."""
    key = f"tokenizer.ggml.{name}_token_id"
    return int(header.value(key, int)) if key in header.metadata else None
