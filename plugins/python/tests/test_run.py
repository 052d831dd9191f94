"""The helper as a program, started as an agent starts it."""

import signal
import subprocess

import numpy as np
import pytest

GOOD = """
def train(model, task):
    assert task.seed == 4_000_000_000 and task.round == 1 and task.client == "client-01"
    print("chatter of the program", flush=True)
    model["w"] += task.config.get("step", 1)
    return model, 5, {"loss": np.float32(0.5)}

def evaluate(model, task):
    return 3, {"accuracy": 1}

fl_trainer.run(train=train, evaluate=evaluate)
"""


def test_one_task(agent):
    done = agent.run_once(agent.write_program(GOOD), config={"step": 2})
    assert done.returncode == 0, done.stderr
    assert agent.result() == {"num_samples": 5, "num_steps": 0, "metrics": {"loss": 0.5}}
    output = agent.output()
    np.testing.assert_array_equal(output["w"], np.arange(6).reshape(2, 3) + 2)
    assert output["w"].dtype == np.float32
    assert output["half"].dtype == np.float16
    assert output["count"].shape == () and output["count"].dtype == np.int64
    assert agent.left_behind() == ["output.safetensors", "result.json"]


def test_evaluation(agent):
    done = agent.run_once(agent.write_program(GOOD), task="evaluate", output="")
    assert done.returncode == 0, done.stderr
    assert agent.result() == {"num_samples": 3, "num_steps": 0, "metrics": {"accuracy": 1.0}}
    assert agent.left_behind() == ["result.json"]


def test_train_result_reports_steps(agent):
    body = """
fl_trainer.run(train=lambda model, task: fl_trainer.TrainResult(model, 5, num_steps=9))
"""
    assert agent.run_once(agent.write_program(body)).returncode == 0
    assert agent.result()["num_steps"] == 9


@pytest.mark.parametrize(
    "returned, message",
    [
        ("None", "train must return (model, num_samples, metrics)"),
        ("[model], 5, {}", "dict of numpy arrays, not list"),
        ("{}, 5, {}", "['count', 'half', 'w'] missing"),
        ("{**model, 'more': model['w']}, 5, {}", "['more'] new"),
        ("{**model, 'w': model['w'].T}, 5, {}", "tensor 'w' has shape [3, 2]"),
        ("{**model, 'w': model['w'].astype('f8')}, 5, {}", "tensor 'w' is float64"),
        ("{**model, 'w': model['w'].astype('f8')}, 5, {}", ".astype('float32')"),
        ("{**model, 'w': model['w'] * np.nan}, 5, {}", "tensor 'w' has values that are NaN"),
        ("{**model, 'half': model['half'] * 1e9}, 5, {}", "tensor 'half' has values"),
        ("model, -5, {}", "num_samples is -5"),
        ("model, 1.5, {}", "num_samples must be a whole number"),
        ("model, '5', {}", "num_samples must be a whole number"),
        ("model, 5, [1]", "metrics must be a dict"),
        ("model, 5, {'loss': float('nan')}", "metric 'loss' is nan"),
        ("model, 5, {'loss': 'low'}", "metric 'loss' must be a number"),
        ("model, 5, {1: 2}", "name of a metric"),
    ],
)
def test_what_train_returned_is_checked(agent, returned, message):
    program = agent.write_program(
        f"def train(model, task):\n    return {returned}\nfl_trainer.run(train=train)\n"
    )
    done = agent.run_once(program)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert agent.left_behind() == []


def test_changing_the_model_in_place_does_not_hide_a_wrong_shape(agent):
    body = """
def train(model, task):
    model["w"] = model["w"].T
    return model, 5, {}
fl_trainer.run(train=train)
"""
    assert "has shape [3, 2]" in agent.run_once(agent.write_program(body)).stderr


def test_arrays_that_are_not_contiguous_are_written_right(agent):
    body = """
def train(model, task):
    return {**model, "w": np.asfortranarray(model["w"])}, 5, {}
fl_trainer.run(train=train)
"""
    assert agent.run_once(agent.write_program(body)).returncode == 0
    np.testing.assert_array_equal(agent.output()["w"], np.arange(6).reshape(2, 3))


def test_an_exception_of_the_user_keeps_its_traceback(agent):
    body = """
def train(model, task):
    raise KeyError("somewhere")
fl_trainer.run(train=train)
"""
    done = agent.run_once(agent.write_program(body))
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "somewhere" in done.stderr


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"task": "sleep"}, "task is 'sleep'"),
        ({"seed": None}, "field 'seed'"),
        ({"round": "1"}, "field 'round'"),
        ({"output": ""}, "'output' is missing"),
        ({"model": "/no/such/file"}, "cannot read the model"),
    ],
)
def test_wrong_tasks(agent, changes, message):
    done = agent.run_once(agent.write_program(GOOD), **changes)
    assert done.returncode == 1
    assert message in done.stderr


def test_evaluation_without_a_function(agent):
    body = "fl_trainer.run(train=lambda model, task: (model, 1, {}))\n"
    done = agent.run_once(agent.write_program(body), task="evaluate")
    assert done.returncode == 1
    assert "no evaluate function" in done.stderr


def test_worker_answers_task_by_task(agent):
    command = agent.write_program("print('starting')\n" + GOOD)
    tasks = [agent.write_task(f"task-{n}.json", config={"step": n}) for n in range(3)]
    with agent.start_worker(command) as worker:
        assert worker.stdin and worker.stdout
        for n, task in enumerate(tasks):
            worker.stdin.write(f"{task}\n")
            # What was printed before run() was called is the one line that is not an answer.
            answer = worker.stdout.readline()
            if n == 0:
                assert answer == "starting\n"
                answer = worker.stdout.readline()
            assert answer == f"done {task}\n"
            np.testing.assert_array_equal(agent.output()["w"], np.arange(6).reshape(2, 3) + n)
        out, err = worker.communicate(timeout=60)  # closes its standard input
        assert worker.returncode == 0
        assert out == ""
        assert err.count("chatter of the program") == 3


def test_worker_goes_on_after_an_error(agent):
    body = """
import os
def train(model, task):
    if task.config.get("fail"):
        os.write(1, b"done is not yours to say\\n")
        raise ValueError("line one\\nline two")
    return model, 1, {}
fl_trainer.run(train=train)
"""
    bad = agent.write_task("bad.json", config={"fail": True})
    good = agent.write_task("good.json")
    with agent.start_worker(agent.write_program(body)) as worker:
        out, err = worker.communicate(f"{bad}\n/no/such/task.json\n\n{good}\n", timeout=60)
    answers = out.splitlines()
    assert answers[0] == "error line one line two"
    assert answers[1].startswith("error cannot read the task file /no/such/task.json")
    assert answers[2] == f"done {good}"
    assert len(answers) == 3
    assert "done is not yours to say" in err and "Traceback" in err


def test_sigterm_runs_the_users_cleanup(agent):
    body = """
import time
def train(model, task):
    try:
        print("training", flush=True)
        time.sleep(1000)
    finally:
        print("cleaned up", flush=True)
fl_trainer.run(train=train)
"""
    program = subprocess.Popen(
        agent.write_program(body),
        env=agent.environment(agent.write_task()),
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout
        assert program.stdout.readline() == "training\n"
        program.send_signal(signal.SIGTERM)
        assert program.stdout.readline() == "cleaned up\n"
        assert program.wait(timeout=60) == 128 + signal.SIGTERM


def test_a_full_disk_leaves_nothing_half(agent):
    body = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def train(model, task):
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    return model, 1, {}
fl_trainer.run(train=train)
"""
    done = agent.run_once(agent.write_program(body))
    assert done.returncode == 1
    assert agent.left_behind() == []
