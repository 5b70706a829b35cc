"""The wheel, installed apart from the clone, does the whole job."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from memex.store.schemas import TABLES

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_everything(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    data = [p.relative_to(ROOT) for kind in ("sql", "toml", "md") for p in (ROOT / "memex").rglob(f"*.{kind}")]
    assert len(data) >= 5
    code = [p.relative_to(ROOT) for top in ("memex", "flows", "tasks") for p in (ROOT / top).rglob("*.py")]
    assert {str(path) for path in (*data, *code)} <= names
    assert "memex/deployments/prefect.yaml" in names
    assert any(name.startswith("memex/sample/claude/projects/") for name in names)
    assert not any(name.startswith(("tests/", "docs/", ".ci")) for name in names)


@pytest.mark.long
@pytest.mark.flow
def test_the_wheel_runs_outside_a_clone(wheel, tmp_path):
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True)
    environ = {**os.environ, "PYTHONPATH": str(site)}
    where = [sys.executable, "-c", "import memex, flows, tasks; print(memex.__file__, flows.__file__, tasks.__file__)"]
    found = subprocess.run(where, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert all(path.startswith(str(site)) for path in found)
    run = [sys.executable, "-m", "memex.cli.main", "run", "--sample-if-empty"]
    done = subprocess.run(run, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "session summaries (L3)" in done.stdout
    assert done.stdout.count(" search ") == 2
    again = subprocess.run(run, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "nothing to do" in again.stderr
    assert again.stdout == ""
    assert len(TABLES) == len(list((tmp_path / "memex-sample" / "lake").glob("*.lance")))
