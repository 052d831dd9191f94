#!/usr/bin/env python3
"""What a round costs besides training, with the real programs on loopback TLS.

    test/bench/bench_rounds.py --programs build/release/bin [--bare build/release/test/bench_bare_transfer]
        [--clients 10] [--model-bytes 4000] [--rounds 20] [--clients-per-process 1] [--folder DIR]

Runs `fl run` on a model of one F32 tensor with a trainer that costs nothing: it has a file of its own,
changes one value in it each round, and gives it back as a hard link. So every model is another one and has
to travel, in both directions. Prints one JSON line: seconds a round, from one published version to the next
(the first round, in which agents connect and trainers start, apart), and the aggregator's own memory
(anonymous, over time, and its peak resident size). With --bare it runs the bare program of the same bytes
before and after, and prints the ratio.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

TRAINER = """
import json, os, random, shutil, struct, sys
own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own-%d" % os.getpid())
for line in sys.stdin:
    path = line.strip()
    task = json.load(open(path))
    if not os.path.exists(own):
        shutil.copyfile(task["model"], own)
    with open(own, "r+b") as update:
        update.seek(-4, os.SEEK_END)
        update.write(struct.pack("<f", random.random()))
    if os.path.exists(task["output"]):
        os.unlink(task["output"])
    os.link(own, task["output"])
    with open(task["result"], "w") as out:
        json.dump({"num_samples": 10, "num_steps": 1, "metrics": {}}, out)
    print("done " + path, flush=True)
"""


def write_model(path, size):
    count = max(1, size // 4)
    header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        block = struct.pack("<f", 0.25) * 262144
        left = 4 * count
        while left:
            piece = block[:min(left, len(block))]
            out.write(piece)
            left -= len(piece)


def write_objects(folder, clients, rounds):
    (folder / "model.yaml").write_text(
        "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedModel\nmetadata: {name: bench}\n"
        'spec: {initial: {uri: "file:initial.safetensors"}, retention: {keepLast: 2}}\n')
    (folder / "job.yaml").write_text(
        "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedLearningJob\nmetadata: {name: bench}\n"
        f"spec:\n  modelRef: {{name: bench}}\n  rounds: {rounds}\n  trainer: {{name: echo}}\n"
        f"  selection: {{clientsPerRound: {clients}, seed: 1}}\n  evaluation: {{clients: None}}\n"
        "  roundPolicy: {deadlineSeconds: 3600, maxRetries: 0}\n")
    (folder / "clients.yaml").write_text("---\n".join(
        "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedClient\n"
        f"metadata: {{name: c{i:03}}}\nspec: {{type: Pod}}\n" for i in range(clients)))
    (folder / "echo.py").write_text(TRAINER)
    (folder / "trainers.yaml").write_text(
        f'echo: {{command: ["{sys.executable}", "-S", "{folder}/echo.py"], worker: true}}\n')


def memory(pid):
    """Anonymous and peak resident bytes of a process, or None when it is gone."""
    try:
        lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
        return int(lines["RssAnon"].split()[0]) * 1024, int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return None


class MemoryWatch(threading.Thread):
    """Looks at the aggregator's memory while the rounds run."""

    def __init__(self, port_file):
        super().__init__(daemon=True)
        self.port_file = port_file
        self.samples = []  # (time, anonymous bytes)
        self.peak = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            try:
                pid = json.loads(self.port_file.read_text())["pid"]
            except (OSError, ValueError):
                continue
            seen = memory(pid)
            if seen:
                self.samples.append((time.time(), seen[0]))
                self.peak = max(self.peak, seen[1])

    def median(self, begin, end):
        """Median anonymous bytes between two times; of all samples where none is between them."""
        inside = [size for when, size in self.samples if begin <= when <= end]
        return int(statistics.median(inside or [size for _, size in self.samples] or [0]))


def read_rounds(journal):
    """When the first round started, when each version was published, and how many clients each is of."""
    start, published, contributors = None, [], []
    for line in journal.read_text().splitlines():
        event = json.loads(line.split(" ", 1)[1])
        if event["type"] == "aggregated":
            contributors.append(event["contributors"])
        elif event["type"] in ("round-started", "published"):
            when = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
            if event["type"] == "published":
                published.append(when)
            elif start is None:
                start = when
    return start, published, contributors


def bare_seconds(program, clients, size, folder):
    folder.mkdir()
    out = subprocess.run(
        [program.resolve(), "--clients", str(clients), "--bytes", str(size), "--folder", folder],
        check=True, stdout=subprocess.PIPE, text=True)
    shutil.rmtree(folder)
    return json.loads(out.stdout)["seconds"]


def disk_bytes(clients, size, rounds):
    """About the most that a run has on disk: for each client the models it keeps, its trainer's file and
    its update; the versions of the registry and what is on the way there."""
    return size * (clients * (2 + min(rounds, 3)) + 6)


def measure(options, folder):
    write_model(folder / "initial.safetensors", options.model_bytes)
    write_objects(folder, options.clients, options.rounds)
    bare = []

    def run_bare(times):
        for _ in range(times if options.bare else 0):
            bare.append(bare_seconds(options.bare, options.clients, options.model_bytes, folder / "bare"))

    run_bare(2)
    state = folder / "state" / "bench"
    watch = MemoryWatch(state / "aggregator.json")
    watch.start()
    subprocess.run(
        [options.programs.resolve() / "fl", "run", "-f", folder / "model.yaml", "-f", folder / "job.yaml",
         "-f", folder / "clients.yaml", "--trainers", folder / "trainers.yaml",
         "--registry", folder / "registry", "--state-dir", folder / "state",
         "--clients-per-process", str(options.clients_per_process)],
        check=True, stdout=subprocess.DEVNULL, cwd=folder)
    watch.over.set()
    watch.join()
    start, published, contributors = read_rounds(
        state / "aggregator" / "jobs" / "bench" / "journal.jsonl")
    run_bare(2)

    seconds = [after - before for before, after in zip(published, published[1:])]
    tenth = max(1, len(seconds) // 10)
    result = {
        "bench": "rounds", "clients": options.clients, "model_bytes": options.model_bytes,
        "clients_per_process": options.clients_per_process,
        "rounds": len(published), "updates_least": min(contributors),
        "round_seconds_first": round(published[0] - start, 4),
        "round_seconds_median": round(statistics.median(seconds), 4),
        "round_seconds_min": round(min(seconds), 4), "round_seconds_max": round(max(seconds), 4),
        "aggregator_anonymous_bytes_max": max((size for _, size in watch.samples), default=0),
        "aggregator_anonymous_bytes_first_tenth": watch.median(published[0], published[tenth]),
        "aggregator_anonymous_bytes_last_tenth": watch.median(published[-1 - tenth], published[-1]),
        "aggregator_memory_samples": len(watch.samples),
        "aggregator_resident_bytes_peak": watch.peak,
    }
    if bare:
        result["bare_seconds"] = bare
        result["bare_seconds_median"] = statistics.median(bare)
        result["ratio"] = round(result["round_seconds_median"] / result["bare_seconds_median"], 3)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--bare", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--model-bytes", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=20, help="at least 2")
    parser.add_argument("--clients-per-process", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; default: a temporary folder")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: the first is not counted, so at least 2")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fl-bench-", dir=options.folder)).resolve()
    try:
        need = disk_bytes(options.clients, options.model_bytes, options.rounds)
        free = shutil.disk_usage(folder).free
        if free < need:
            sys.exit(f"bench_rounds: {folder.parent} has {free / 1e9:.1f} GB free, and this takes about "
                     f"{need / 1e9:.1f} GB: name another folder with --folder")
        print(json.dumps(measure(options, folder)))
    except subprocess.CalledProcessError as error:  # what it said is on stderr
        sys.exit(f"bench_rounds: {error.cmd[0]} ended with status {error.returncode}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
