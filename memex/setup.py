"""The composition root: the only place that knows which parts are real."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memex.errors import ConfigError, HomeError, translated_os_errors
from memex.settings import Settings, load_settings

if TYPE_CHECKING:
    from memex.backup.home import Home
    from memex.backup.restore import Restore
    from memex.backup.run import Backup
    from memex.compact.run import Compact
    from memex.embed.base import Embedder
    from memex.forget.run import Forget
    from memex.health.examine import Examine
    from memex.inject.inject import Inject
    from memex.live.watch import Summarise, Watch
    from memex.llm.base import Writer
    from memex.llm.book import Book
    from memex.maintain.run import Maintain
    from memex.maintain.similar import Similarity
    from memex.search.search import Search
    from memex.search.text import TextIndex
    from memex.sources.acts import Acts
    from memex.sources.archive import Archive
    from memex.sources.ingest import Ingest
    from memex.store.lake import Lake


log = logging.getLogger("memex")

MOST_AT_START = 20
"""Flow runs that a watcher asks for when it starts; each is a process."""


@dataclass
class Memex:
    """Every verb, wired to one home. Parts are made at their first use: a raw search opens no lake.

    All that has the same `run_id` shares the caps of one run; none is a run of its own.

    >>> open_memex().search.run(Query("auth"), "raw", 5)      # doctest: +SKIP
    """

    settings: Settings
    run_id: str = ""

    @property
    def home(self) -> Path:
        """Where everything is kept."""
        return self.settings.home

    @cached_property
    def archive(self) -> "Archive":
        """The verbatim bytes."""
        from memex.sources.archive import Archive

        return Archive(self.home / "archive")

    @cached_property
    def acts(self) -> "Acts":
        """What the person did."""
        from memex.sources.acts import Acts

        return Acts(self.home / "archive")

    @cached_property
    def lake(self) -> "Lake":
        """The tables, created or migrated as needed."""
        from memex.store.lake import Lake

        lake = Lake(self.home / "lake")
        lake.prepare()
        return lake

    @cached_property
    def ingest(self) -> "Ingest":
        """Logs into archive and lake."""
        from memex.sources.ingest import Ingest
        from memex.sources.registry import ADAPTERS

        return Ingest(self.archive, self.lake, ADAPTERS, self.roots(), self.settings.sources.exclude)

    def roots(self) -> dict[str, tuple[Path, ...]]:
        """Name the folders of each CLI that are read, as far as they exist now where a pattern names them."""
        from memex.sources.registry import ADAPTERS

        return {cli: roots for cli, roots in self.settings.sources.roots.items() if cli in ADAPTERS}

    @cached_property
    def forget(self) -> "Forget":
        """Take something out of everything, for good."""
        from memex.forget.run import Forget

        return Forget(self.home, self.archive, self.acts, self.lake, self.ingest, self.raw_index, self.summary_index)

    @cached_property
    def examine(self) -> "Examine":
        """Whether the parts of this home agree."""
        from memex.health.examine import Examine

        return Examine(self.archive, self.lake, self.ingest, self.raw_index, self.summary_index)

    @cached_property
    def backup(self) -> "Backup":
        """What nothing else can bring back, to a file or folder."""
        from memex.backup.run import Backup

        return Backup(self.parts)

    @cached_property
    def restore(self) -> "Restore":
        """A backup into this home."""
        from memex.backup.restore import Restore

        def open_home(folder: Path) -> "Home":
            return Memex(self.settings.model_copy(update={"home": folder})).parts

        return Restore(self.parts, open_home)

    @property
    def parts(self) -> "Home":
        """What backups are made of, and restored into."""
        from memex.backup.home import Home

        return Home(self.home, self.archive, self.acts, self.lake, self.ingest, self.forget.finish)

    @cached_property
    def writer(self) -> "Writer":
        """Whoever writes the summaries.

        Raises:
            ConfigError: the configured provider cannot write.
        """
        from memex.llm.extractive import ExtractiveWriter

        if self.settings.compact.provider == "extractive":
            return ExtractiveWriter()
        from memex.llm.providers import open_writer

        return open_writer(self.settings, self.book)

    @cached_property
    def book(self) -> "Book":
        """What models cost and answered, over all processes."""
        from memex.llm.book import Book, Caps

        budget = self.settings.compact.budget
        caps = Caps(budget.run_tokens, budget.run_usd, budget.day_tokens, budget.day_usd)
        return Book(self.home / "journal" / "calls.db", caps, self.run_id)

    def usage(self, days: int) -> dict[str, list[dict[str, Any]]]:
        """What models took in the last days, what of today's caps is spent, and what summaries save."""
        from memex.store.views import calls_by_day, savings

        self.compact.settle()
        spent, budget = self.book.spent(), self.settings.compact.budget
        cap = "none" if budget.day_tokens is None else budget.day_tokens
        today: list[dict[str, Any]] = [
            {"what": "tokens", "spent": spent.tokens, "cap": cap},
            {"what": "US dollars", "spent": f"{spent.usd:.4f}", "cap": f"{budget.day_usd:.2f}"},
        ]
        return {"days": calls_by_day(self.lake, days), "today": today, "savings": savings(self.lake)}

    @property
    def compact(self) -> "Compact":
        """Raw text into summaries, at the levels that are on."""
        return self.compact_at(None)

    def compact_at(self, levels: Sequence[str] | None) -> "Compact":
        """Raw text into summaries at the given levels; None takes those that are on."""
        from memex.compact.run import Compact

        if self.settings.compact.l3_session_summary and self.settings.compact.l2_talk_summary is False:
            log.warning("L3 needs L2: talk summaries are switched on")
        wanted = tuple(levels) if levels else self.settings.compact.levels
        excluded = self.settings.privacy.exclude_projects
        return Compact(self.lake, self.writer, self.settings.compact, wanted, excluded=excluded)

    def delay(self, minutes: float | None) -> timedelta:
        """How long after its end a session is left alone: as given, else as configured."""
        return timedelta(minutes=self.settings.compact.delay_minutes if minutes is None else minutes)

    @cached_property
    def raw_index(self) -> "TextIndex":
        """Full text over messages and tool calls."""
        from memex.search.text import TextIndex

        return TextIndex(self.home / "index" / "raw")

    @cached_property
    def summary_index(self) -> "TextIndex":
        """Full text over L1-L3."""
        from memex.search.text import TextIndex

        return TextIndex(self.home / "index" / "summaries")

    @cached_property
    def embedder(self) -> "Embedder | None":
        """The embedding model, or None when vectors are switched off.

        Raises:
            ConfigError: the model is not installed on this platform.
        """
        from memex.embed.registry import EMBEDDERS, default_model, is_installed

        name = self.settings.embed.provider or default_model()
        if name == "none":
            return None
        if not is_installed(name):
            raise ConfigError(f"embed.provider = {name!r} has no wheel on this platform", 'use "local:usem3"')
        return EMBEDDERS[name](self.settings.embed.max_chars)

    @property
    def maintain(self) -> "Maintain":
        """The graph of memories, kept small and true."""
        from memex.maintain.decide import Rules
        from memex.maintain.extract import ExtractiveMemories
        from memex.maintain.run import Maintain

        options = self.settings.maintain
        wanted = self.settings.compact.provider == "extractive" if options.memories is None else options.memories
        return Maintain(
            self.lake,
            self.acts,
            self.home / "journal",
            Rules(options.consolidation_threshold),
            ExtractiveMemories() if wanted else None,
            options,
            self.embedder,
            self._passage_similarity,
        )

    def _passage_similarity(self) -> "Similarity":
        """Read the maps that are fitted on pairs of passages."""
        from memex.maintain.similar import Similarity
        from memex.search.calibration import load_calibrations

        maps = load_calibrations(self.calibrations, self.embedder.model)[1] if self.embedder else {}
        return Similarity({pair[1:]: found for pair, found in maps.items() if pair[0] == "passage"})

    @property
    def calibrations(self) -> Path:
        """The folder of the maps from cosine to similarity."""
        return self.home / "index" / "calibration"

    @property
    def embedded_levels(self) -> tuple[str, ...]:
        """The levels that get vectors."""
        from memex.search.vectors import SUMMARIES

        return (*SUMMARIES, "raw") if self.settings.embed.embed_raw else SUMMARIES

    def count_missing_vectors(self) -> int:
        """Count the rows that still need a vector; 0 when vectors are switched off."""
        from memex.search.vectors import missing_vectors

        if self.embedder is None:
            return 0
        return sum(map(len, missing_vectors(self.lake, self.embedder.model, self.embedded_levels).values()))

    def stale_indexes(self) -> list[str]:
        """Name what is behind the lake: raw text, summaries, vectors, similarities."""
        from memex.search.calibration import calibrations_due
        from memex.search.refresh import stale_text

        stale = stale_text(self.lake, self.raw_index, self.summary_index)
        if self.count_missing_vectors():
            stale.append("vectors")
        elif self.embedder and calibrations_due(self.lake, self.embedder.model, self.calibrations):
            stale.append("similarities")
        return stale

    @cached_property
    def search(self) -> "Search":
        """Find things."""
        from memex.search.search import Fusion, Search

        given = self.settings.search
        return Search(
            lambda: self.lake,
            self.raw_index,
            self.summary_index,
            lambda: self.embedder,
            Fusion(given.fusion, given.vector_weight, given.rrf_k),
            self.settings.embed.embed_raw,
            self.calibrations,
        )

    @cached_property
    def inject(self) -> "Inject":
        """Answer the hooks of AI CLIs. It keeps what it needs in memory: one for a whole process."""
        from memex.inject.candidates import Candidates
        from memex.inject.inject import Inject
        from memex.inject.scope import Scope

        options, privacy = self.settings.inject, self.settings.privacy
        hidden = (*options.exclude_projects, *privacy.exclude_projects)
        return Inject(
            Candidates(lambda: self.lake, self.summary_index, lambda: self.embedder, self.calibrations),
            self._project_of,
            self.home / "journal",
            options,
            Scope(self.home, hidden, options.exclude_sessions, options.subagents),
            privacy.redact_emails,
        )

    def _project_of(self, cwd: str) -> tuple[str, str]:
        """Give id and name of a folder's project, by what is known now."""
        self.ingest.projects.read_acts()
        return self.ingest.projects.of(cwd)

    @property
    def here(self) -> "Summarise":
        """Summaries that are written in this process while logs are read."""
        from memex.live.watch import Here

        return Here(self.compact, self.lake, self.summary_index)

    def watch(self, tell: Callable[[str], None], summarise: "Summarise | None" = None) -> "Watch":
        """Live reading; `tell` gets one line about each thing that happened.

        Summaries are written in this process unless `summarise` has them written elsewhere; then a large backlog
        is left to the hourly flow.
        """
        from memex.live.watch import Watch

        most = None if summarise is None else MOST_AT_START
        indexes = self.raw_index, self.summary_index
        return Watch(self.ingest, self.lake, *indexes, self.compact, summarise or self.here, tell, self.roots, most)


def sample_folder() -> Path:
    """Find the sample logs: inside the installed package, or in a clone's `data`."""
    installed = Path(__file__).parent / "sample" / "claude"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "data" / "claude"


def open_memex(settings: Settings | None = None, run_id: str = "") -> Memex:
    """Wire everything to the home of the settings, by default those of environment and file.

    Raises:
        ConfigError: the configuration is wrong.
        HomeError: the home cannot be made or read.
    """
    settings = settings or load_settings()
    with translated_os_errors(settings.home):
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        next(settings.home.iterdir(), None)
    if not settings.home.is_dir():
        raise HomeError(f"{settings.home} is not a folder", "set MEMEX_HOME to a folder")
    return Memex(settings, run_id)
