"""From settings to clients: which providers are asked, in which order, and what is known about them."""

from pathlib import Path

from memex.errors import ConfigError
from memex.llm.asking import Desk
from memex.llm.book import Book
from memex.llm.chain import Chain
from memex.llm.client import Client
from memex.llm.facts import model_facts
from memex.llm.instructed import InstructorWriter
from memex.llm.render import Renderer
from memex.llm.slots import Slots
from memex.privacy import redact
from memex.settings import Settings, config_path


def open_writer(settings: Settings, book: Book) -> InstructorWriter:
    """Wire the provider of the settings, and those to fall back to, into a writer.

    Raises:
        ConfigError: a provider has no model or no address, or nobody knows its prices.
    """
    compact = settings.compact
    names = configured(settings)
    clients = [open_client(settings, name, book) for name in names]
    workers = max(getattr(compact, name).workers for name in names)
    desk = Desk(Chain(clients, book), book)
    return InstructorWriter(desk, Renderer(lambda text: _redacted(settings, text)), workers)


def open_client(settings: Settings, name: str, book: Book) -> Client:
    """Wire one provider.

    Raises:
        ConfigError: it has no model or no address.
    """
    own = getattr(settings.compact, name)
    endpoint = _endpoint(name, own.endpoint)
    facts = model_facts(name, own.model, endpoint, settings.compact.models_file or _models_file())
    if not own.model:
        raise ConfigError(f"compact.{name}.model is not set", f"name a model under [compact.{name}]")
    if not facts.endpoint:
        raise ConfigError(f"compact.{name}.endpoint is not set", f"give its address under [compact.{name}]")
    return Client(
        name=name,
        model=own.model,
        facts=facts,
        api_key=own.api_key.get_secret_value(),
        timeout_seconds=own.timeout_seconds,
        slots=Slots(settings.home / "journal" / "slots", name, own.workers),
        book=book,
        redact=lambda text: _redacted(settings, text),
        call_tokens=settings.compact.budget.call_tokens,
    )


def configured(settings: Settings) -> list[str]:
    """Name the providers that a run may ask, in order; none with the extractive writer."""
    names = dict.fromkeys((settings.compact.provider, *settings.compact.fallback))
    return [name for name in names if name != "extractive"]


def _endpoint(name: str, endpoint: str) -> str:
    """Complete the address of Ollama, which is usually given without the path of this protocol."""
    bare = endpoint.rstrip("/")
    return f"{bare}/v1" if name == "ollama" and bare and not bare.endswith("/v1") else bare


def _models_file() -> Path:
    return config_path().with_name("models.toml")


def _redacted(settings: Settings, text: str) -> str:
    return redact(text, settings.privacy.redact_emails).text
