"""The examples on the real digits: ten clients, averaged here as FedAvg does."""

import sys

import numpy as np
import pytest

from conftest import DIGITS, EXAMPLES


def federate(agent, example, layers, config, rounds):
    """Test accuracy after `rounds` of all ten clients, through one worker."""
    random = np.random.default_rng(0)
    model = {}
    for n, (inputs, outputs) in enumerate(zip(layers, layers[1:])):
        bound = inputs**-0.5
        model[f"layers.{n}.weight"] = random.uniform(-bound, bound, (outputs, inputs))
        model[f"layers.{n}.bias"] = random.uniform(-bound, bound, outputs)
    agent.write_model(**{name: array.astype(np.float32) for name, array in model.items()})

    with agent.start_worker([sys.executable, str(EXAMPLES / example)]) as worker:

        def ask(**changes):
            task = agent.write_task(config=config, **changes)
            worker.stdin.write(f"{task}\n")
            answer = worker.stdout.readline()
            if answer != f"done {task}\n":
                pytest.fail(f"{answer}\n{worker.communicate()[1]}")
            return agent.result()

        for number in range(1, rounds + 1):
            total, samples = {}, 0
            for client in range(1, 11):
                result = ask(
                    round=number, seed=number * 100 + client,
                    dataset=f"file://{DIGITS}/client-{client:02}.csv",
                )
                for name, array in agent.output().items():
                    total[name] = total.get(name, 0) + result["num_samples"] * array.astype(float)
                samples += result["num_samples"]
            assert samples == 1437
            agent.write_model(**{n: (a / samples).astype(np.float32) for n, a in total.items()})
        result = ask(task="evaluate", dataset=f"file://{DIGITS}/test.csv")
        worker.stdin.close()
        assert result["num_samples"] == 360
        assert result["metrics"]["loss"] < 1
        return result["metrics"]["accuracy"]


def test_sklearn(agent):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    config = {"learningRate": 0.01, "localEpochs": 2, "featureScale": 0.0625}
    assert federate(agent, "sklearn_digits.py", [64, 10], config, rounds=15) > 0.9


def test_torch(agent):
    pytest.importorskip("torch", reason="PyTorch is not installed; test/run.sh --torch installs it")
    config = {"learningRate": 0.1, "localEpochs": 3, "batchSize": 10, "featureScale": 0.0625}
    assert federate(agent, "torch_digits.py", [64, 32, 10], config, rounds=15) > 0.93
