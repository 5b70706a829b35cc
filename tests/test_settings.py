"""Settings: defaults, config.toml, environment, and faults that name their place."""

from pathlib import Path

import pytest

from memex.errors import ConfigError
from memex.settings import Settings, config_path, explain_settings, load_settings
from tests.conftest import settings_with

RFC_SAMPLE = """
# ~/.config/memex/config.toml
[compact]
# 多层可选开关
l1_observations = false # L1: Observations（细粒度，类 claude-mem）
l2_talk_summary = false # L2: Talk Summary（每轮对话）
l3_session_summary = true # L3: Session Summary（自动开启 l2）
{compact}
# L1 优化选项
[compact.l1]
prune_empty = true # 跳过空输出的工具调用
merge_consecutive = true # 合并连续同类操作
merge_threshold = 3 # 连续 N 个同类操作合并为 1 个
# Provider 配置
{l1}
[compact.ollama]
endpoint = "http://localhost:11434"
model = "qwen3:8b"
[compact.openai]
endpoint = "https://api.openai.com/v1"
api_key = "${{OPENAI_API_KEY}}"
model = "gpt-4o-mini"
[compact.openrouter]
api_key = "${{OPENROUTER_API_KEY}}"
model = "xiaomi/mimo-v2-flash:free" # 免费模型
[compact.anthropic]
api_key = "${{ANTHROPIC_API_KEY}}"
model = "claude-3-haiku-20240307"
"""
PROVIDER = 'provider = "ollama" # ollama | openai | openrouter | anthropic'


@pytest.fixture
def load(tmp_path):
    """Load settings from the text of a file and from variables."""

    def loaded(text="", **environ):
        return load_settings(environment(tmp_path, text, environ))

    return loaded


@pytest.fixture
def explain(tmp_path):
    def explained(text="", **environ):
        return {setting.key: setting for setting in explain_settings(environment(tmp_path, text, environ))}

    return explained


@pytest.fixture
def fault(load):
    """The message of the ConfigError that a file and variables cause."""

    def message(text="", **environ):
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        assert caught.value.hint
        return str(caught.value)

    return message


def environment(tmp_path, text, environ):
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    return {"MEMEX_CONFIG": str(path), **environ}


def test_defaults_need_no_file(tmp_path):
    settings = load_settings({"XDG_CONFIG_HOME": str(tmp_path)})
    assert settings == Settings()
    assert settings.compact.provider == "extractive"
    assert settings.compact.l1.merge_threshold == 3
    assert (settings.compact.idle_minutes, settings.search.rrf_k) == (5, 60)
    assert settings.sources.claude_config_dir == Path.home() / ".claude"
    assert settings.home.is_absolute()


def test_file_sets_values(load):
    settings = load("[compact]\nidle_minutes = 7\n[compact.l1]\nmerge_threshold = 4\n[sources]\nexclude = ['*/x/*']\n")
    assert (settings.compact.idle_minutes, settings.compact.l1.merge_threshold) == (7, 4)
    assert settings.sources.exclude == ("*/x/*",)
    assert settings.compact.l1.prune_empty is True


def test_file_may_begin_with_a_byte_order_mark(load):
    assert load("\ufeff[search]\nlimit = 3\n").search.limit == 3


def test_environment_beats_the_file(load):
    settings = load("[compact.l1]\nmerge_threshold = 4\n[search]\nlimit = 3\n", MEMEX_COMPACT_L1_MERGE_THRESHOLD="9")
    assert (settings.compact.l1.merge_threshold, settings.search.limit) == (9, 3)


@pytest.mark.parametrize(
    ("variable", "raw", "read", "expected"),
    [
        ("MEMEX_HOME", "/data/memex", lambda s: s.home, Path("/data/memex")),
        ("MEMEX_COMPACT_PROVIDER", "ollama", lambda s: s.compact.provider, "ollama"),
        ("MEMEX_COMPACT_L1_OBSERVATIONS", "false", lambda s: s.compact.l1_observations, False),
        ("MEMEX_COMPACT_L1_PRUNE_EMPTY", "0", lambda s: s.compact.l1.prune_empty, False),
        ("MEMEX_COMPACT_IDLE_MINUTES", "0.5", lambda s: s.compact.idle_minutes, 0.5),
        ("MEMEX_SOURCES_EXCLUDE", '["*/a/*", "*/b/*"]', lambda s: s.sources.exclude, ("*/a/*", "*/b/*")),
        ("MEMEX_EMBED_PROVIDER", "none", lambda s: s.embed.provider, "none"),
    ],
)
def test_variable_sets_its_key(load, variable, raw, read, expected):
    assert read(load(**{variable: raw})) == expected


def test_empty_variable_sets_nothing(load):
    assert load("[search]\nlimit = 3\n", MEMEX_SEARCH_LIMIT="").search.limit == 3


@pytest.mark.parametrize(("written", "folder"), [("here", Path.cwd), ("~/here", Path.home)])
def test_home_becomes_absolute(load, written, folder):
    assert load(f"home = '{written}'").home == folder() / "here"


def test_file_refers_to_variables(load):
    text = '[compact.openai]\napi_key = "${OPENAI_API_KEY}"\nendpoint = "https://${HOST}/v1"\n'
    openai = load(text, OPENAI_API_KEY="sk-1", HOST="llm.local").compact.openai
    assert (openai.api_key.get_secret_value(), openai.endpoint) == ("sk-1", "https://llm.local/v1")


def test_reference_to_an_unset_variable_is_empty(load):
    assert load('[compact.openai]\napi_key = "${OPENAI_API_KEY}"').compact.openai.api_key.get_secret_value() == ""


def test_references_inside_lists_are_read(load):
    assert load('[sources]\nexclude = ["${LOGS}/*"]', LOGS="/logs").sources.exclude == ("/logs/*",)


def test_key_is_not_shown(load):
    assert "sk-1" not in repr(load(MEMEX_COMPACT_OPENAI_API_KEY="sk-1"))


def test_folder_of_claude_follows_its_own_variable(load):
    assert load(CLAUDE_CONFIG_DIR="/claude").sources.claude_config_dir == Path("/claude")
    both = {"CLAUDE_CONFIG_DIR": "/claude", "MEMEX_SOURCES_CLAUDE_CONFIG_DIR": "/mine"}
    assert load(**both).sources.claude_config_dir == Path("/mine")


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ("[compact]\nidle_minuts = 3", "compact.idle_minuts", "compact.idle_minutes"),
        ("[compact.l1]\nmerge_treshold = 3", "compact.l1.merge_treshold", "compact.l1.merge_threshold"),
        ("hom = '/x'", "hom", "home"),
    ],
)
def test_unknown_key_gets_a_suggestion(fault, text, key, near):
    assert f"unknown key `{key}`: did you mean `{near}`?" in fault(text)


def test_unknown_key_far_from_all_gets_none(fault):
    message = fault("[search]\nzzzzzz = 1")
    assert "unknown key `search.zzzzzz`" in message
    assert "did you mean" not in message


@pytest.mark.parametrize(
    ("text", "key", "place"),
    [
        ('[compact.l1]\nprovider = "ollama"', "compact.l1.provider", "[compact]"),
        ("[compact]\nmerge_threshold = 3", "compact.merge_threshold", "[compact.l1]"),
        ("rrf_k = 3", "rrf_k", "[search]"),
    ],
)
def test_misplaced_key_is_told_its_table(fault, text, key, place):
    name = key.rsplit(".", 1)[-1]
    assert f"`{key}` is in the wrong table: write it as `{name}` under {place}" in fault(text)


@pytest.mark.parametrize("text", ["[compact", "a = ", "key = 1\nkey = 2"])
def test_bad_toml_is_an_error(fault, tmp_path, text):
    message = fault(text)
    assert str(tmp_path / "config.toml") in message
    assert "not valid TOML" in message


def test_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load_settings({"MEMEX_CONFIG": str(tmp_path / "config.toml")})


def test_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings({"MEMEX_CONFIG": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[compact]\nidle_minutes = -1", "compact.idle_minutes = -1"),
        ("[compact]\nprovider = 'claude'", "compact.provider = 'claude'"),
        ("[compact.l1]\nmerge_threshold = 1", "compact.l1.merge_threshold = 1"),
        ("[search]\nlimit = 0", "search.limit = 0"),
        ("[search]\nlimit = 'many'", "search.limit = 'many'"),
        ("[schedule]\nserver_timeout_seconds = 0", "schedule.server_timeout_seconds = 0"),
    ],
)
def test_bad_value_is_named_with_its_key(fault, text, key):
    assert key in fault(text)


def test_bad_variable_is_named_with_its_key(fault):
    assert "search.limit = 'many'" in fault(MEMEX_SEARCH_LIMIT="many")


def test_all_bad_values_are_told_at_once(fault):
    message = fault("[compact]\nidle_minutes = -1\n[search]\nlimit = 0", MEMEX_SEARCH_RRF_K="0")
    assert all(key in message for key in ("compact.idle_minutes", "search.limit", "search.rrf_k"))


def test_all_unknown_keys_are_told_at_once(fault):
    message = fault('one = 1\n[compact]\ntwo = 2\n[compact.l1]\nprovider = "ollama"')
    assert all(key in message for key in ("`one`", "`compact.two`", "`compact.l1.provider`"))


def test_every_key_has_a_variable_of_its_own_and_a_meaning(explain):
    listed = explain()
    assert len({setting.variable for setting in listed.values()}) == len(listed) > 20
    assert listed["compact.l1.merge_threshold"].variable == "MEMEX_COMPACT_L1_MERGE_THRESHOLD"
    assert [key for key, setting in listed.items() if not setting.help] == []


SOME_VALUE = {
    "compact.provider": "ollama",
    "embed.provider": "none",
    "inject.mode": "off",
    "inject.project_scope": "all",
    **dict.fromkeys(["inject.exclude_projects", "inject.exclude_sessions"], "[]"),
    "search.fusion": "rrf",
    "compact.fallback": "[]",
    "privacy.exclude_projects": "[]",
    "serve.hosts": "[]",
    "compact.budget.call_tokens": "1000",
    **dict.fromkeys(["sources.exclude", "sources.claude_extra", "sources.codex_extra", "sources.gemini_extra"], "[]"),
    "compact.l1.merge_threshold": "2",
    "embed.max_chars": "64",
}


def test_every_variable_reaches_its_key(explain):
    for key, setting in explain().items():
        assert explain(**{setting.variable: SOME_VALUE.get(key, "1")})[key].origin == "environment"


def test_origin_of_every_value_is_told(explain):
    listed = explain(
        "[search]\nlimit = 3\nrrf_k = 5\n[compact]\nidle_minutes = 1",
        MEMEX_SEARCH_LIMIT="4",
        CLAUDE_CONFIG_DIR="/claude",
    )
    told = {key: (setting.value, setting.origin) for key, setting in listed.items() if setting.origin != "default"}
    assert told == {
        "search.limit": (4, "environment"),
        "search.rrf_k": (5, "file"),
        "compact.idle_minutes": (1, "file"),
        "sources.claude_config_dir": (Path("/claude"), "environment"),
    }
    assert (listed["compact.provider"].value, listed["compact.provider"].origin) == ("extractive", "default")


def test_choices_are_part_of_the_meaning(explain):
    assert "'ollama'" in explain()["compact.provider"].help


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MEMEX_CONFIG": "/etc/memex.toml", "XDG_CONFIG_HOME": "/xdg"}, "/etc/memex.toml"),
        ({"XDG_CONFIG_HOME": "/xdg"}, "/xdg/memex/config.toml"),
    ],
)
def test_place_of_the_file(environ, expected):
    assert config_path(environ) == Path(expected)


def test_file_is_looked_for_in_the_home():
    assert config_path({}) == Path.home() / ".config" / "memex" / "config.toml"


def test_settings_cannot_be_changed(load):
    with pytest.raises(ValueError, match="frozen"):
        load().search.limit = 3


def test_sample_of_the_rfc_loads_with_the_provider_in_its_table(load):
    settings = load(RFC_SAMPLE.format(compact=PROVIDER, l1=""), OPENAI_API_KEY="sk-1")
    compact = settings.compact
    assert (compact.provider, compact.levels) == ("ollama", ("talks", "sessions"))
    assert (compact.ollama.model, compact.openai.api_key.get_secret_value()) == ("qwen3:8b", "sk-1")
    assert compact.openrouter.model == "xiaomi/mimo-v2-flash:free"


def test_sample_of_the_rfc_as_printed_is_told_where_the_provider_belongs(fault):
    assert "write it as `provider` under [compact]" in fault(RFC_SAMPLE.format(compact="", l1=PROVIDER))


L1, L2, L3 = "observations", "talks", "sessions"


@pytest.mark.parametrize(
    ("provider", "l1", "l2", "l3", "levels"),
    [
        ("extractive", None, None, True, (L1, L2, L3)),
        ("extractive", None, None, False, (L1, L2)),
        ("extractive", False, None, True, (L2, L3)),
        ("extractive", False, False, True, (L2, L3)),
        ("extractive", False, False, False, ()),
        ("extractive", True, False, False, (L1,)),
        ("ollama", None, None, True, (L2, L3)),
        ("openai", None, None, True, (L2, L3)),
        ("openai", None, None, False, ()),
        ("openai", None, True, False, (L2,)),
        ("openai", True, None, True, (L1, L2, L3)),
        ("openai", True, False, False, (L1,)),
        ("anthropic", False, False, True, (L2, L3)),
    ],
)
def test_levels_that_are_on(provider, l1, l2, l3, levels):
    compact = settings_with(provider=provider, l1_observations=l1, l2_talk_summary=l2, l3_session_summary=l3).compact
    assert compact.levels == levels


def test_part_of_a_provider_keeps_the_rest_of_its_defaults():
    settings = load_settings({"MEMEX_CONFIG": "/dev/null", "MEMEX_COMPACT_OPENAI_API_KEY": "sk-1"})
    assert settings.compact.openai.endpoint == "https://api.openai.com/v1"
    assert settings.compact.openai.model == "gpt-4o-mini"
    assert settings.compact.openai.api_key.get_secret_value() == "sk-1"


def test_unknown_keys_and_bad_values_are_told_together(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[compact]\nnonsense = 1\nidle_minutes = "soon"\n[compact.openai]\napi_key = ["sk-secret"]\n')
    with pytest.raises(ConfigError) as error:
        load_settings({"MEMEX_CONFIG": str(path)})
    assert "compact.nonsense" in str(error.value)
    assert "compact.idle_minutes" in str(error.value)
    assert "sk-secret" not in str(error.value)


def test_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load_settings({"MEMEX_CONFIG": str(tmp_path / "none.toml")})


def test_roots_are_the_folders_of_each_cli_and_what_its_patterns_match(tmp_path, monkeypatch):
    for name in ("old-a", "old-b"):
        (tmp_path / name / ".claude").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "google"))
    monkeypatch.setenv("MEMEX_SOURCES_CLAUDE_EXTRA", f'["{tmp_path}/old-*/.claude", "{tmp_path}/nowhere"]')
    roots = load_settings().sources.roots
    assert roots["claude"] == (Path.home() / ".claude", tmp_path / "old-a" / ".claude", tmp_path / "old-b" / ".claude")
    assert roots["codex"] == (tmp_path / "codex",)
    assert roots["gemini"] == (tmp_path / "google" / ".gemini",)
    monkeypatch.setenv("MEMEX_SOURCES_CODEX", "false")
    assert "codex" not in load_settings().sources.roots
