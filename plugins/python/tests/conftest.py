import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Dict, List, Optional

import numpy as np
import pytest
import safetensors.numpy

PROJECT = pathlib.Path(__file__).resolve().parents[3]
DIGITS = PROJECT / "manifests" / "examples" / "digits"
EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


@dataclasses.dataclass
class Agent:
    """Stands for the agent: writes task files, starts programs, reads what they leave."""

    folder: pathlib.Path

    def write_model(self, **tensors: np.ndarray) -> None:
        safetensors.numpy.save_file(tensors, str(self.folder / "model.safetensors"))

    def write_task(self, name: str = "task.json", **changes: Any) -> pathlib.Path:
        fields: Dict[str, Any] = {
            "task": "train",
            "job": "job",
            "round": 1,
            "attempt": 0,
            "client": "client-01",
            "seed": 4_000_000_000,
            "config": {},
            "mu": 0.0,
            "model": str(self.folder / "model.safetensors"),
            "output": str(self.folder / "output.safetensors"),
            "result": str(self.folder / "result.json"),
            "dataset": "file:data.csv",
            "newer": ["fields", "are", "ignored"],
        }
        fields.update(changes)
        path = self.folder / name
        path.write_text(json.dumps(fields))
        return path

    def write_program(self, body: str) -> List[str]:
        path = self.folder / "program.py"
        path.write_text("import fl_trainer\nimport numpy as np\n" + body)
        return [sys.executable, str(path)]

    def environment(self, task: Optional[pathlib.Path]) -> Dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name != "FL_TASK"}
        if task is not None:
            env["FL_TASK"] = str(task)
        return env

    def run_once(self, command: List[str], **changes: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environment(self.write_task(**changes)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def start_worker(self, command: List[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            env=self.environment(None),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def output(self) -> Dict[str, np.ndarray]:
        return dict(safetensors.numpy.load_file(str(self.folder / "output.safetensors")))

    def result(self) -> Any:
        return json.loads((self.folder / "result.json").read_text())

    def left_behind(self) -> List[str]:
        return sorted(
            path.name for path in self.folder.iterdir() if path.name.startswith(("output", "result"))
        )


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> Agent:
    made = Agent(tmp_path)
    made.write_model(
        w=np.arange(6, dtype=np.float32).reshape(2, 3),
        half=np.ones(2, np.float16),
        count=np.array(7, np.int64),
    )
    return made
