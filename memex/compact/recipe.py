"""What a summary is made by: level, prompt, schema, provider, model. Hashed with its input: the fingerprint."""

from dataclasses import dataclass, replace

from memex.llm.answers import Answer
from memex.llm.base import SummaryLevel, Writer
from memex.model import Origin
from memex.text import digest

SCHEMA_VERSIONS: dict[SummaryLevel, int] = {"observations": 1, "talks": 1, "sessions": 1}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to make the rows of one level.

    >>> str(Recipe("talks", "1", 1, "extractive", "extractive"))
    'talks/prompt-1/schema-1/extractive/extractive'
    """

    level: SummaryLevel
    prompt_version: str
    schema_version: int
    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.level}/prompt-{self.prompt_version}/schema-{self.schema_version}/{self.provider}/{self.model}"

    def fingerprint(self, *content: str) -> str:
        """Hash the recipe with the content that it is applied to."""
        return digest(str(self), *content)


def recipe_of(writer: Writer, level: SummaryLevel) -> Recipe:
    """Tell the recipe by which this writer makes this level."""
    return Recipe(level, writer.version_of(level), SCHEMA_VERSIONS[level], writer.provider, writer.model)


def made_by(origin: Origin, answer: Answer) -> Origin:
    """Note who gave an answer and what it cost; the recipe stays the one that was wanted."""
    by = answer.by
    return replace(origin, provider=by.provider, model=by.model, cost_usd=by.cost_usd) if by else origin
