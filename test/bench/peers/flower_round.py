#!/usr/bin/env python3
"""What a round of Flower costs besides training: the measurement of bench_rounds.py, with its programs.

    $FL_TEST_CACHE/peers/flower/bin/python test/bench/peers/flower_round.py [--clients 10] [--rounds 5]
        [--model-bytes 4000] [--timeout 600]

Needs `pip install flwr` in the environment whose Python runs this. Starts one SuperLink and a SuperNode for
each client on loopback, without TLS and with Flower's own settings, submits an app whose clients give the
model back, and prints one JSON line: seconds a round, from one aggregated model to the next.
"""
import argparse
import ctypes
import importlib.metadata
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "rounds"
version = "1.0.0"
description = "Rounds without training"
license = "Apache-2.0"
dependencies = ["flwr"]

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "rounds"

[tool.flwr.app.components]
serverapp = "rounds.server:app"
clientapp = "rounds.client:app"

[tool.flwr.app.config]
clients = {clients}
rounds = {rounds}
values = {values}
times = "{times}"
"""

SERVER = """
import time

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


class TimedFedAvg(FedAvg):
    times = None

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        result = super().aggregate_train(server_round, replies)
        answered = sum(not reply.has_error() for reply in replies)
        with open(self.times, "a") as out:
            out.write(f"{time.time()} {answered}\\n")
        return result


@app.main()
def main(grid, context):
    config = context.run_config
    clients = config["clients"]
    strategy = TimedFedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=clients,
                           min_available_nodes=clients)
    strategy.times = config["times"]
    model = ArrayRecord({"w": Array(np.full(config["values"], 0.25, dtype=np.float32))})
    strategy.start(grid=grid, initial_arrays=model, num_rounds=config["rounds"])
"""

CLIENT = """
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message, context):
    content = RecordDict({"arrays": message.content["arrays"], "metrics": MetricRecord({"num-examples": 10})})
    return Message(content=content, reply_to=message)
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("flower_round: the SuperLink did not come up")


def adopt_orphans():
    """Makes what our children leave behind our children, so that all of it can be stopped."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def stop_children():
    own = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    begin = time.monotonic()
    while children := own.read_text().split():
        for child in children:
            late = time.monotonic() - begin > 5
            os.kill(int(child), signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.2)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def write_app(folder, options, times):
    package = folder / "app" / "rounds"
    package.mkdir(parents=True)
    (folder / "app" / "pyproject.toml").write_text(PROJECT.format(
        clients=options.clients, rounds=options.rounds, values=max(1, options.model_bytes // 4), times=times))
    (package / "__init__.py").touch()
    (package / "server.py").write_text(SERVER)
    (package / "client.py").write_text(CLIENT)


def read_times(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(when), int(answered)) for when, answered in (line.split() for line in lines)]


def run_rounds(folder, options):
    """(time, answers) of each round."""
    programs = pathlib.Path(sys.prefix) / "bin"
    home, times = folder / "home", folder / "times"
    home.mkdir()
    write_app(folder, options, times)
    port = free_port()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n')
    environment = dict(
        os.environ, HOME=str(home), FLWR_HOME=str(home), FLWR_TELEMETRY_ENABLED="0",
        FLWR_DISABLE_UPDATE_CHECK="1", PATH=f"{programs}:{os.environ['PATH']}")
    log = open(folder / "log", "w")

    def start(*command):
        return subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT)

    link = start(programs / "flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(port),
                 "--disable-runtime-dependency-installation")
    wait_for_port(port, link)
    for _ in range(options.clients):
        start(programs / "flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{port}",
              "--host", "127.0.0.1", "--port", str(free_port()))
    submit = start(programs / "flwr", "run", folder / "app", "here")
    end = time.monotonic() + options.timeout
    while len(read_times(times)) < options.rounds:
        if time.monotonic() > end or link.poll() is not None or submit.poll():
            log.flush()
            print("\n".join((folder / "log").read_text().splitlines()[-10:]), file=sys.stderr)
            sys.exit(f"flower_round: {len(read_times(times))} of {options.rounds} rounds ended")
        time.sleep(0.2)
    return read_times(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5, help="at least 2: the first is not counted")
    parser.add_argument("--model-bytes", type=int, default=4000)
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="fl-bench-flower-", ignore_cleanup_errors=True) as folder:
        try:
            rounds = run_rounds(pathlib.Path(folder), options)
        finally:
            stop_children()
    seconds = [after[0] - before[0] for before, after in zip(rounds, rounds[1:])]
    print(json.dumps({
        "bench": "flower_round", "version": importlib.metadata.version("flwr"), "clients": options.clients,
        "model_bytes": options.model_bytes, "rounds": len(rounds),
        "updates_least": min(answered for _, answered in rounds),
        "round_seconds_median": round(statistics.median(seconds), 3),
        "round_seconds_min": round(min(seconds), 3), "round_seconds_max": round(max(seconds), 3)}))


if __name__ == "__main__":
    main()
