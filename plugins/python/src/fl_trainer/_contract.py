"""The contract between an agent and its trainer: task files, weights, results."""

import dataclasses
import json
import math
import numbers
import os
import pathlib
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np
import safetensors
import safetensors.numpy

#: Weights by name. A new dict for each task; the arrays may be changed in place.
Model = Dict[str, np.ndarray[Any, Any]]
Metrics = Mapping[str, float]
#: Shape and dtype of each tensor.
Signature = Dict[str, Tuple[Tuple[int, ...], "np.dtype[Any]"]]


class ContractError(Exception):
    """The task, or what a train or evaluate function returned, is not as it must be.

    Its message is written for the author of that function.
    """


class TrainResult(NamedTuple):
    """What a train function returns; a plain tuple does as well."""

    model: Mapping[str, np.ndarray[Any, Any]]
    num_samples: int
    metrics: Metrics = {}
    #: Optimiser steps, which FedNova needs.
    num_steps: int = 0


@dataclasses.dataclass(frozen=True)
class Task:
    """One task of one client in one round."""

    kind: str  #: "train" or "evaluate"
    job: str
    round: int  #: from 1
    attempt: int  #: from 0
    client: str
    seed: int  #: below 2**32: seed everything from it, and the task can be repeated
    config: Mapping[str, Any]  #: the job's trainer.config
    mu: float  #: weight of FedProx's term mu/2 |w - w_global|^2; 0 for none
    dataset: str  #: the client's dataset URI
    model_path: pathlib.Path
    output_path: Optional[pathlib.Path]
    result_path: pathlib.Path

    @property
    def dataset_path(self) -> pathlib.Path:
        """The file or folder that a ``file:`` URI names."""
        from fl_trainer._data import path_of

        return path_of(self.dataset)


def read_task(path: Union[str, "os.PathLike[str]"]) -> Task:
    """Reads the file that FL_TASK, or a line on standard input, names."""
    try:
        fields = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"cannot read the task file {path}: {error}") from error

    def field(name: str, kind: Any, default: Any = None) -> Any:
        value = fields.get(name, default) if isinstance(fields, dict) else None
        if value is None or not isinstance(value, kind) or isinstance(value, bool):
            raise ContractError(f"task file {path}: field {name!r} is {value!r}")
        return value

    kind = field("task", str)
    if kind not in ("train", "evaluate"):
        raise ContractError(f"task file {path}: task is {kind!r}, not 'train' or 'evaluate'")
    output = field("output", str, "")
    if kind == "train" and not output:
        raise ContractError(f"task file {path}: field 'output' is missing")
    return Task(
        kind=kind,
        job=field("job", str),
        round=field("round", int),
        attempt=field("attempt", int, 0),
        client=field("client", str),
        seed=field("seed", int),
        config=field("config", dict, {}),
        mu=float(field("mu", (int, float), 0)),
        dataset=field("dataset", str, ""),
        model_path=pathlib.Path(field("model", str)),
        output_path=pathlib.Path(output) if output else None,
        result_path=pathlib.Path(field("result", str)),
    )


def read_model(path: pathlib.Path) -> Model:
    """The global weights."""
    try:
        return dict(safetensors.numpy.load_file(str(path)))
    except (OSError, safetensors.SafetensorError) as error:
        raise ContractError(f"cannot read the model {path}: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ContractError(
            f"the model {path} has a dtype that numpy does not have ({error}); "
            "convert it to F16, F32 or F64"
        ) from error


def signature_of(model: Model) -> Signature:
    return {name: (array.shape, array.dtype) for name, array in model.items()}


def check_model(model: Any, like: Signature) -> Model:
    """The model that train returned, if its names, shapes and dtypes are those of ``like``, and
    every number is finite."""
    if not isinstance(model, Mapping):
        raise ContractError(
            f"train must return the model as a dict of numpy arrays, not {type(model).__name__}"
        )
    missing = sorted(name for name in like if name not in model)
    extra = sorted(name for name in model if name not in like)
    if missing or extra:
        raise ContractError(
            "train must return a model with the names that it was given; "
            + " and ".join(
                f"{names} {what}" for names, what in ((missing, "missing"), (extra, "new")) if names
            )
        )
    checked: Model = {}
    for name, (shape, dtype) in like.items():
        array = np.asarray(model[name])
        if array.shape != shape:
            raise ContractError(
                f"tensor {name!r} has shape {list(array.shape)}, "
                f"the model that was given has {list(shape)}"
            )
        if array.dtype != dtype:
            raise ContractError(
                f"tensor {name!r} is {array.dtype}, the model that was given has {dtype}; "
                f"convert it with .astype({str(dtype)!r})"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ContractError(
                f"tensor {name!r} has values that are NaN or infinite; "
                "training diverged: try a lower learning rate"
            )
        # safetensors writes memory as it lies.
        checked[name] = np.ascontiguousarray(array).reshape(array.shape)
    return checked


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, np.integer)):
        raise ContractError(f"{name} must be a whole number, not {value!r}")
    if value < 0:
        raise ContractError(f"{name} is {value}, below 0")
    return int(value)


def check_result(num_samples: Any, num_steps: Any, metrics: Any) -> Dict[str, Any]:
    """The content of the result file."""
    if not isinstance(metrics, Mapping):
        raise ContractError(f"metrics must be a dict of numbers, not {type(metrics).__name__}")
    values: Dict[str, float] = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not name:
            raise ContractError(f"the name of a metric must be a string, not {name!r}")
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ContractError(f"metric {name!r} must be a number, not {value!r}") from None
        if not math.isfinite(number):
            raise ContractError(f"metric {name!r} is {number}; leave out what has no finite value")
        values[name] = number
    return {
        "num_samples": _count("num_samples", num_samples),
        "num_steps": _count("num_steps", num_steps),
        "metrics": values,
    }


def split_train_result(returned: Any) -> Tuple[Any, Any, Any, Any]:
    """Model, samples, metrics and steps of what a train function returned."""
    if isinstance(returned, TrainResult):
        return returned.model, returned.num_samples, returned.metrics, returned.num_steps
    if isinstance(returned, tuple) and len(returned) in (2, 3):
        metrics = returned[2] if len(returned) == 3 else {}
        return returned[0], returned[1], metrics, 0
    raise ContractError(
        "train must return (model, num_samples, metrics) or a TrainResult, "
        f"not {type(returned).__name__}"
    )


def split_evaluate_result(returned: Any) -> Tuple[Any, Any]:
    """Samples and metrics of what an evaluate function returned."""
    if isinstance(returned, tuple) and len(returned) == 2:
        return returned[0], returned[1]
    raise ContractError(
        f"evaluate must return (num_samples, metrics), not {type(returned).__name__}"
    )


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """The file is there whole or not at all, also where the disk is full or we are killed."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        try:
            temporary.unlink()
        except OSError:
            pass
        raise


def write_model(path: pathlib.Path, model: Model) -> None:
    write_atomically(path, safetensors.numpy.save(model))


def write_result(path: pathlib.Path, result: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(result, allow_nan=False).encode())
