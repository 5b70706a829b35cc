"""What a flow run leaves behind for a reader in the Prefect UI."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from prefect.artifacts import create_markdown_artifact
from pydantic import BaseModel


def publish(name: str, report: Any) -> None:
    """Write a report as a Markdown artifact of the run."""
    values = report.model_dump() if isinstance(report, BaseModel) else asdict(report) if is_dataclass(report) else {}  # type: ignore[arg-type]
    lines = [f"| {key} | {value} |" for key, value in _rows(values)]
    create_markdown_artifact(key=f"memex-{name}", markdown="\n".join([f"## {name}", "| | |", "|---|---|", *lines]))


def _rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{key} ")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", "<br>".join(str(item).replace("|", "\\|") for item in value) or "none"
        else:
            yield f"{prefix}{key}".replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
