"""Access to language models: opens the model that a recipe and the command line name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lmkbc.errors import InputError, OptionError, check_known
from lmkbc.models.answers import CountingModel, DryStore, Store
from lmkbc.models.base import LanguageModel, check_extra
from lmkbc.models.budget import Budget
from lmkbc.models.identity import model_name
from lmkbc.models.located import is_available, is_local_name
from lmkbc.models.reference import ASKED_AS, AUTO, LOCAL, OF_SERVERS, ModelReference, flat
from lmkbc.models.server.address import BASE_URL, OF_OPENAI, Server
from lmkbc.models.server.limits import Limits
from lmkbc.notes import Notes
from lmkbc.registry import BACK_ENDS
from lmkbc.session.run import ModelRun
from lmkbc.settings import checked

if TYPE_CHECKING:
    from lmkbc.models.server.client import CompletionClient


@dataclass(frozen=True, kw_only=True)
class StepModel(ModelReference):
    """The model that a step asks short questions. extra: further fields of every request to a server."""

    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for wrong settings."""
        super().__post_init__()
        check_known(self.component, ASKED_AS, f"component is {self.component!r}")
        check_extra(self.extra)

    def open(self, run: ModelRun, notes: Notes, *, replayed: bool = False, lacking: str = "") -> LanguageModel | None:
        """Return the model; None, with a remark, if recorded answers replace models and no model is given.

        lacking: what the model could do, and what happens without it, as the end of a sentence.
        """
        if replayed and not is_given(self, run):
            notes.remark(f"no model is given that could {lacking}")
            return None
        return open_model(self, run, notes, extra=self.extra, of_servers=["extra"] if self.extra else ())


def step_model(given: str | Mapping[str, Any], what: str = "ask") -> StepModel | None:
    """Return the model that a step's setting names by a string or a table; None for "".

    what: the setting, for messages. Raise InputError for wrong settings.
    """
    return checked(StepModel, {"model": given} if isinstance(given, str) else flat(given), what) if given else None


def back_end_of(model: ModelReference, run: ModelRun) -> str:
    """Return the name of a model's back end; --backend precedes the table's.

    "auto" means this machine if the recipe asks for it, or if no server is named and the model is here.
    """
    named = run.backend or model.backend
    if named != AUTO:
        return named
    if run.servers.get("base_url") or model.base_url:
        return "server"
    here = not os.environ.get(BASE_URL) and is_local_name(run.model or model.model or "")
    return "local" if here or model.component == "causal" else "server"


def is_given(model: ModelReference, run: ModelRun) -> bool:
    """Return whether a model can be asked: a server or a model is named, or the model is stored on this machine."""
    back_end = back_end_of(model, run)
    if back_end == LOCAL:
        return bool(run.model or (model.model and is_available(model.model)))
    return back_end != "server" or bool(_address(model, run))


def _address(model: ModelReference, run: ModelRun) -> str:
    """Return the address that is named for a model's server; "" if none is."""
    return run.servers.get("base_url") or model.base_url or os.environ.get(BASE_URL, "")


def _takes_any(model: ModelReference, run: ModelRun) -> bool:
    """Return whether the choice of the model is left to its server."""
    return back_end_of(model, run) != LOCAL and (model.any_model or run.servers.get("any_model", False))


def served(model: ModelReference, run: ModelRun) -> str | None:
    """Return the name of the model that a server serves, if the recipe leaves the choice to the server; else None."""
    back_end = back_end_of(model, run)
    if back_end == LOCAL and run.servers.get("any_model", False):
        raise OptionError("any_model", "needs a server: name one with --base-url, or leave it out")
    return server_of(model, run, BACK_ENDS.get(back_end), run.store()).name if _takes_any(model, run) else None


def asked_name(model: ModelReference, run: ModelRun) -> str:
    """Return what is known of the model's name before a server is asked; "" if nothing is."""
    of_server = f"the model of {url}" if (url := _address(model, run)) and _takes_any(model, run) else ""
    return model_name(run.model or "") or of_server or model_name(model.model or "")


def source(model: ModelReference, run: ModelRun) -> str:
    """Return the name or path of a local model; --model precedes the table's. Raise InputError if there is none."""
    if place := run.model or model.model:
        return place
    raise InputError("no model is named: give one with --model, of the hub, a directory or a GGUF file")


def server_of(model: ModelReference, run: ModelRun, client: type[CompletionClient], store: Store) -> Server:
    """Return the server of a model; the command line (--model, --base-url, ...) precedes the table.

    A library has no address.
    """
    from lmkbc.models.server.client import as_served  # imported late: loads the server's library

    if client.defaults is None:  # a library in this process
        return Server("", source(model, run), model.revision)
    lacking = ""
    if run.model and not run.offline and not _address(model, run) and client.defaults == OF_OPENAI:
        lacking = f"no directory or GGUF file {run.model} is here, and --base-url names no server"
        if "/" in run.model:
            raise InputError(f"{lacking}: correct the name, or say --backend local to fetch it from the model hub")
    try:
        server = Server.of(
            run.servers.get("base_url"),
            run.model or model.model,
            revision=model.revision,
            any_model=model.any_model or run.servers.get("any_model", False),
            offline=run.offline,
            recipe_url=model.base_url,
            key_env=model.key_env,
            defaults=client.defaults,
        )
    except InputError as error:
        if not lacking:
            raise
        raise InputError(f"{lacking}, so OpenAI is asked: {error}") from None
    return as_served(server, partial(client, server, limits_of(model, run)), store, run.listings, offline=run.offline)


def limits_of(model: ModelReference, run: ModelRun) -> Limits:
    """Return the limits on requests to a model's server; the command line (--timeout, ...) precedes the table."""
    given, limits = run.servers, model.limits
    return replace(
        limits,
        concurrency=given.get("concurrency") or limits.concurrency,
        timeout=given.get("timeout") or limits.timeout,
    )


def open_model(
    model: ModelReference,
    run: ModelRun,
    notes: Notes,
    *,
    completion: bool | None = None,
    extra: Mapping[str, Any] | None = None,
    of_servers: Iterable[str] = (),
) -> LanguageModel:
    """Return an opened model of any back end. Raise InputError for something that the run lacks.

    completion: whether plain questions are completed as text; None for a chat if the model supports it.
    extra: see `ServerModel`.
    of_servers: names of other given settings that only a server supports.
    """
    opened: Any
    name = back_end_of(model, run)
    if name == LOCAL:
        opened = local_model(model, run, notes, completion=completion)
        plain = ModelReference()
        given = {*of_servers, *(name for name in OF_SERVERS if getattr(model, name) != getattr(plain, name))}
        if given:
            names = ", ".join(sorted(given))
            notes.remark(f"{opened.name} runs on this machine: settings that only a server uses are ignored ({names})")
    else:
        from lmkbc.models.server.server_model import ServerModel  # imported late: loads the server's library

        client, store, of_run = BACK_ENDS.get(name), run.store(), run.servers
        prices = of_run.get("prices") or model.prices
        budget = Budget(of_run.get("max_cost"), of_run.get("max_tokens"), prices, run.budgets)
        opened = ServerModel(
            server_of(model, run, client, store),
            store,
            limits_of(model, run),
            budget,
            client=client,
            offline=run.offline,
            completion=bool(completion),
            extra=extra,
            notes=notes,
        )
    notes.asked(opened.name)
    return CountingModel(opened, opened.store) if isinstance(opened.store, DryStore) else opened


def local_model(model: ModelReference, run: ModelRun, notes: Notes, *, completion: bool | None = None) -> Any:
    """Return a model of this machine, with its hidden states. All steps of a run share it."""
    return BACK_ENDS.get(LOCAL)(model, source(model, run), run, notes, completion=completion)
