"""The package is typed: mypy --strict finds nothing, and a user's program is checked against it."""

import pathlib
import subprocess
import sys

import pytest

SDK = pathlib.Path(__file__).resolve().parents[1]


def mypy(*arguments, cwd):
    pytest.importorskip("mypy", reason="mypy is not installed")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "--strict", *arguments],
        cwd=cwd, capture_output=True, text=True,
    )


def test_strict():
    checked = mypy("--config-file", "pyproject.toml", "src", cwd=SDK)
    assert checked.returncode == 0, checked.stdout


def test_users_see_the_types(tmp_path):
    (tmp_path / "user.py").write_text(
        "import fl_trainer\n"
        "def train(model: fl_trainer.Model, task: fl_trainer.Task) -> fl_trainer.TrainResult:\n"
        "    return fl_trainer.TrainResult(model, task.round)\n"
        "fl_trainer.run(train=train)\n"
    )
    (tmp_path / "wrong.py").write_text(
        "import fl_trainer\n"
        "def train(model: int, task: str) -> None: ...\n"
        "fl_trainer.run(train=train)\n"
    )
    assert mypy("user.py", cwd=tmp_path).returncode == 0
    assert "arg-type" in mypy("wrong.py", cwd=tmp_path).stdout
