"""Running a train function as a program: once (FL_TASK), or task by task (standard input)."""

import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, BinaryIO, Callable, Mapping, NoReturn, Optional, Tuple, Union

import numpy as np

from fl_trainer import _contract
from fl_trainer._contract import ContractError, Metrics, Model, Task, TrainResult

#: Gets the weights and the task; returns the trained weights, the number of samples, and metrics.
Train = Callable[
    [Model, Task],
    Union[
        TrainResult,
        Tuple[Mapping[str, np.ndarray[Any, Any]], int],
        Tuple[Mapping[str, np.ndarray[Any, Any]], int, Metrics],
    ],
]
#: Gets the weights and the task; returns the number of samples, and metrics.
Evaluate = Callable[[Model, Task], Tuple[int, Metrics]]


def _do(task: Task, train: Train, evaluate: Optional[Evaluate]) -> None:
    given = _contract.read_model(task.model_path)
    if task.kind == "evaluate":
        if evaluate is None:
            raise ContractError("this trainer has no evaluate function")
        num_samples, metrics = _contract.split_evaluate_result(evaluate(given, task))
        result = _contract.check_result(num_samples, 0, metrics)
    else:
        # Before the call: the function may change what it is given.
        like = _contract.signature_of(given)
        model, num_samples, metrics, num_steps = _contract.split_train_result(train(given, task))
        checked = _contract.check_model(model, like)
        result = _contract.check_result(num_samples, num_steps, metrics)
        assert task.output_path is not None
        _contract.write_model(task.output_path, checked)
    _contract.write_result(task.result_path, result)


def _run_once(path: str, train: Train, evaluate: Optional[Evaluate]) -> int:
    try:
        _do(_contract.read_task(path), train, evaluate)
    except ContractError as error:
        print(f"fl_trainer: {error}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _take_stdout() -> BinaryIO:
    """The agent's end of the protocol. What the program prints goes to standard error from here
    on, also what libraries print past Python, so that it cannot be taken for an answer."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _serve(train: Train, evaluate: Optional[Evaluate]) -> int:
    answers = _take_stdout()
    # readline, not iteration, which would read ahead.
    for line in iter(sys.stdin.readline, ""):
        path = line.rstrip("\n")
        if not path:
            continue
        try:
            _do(_contract.read_task(path), train, evaluate)
            answer = f"done {path}"
        except Exception as error:
            traceback.print_exc()
            sys.stderr.flush()
            text = str(error) or type(error).__name__
            answer = "error " + " ".join(text.split())
        answers.write(answer.encode("utf-8", "replace") + b"\n")
    return 0


def _on_terminate(number: int, frame: Optional[FrameType]) -> NoReturn:
    # As an exception, so that `finally` and `with` of the user's code run.
    raise SystemExit(128 + number)


def run(train: Train, evaluate: Optional[Evaluate] = None) -> NoReturn:
    """Does what the agent asks for, then ends the program; call it last.

    With the environment variable FL_TASK it does that one task; without, it is a worker and takes
    tasks from standard input until that ends. Messages for you go to standard error, which stays
    in a log at the agent; the agent and the server learn only whether it worked.
    """
    signal.signal(signal.SIGTERM, _on_terminate)
    path = os.environ.get("FL_TASK")
    if path:
        code = _run_once(path, train, evaluate)
    elif sys.stdin is None or sys.stdin.isatty():
        print(
            "fl_trainer: this program is started by an fl agent, with a task in FL_TASK "
            "or with task files on standard input",
            file=sys.stderr,
        )
        code = 2
    else:
        code = _serve(train, evaluate)
    sys.exit(code)
