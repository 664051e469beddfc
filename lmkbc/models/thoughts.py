"""The answer in a turn of a model: behind its thoughts, in its final channel or answer tag, before control tokens.

Each family of models marks these places in its own way, and some servers and front ends leave the marks in the text, or
only their bare words. All marks are first written as `<think>` and `<answer>`; the answer is then found in one way.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Literal

from lmkbc.names import LONGEST, shown
from lmkbc.patterns import patterns_beside

FORM = patterns_beside(__file__)
"""Signs of turns and thoughts by name, from words.toml."""

_DETAILS = (
    r"<details\b(?:[^<>]{0,200}\b(?:reasoning|thinking)\b[^<>]{0,200}>"
    r"|[^<>]{0,200}>\s*<summary>[^<]{0,100}(?:think|thought|reason)[^<]{0,100}</summary>)"
)

_FAMILIES = [
    (re.compile(pattern, re.IGNORECASE), mark)
    for pattern, mark in (
        (r"(?:&lt;|\\u003c)(/?[a-z|][\w |]{0,30})(?:&gt;|\\u003e)", r"<\1>"),
        (r"```[ \t]*(?:thinking|thought|think|reasoning)[ \t]*\n[\s\S]*?(?:```|\Z)", "</think>"),
        (r"<\|content\|>", "</think>"),
        (r"\bfinish\[([^\]\n]{0,1000})\]", r"<answer>\1</answer>"),
        (r"<escape>|<\|\\?\"\|>", '"'),
        (r"\[e~\[", "<end>"),
        (r"<role>\s*(?:assistant|model)\s*</role>|<extra_id_1>\s*assistant\b|\]~b\]\s*ai\b", "<model>"),
        (r"<role>\s*(?:user|human)\s*</role>|<extra_id_1>\s*user\b|\]~b\]\s*user\b", "<user>"),
        (
            r"\A\s*(?:AIMessage\()?content=(['\"])([\s\S]*?)\1,? (?:additional_kwargs|response_metadata)=[\s\S]*",
            r"\2",
        ),
        (r"\[?TextBlock\([^()]{0,200}?text=(['\"])((?:(?!TextBlock\()[\s\S])*?)\1(?:, [^()]{0,200})?\)\]?", r"\2"),
        (r"<\|im_start\|>\s*think\b", "<think>"),
        (r"<\|im_start\|>\s*answer\b", "</think>"),
        (r"\x1b\[[0-9;]*[a-z]", ""),
        (r"(</?)｜DSML｜", r"\1"),
        (r":::[ \t]*(?:thinking|thought|reasoning)[ \t]*\n[\s\S]*?(?:\n:::|\Z)", "</think>"),
        (r"<!--[\s\S]*?(?:-->|\Z)", ""),
        (r"<\|inner_prefix\|>", "<think>"),
        (r"<\|inner_suffix\|>", "</think>"),
        (r"\A\s*(?:chatgpt|claude|gemini|copilot|deepseek|assistant) said:[ \t]*\n", "<end>"),
        # harmony (gpt-oss, Muse): a message to oneself, to the user, or to a tool
        (r"<\|channel\|>\s*final[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>", "</think>"),
        (
            r"<\|channel\|>\s*\w+\s+to=[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>",
            "</think>",
        ),
        (r"<\|channel\|>\s*(?:analysis|commentary)\s*(?:<\|message\|>)?", "<think>"),
        # the same without its control tokens
        (r"(?-i:assistant(?:\s*to=(?:user|all)|final|\s+final(?![a-z ]))(?:\s*json\b)?)\s*", "</think>"),
        (r"assistant\s*commentary\s+to=[\w.]+?\s*(?:json)?\s*(?=[\[{\"'<])", "</think>"),
        (r"\A\s*final\s*(?=[\[{\"]|\n)", "</think>"),
        (r"\A\s*(?:assistant\s*)?to=self", "<think>"),
        # Gemma, MedGemma, Granite, and what front ends show in place of tags
        (r"<\|channel>\s*thought\b", "<think>"),
        (r"<channel\|>", "</think>"),
        (r"<unused94>", "<think>"),
        (r"<unused95>", "</think>"),
        (r"\A\W*here(?:'s| is) my (?:thought process|thinking|reasoning)(?: process)?\s*:", "<think>"),
        (r"\bhere(?:'s| is) my (?:final )?(?:response|answer)\s*:", "</think>"),
        (r"\A\s*thinking\.\.\.[ \t]*\n", "<think>"),
        (r"\.\.\.\s*done thinking\.?", "</think>"),
        (r"\A\W*(?:thought|reasoned|thinking) for [^\n]{1,40}\n", "</think>"),
        (rf"{_DETAILS}(?:(?!</?details)[\s\S])*</details>", "</think>"),
        (_DETAILS, "<think>"),
        (r"\A\s*(?:>[^\n]*\n\s*)+(?=[^\s>])", "</think>"),
    )
]
"""A mark of thoughts or answers that is no plain tag, and its plain form."""


THOUGHT_NAMES = "think|thought|reason|reflect|scratchpad|monologue|rationale|deliberat|analysis"
"""Parts of the names of tags of thoughts."""
_THOUGHT = re.compile(rf"{THOUGHT_NAMES}|cot$")
_ANSWERS = frozenset(
    "answer answers finalanswer final response finalresponse output finaloutput result solution".split()
)
_CONTROL = frozenset(
    "s sop bos eos pad unk sep cls inst sys turn eot eod eom eop endoftext startoftext beginoftext startofturn "
    "endofturn eoa eoh endofutterance endofsentence endofmessage endofdocument user assistant system human bot".split()
)
"""Names of control tokens that some families write as plain tags; `<|...|>` is always one."""


MOST_READ = 32_000
"""Maximum number of characters that are read at the start of a text, and at its end."""


def bounded(text: str) -> str:
    """Return a text with runs of blanks and signs cut short, and of a very long one both ends.

    The parts of names at which it is cut are left out.
    """
    text = FORM.run.sub(r"\1\2\3", text)
    if len(text) <= 2 * MOST_READ:
        return text
    start, end = text[:MOST_READ], text[-MOST_READ:]
    whole = max(start.rfind(mark, MOST_READ - LONGEST) for mark in ",;\n")
    further = min((place for mark in ",;\n" if (place := end.find(mark, 0, LONGEST)) >= 0), default=-1)
    return f"{start[: whole + 1] or start}\n{end[further + 1 :]}"


@lru_cache(maxsize=64)
def answer_of(text: str) -> str | None:
    """Return a completion without its thoughts and control tokens; only the ends of a very long one are read.

    It is None if the thoughts are incomplete, "" if nothing visible follows them, or if the answer's tag is empty.
    """
    text = _own_turn(bounded(text))
    for pattern, mark in _FAMILIES:
        text = pattern.sub(mark, text)
    text = FORM.tag.sub(_plain_mark, FORM.harmony.sub("<think>", text, count=1))
    rest, thought = "", "</think>"
    while thought and not shown(_turn(rest)):  # an answer may also stand before its reasons
        before, thought, rest = text.rpartition("</think>")
        if not thought and "<think>" in rest:
            before, _, rest = rest.partition("<think>")
            return _tagged(rest) if rest.rstrip().endswith("</answer>") else None
        text = before.rpartition("<think>")[0] if "<think>" in before else ""
    if "<think>" in rest and not rest.rstrip().endswith("</answer>"):
        return None
    return _tagged(rest)


def thinks_aloud(text: str) -> bool:
    """Return whether an answer begins as a thought without any mark does, and comes to no end."""
    return FORM.aloud.match(text) is not None and FORM.final.search(text) is None


def _own_turn(text: str) -> str:
    """Return the first turn of the model: without prompt's turns before it, and without the user's turns behind it."""
    text = FORM.header.sub(_role, FORM.echo.sub("<model>", re.sub(r"\[\|(\w{1,30})\|\]", r"<|\1|>", text)))
    parts = re.split(r"(<user>|<model>)", text)
    own = [parts[0]] if shown(FORM.tag.sub(_plain_mark, parts[0]).replace("<end>", "")) else []
    for mark, part in zip(parts[1::2], parts[2::2], strict=True):
        if mark == "<user>" and own:
            break
        if mark == "<model>":
            own.append(part)
    return "<end>".join(own)


def _role(header: re.Match[str]) -> str:
    """Return the mark of a turn's header."""
    if header["inst"]:
        return "<model>" if "/" in header["inst"] else "<user>"
    name = (header["role"] or header["token"]).casefold()
    return "<model>" if name in ("assistant", "model", "chatbot_token") else "<user>"


def _tagged(text: str) -> str:
    """Return what stands in the last answer tags of a text that follow each other; all of it if there are none."""
    end, parts = None, list[str]()
    for match in reversed(list(re.finditer(r"<answer>(.*?)(?:</answer>|\Z)", text, re.DOTALL))):
        if end is not None and text[match.end() : end].strip(" \t\r\n,;"):
            break
        parts.append(shown(_turn(match[1])))
        end = match.start()
    if end is None:
        return shown(_turn(text.partition("</answer>")[0]))
    return "\n".join(filter(None, reversed(parts)))


def _turn(text: str) -> str:
    """Return a text without role headers and control tokens at its start, up to the end of the model's own turn."""
    text = text.replace("<tool>", "\n")
    while (bare := FORM.role.sub("", text, count=1)) != text:
        text = bare
    text = FORM.cut_tag.sub("", text.partition("<end>")[0])
    if thinks_aloud(text):
        return text
    before = (text[: line.start()] for line in islice(FORM.user_line.finditer(text), 8))
    return next((part for part in before if shown(part).rstrip("*_")[-1:] not in ("", ":")), text)


def _plain_mark(tag: re.Match[str]) -> str:
    """Return the mark of a tag: of a thought, an answer, a tool or another control token; else the tag itself."""
    key = re.sub(r"[^a-z]", "", (tag["name"] or tag["word"]).casefold())
    core = FORM.part.sub("", FORM.part.sub("", key))
    is_end = bool(tag["slash"] or tag["close"]) or key.startswith("end") or key.endswith("end")
    special = tag[0][:2] in ("<|", "<｜") or tag[0][-2:] in ("|>", "｜>") or tag["word"] is not None
    if tag[0].endswith("/>"):
        return tag[0]
    kind: Literal["think", "answer", ""] = "think" if _THOUGHT.search(core) else "answer" if core in _ANSWERS else ""
    if kind:
        return f"</{kind}>" if is_end else f"<{kind}>"
    if FORM.tools.search(core) if special else FORM.call.match(core):
        return "<tool>"
    last = re.split(r"[:_]", (tag["name"] or "").casefold())[-1]
    return "<end>" if special or key in _CONTROL or last in ("s", "eos", "bos") else tag[0]
