"""The adapters there are. A new CLI is one module and one line here."""

from memex.sources.base import Adapter
from memex.sources.claude import ClaudeAdapter
from memex.sources.codex import CodexAdapter
from memex.sources.gemini import GeminiAdapter

ADAPTERS: dict[str, Adapter] = {adapter.cli: adapter for adapter in (ClaudeAdapter(), CodexAdapter(), GeminiAdapter())}
