"""What generators over language models share, whatever the back end: their table, and the turns of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lmkbc.ask.context.passages import Complete, Provider
from lmkbc.ask.context.providers import located, provider
from lmkbc.ask.context.settings import ContextSettings
from lmkbc.ask.plan import Asking, Asks
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.generate.verify import Check
from lmkbc.models.encoder import find_encoder
from lmkbc.run import Run
from lmkbc.types import Example, Generator, Notes


@dataclass(frozen=True, kw_only=True)
class LanguageModelSpec(Asks, GeneratorSpec):
    """What the table of a generator over a language model may say.

    context: text that is found about each subject. closed_book: refuse text from outside the model. verify: how the
    model is asked again whether each fact holds; not at all where it is left out.
    """

    context: ContextSettings = field(default_factory=ContextSettings)
    closed_book: bool = True
    verify: Check | None = None

    def __post_init__(self) -> None:
        """ValueError for settings that contradict each other."""
        super().__post_init__()
        if self.context.reads and self.closed_book:
            raise ValueError(
                f"the recipe is closed-book, but its context {self.context.provider!r} reads text from outside the "
                "model: say closed_book = false, or use 'none' or 'recall'"
            )

    def check(self, relations: Relations) -> None:
        """InputError for a relation that does not exist."""
        super().check(relations)
        check_names(self.relations, relations, f"generator {self.component!r}: relations")
        check_names(self.verify.only if self.verify else (), relations, f"generator {self.component!r}: verify.only")

    def voices(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """The generator, which calls its draws by the table's name itself."""
        yield self.name or self.component, self.open(run, notes)

    def asking(self, run: Run, train: Sequence[Example] | None = None) -> Asking:
        """What is asked about the run's relations, after examples of train, some of them selected by embedding.

        train: other examples than the run's train split.
        """
        encoder = find_encoder() if self.embeds else None
        examples = run.train if train is None else train
        return Asking(run.edition, run.relations, examples, self, run.workspace.relations, encoder)

    def provider(self, run: Run, complete: Complete) -> Provider | None:
        """What finds passages, where the table wants any. complete: how recall asks the model."""
        return provider(located(self.context, run.files), run.relations, complete, run.cache)
