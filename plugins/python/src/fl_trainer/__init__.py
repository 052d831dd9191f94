"""Turns a train function into a program that an ``fl`` agent can run.

    import fl_trainer

    def train(model, task):
        ...                                   # model: dict of numpy arrays
        return model, num_samples, {"loss": loss}

    if __name__ == "__main__":
        fl_trainer.run(train=train)

The same program works started for each task (``command``) and kept alive (``worker: true``).
"""

from fl_trainer._contract import ContractError, Metrics, Model, Task, TrainResult
from fl_trainer._data import read_csv
from fl_trainer._run import Evaluate, Train, run

__all__ = [
    "ContractError",
    "Evaluate",
    "Metrics",
    "Model",
    "Task",
    "Train",
    "TrainResult",
    "read_csv",
    "run",
]
