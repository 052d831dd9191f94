#!/usr/bin/env python3
"""What a round costs besides training, with the real programs on loopback TLS.

    test/bench/bench_rounds.py --programs build/release/bin [--bare build/release/test/bench_bare_transfer]
        [--clients 10] [--model-bytes 4000] [--rounds 20] [--clients-per-process 1] [--folder DIR]

Runs `fl run` on a model of one F32 tensor with a trainer that gives the model back (a hard link, so that
training costs nothing), reads the times of the rounds from the aggregator's events, and prints one JSON
line: median seconds a round and the aggregator's own memory (anonymous, and its peak resident size). With
--bare it runs the bare program of the same bytes in the same run and prints the ratio.
"""
import argparse
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

TRAINER = """
import json, os, sys
for line in sys.stdin:
    path = line.strip()
    task = json.load(open(path))
    if os.path.exists(task["output"]):
        os.unlink(task["output"])
    os.link(task["model"], task["output"])
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
        f"  selection: {{clientsPerRound: {clients}, seed: 1}}\n  evaluation: {{clients: None}}\n")
    (folder / "clients.yaml").write_text("---\n".join(
        "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedClient\n"
        f"metadata: {{name: c{i:03}}}\nspec: {{type: Pod}}\n" for i in range(clients)))
    (folder / "echo.py").write_text(TRAINER)
    (folder / "trainers.yaml").write_text(
        f'echo: {{command: ["{sys.executable}", "{folder}/echo.py"], worker: true}}\n')


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
        self.samples = []
        self.peak = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.05):
            try:
                pid = json.loads(self.port_file.read_text())["pid"]
            except (OSError, ValueError):
                continue
            seen = memory(pid)
            if seen:
                self.samples.append(seen[0])
                self.peak = max(self.peak, seen[1])


def round_seconds(journal):
    """Seconds from the start of each round to its version, from the job's journal."""
    import datetime
    starts, seconds = None, []
    for line in journal.read_text().splitlines():
        event = json.loads(line.split(" ", 1)[1])
        time = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
        if event["type"] == "round-started":
            starts = time
        elif event["type"] == "published":
            seconds.append(time - starts)
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--bare", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--model-bytes", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients-per-process", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; default: a temporary folder")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fl-bench-", dir=options.folder))
    try:
        write_model(folder / "initial.safetensors", options.model_bytes)
        write_objects(folder, options.clients, options.rounds)
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
        seconds = round_seconds(state / "aggregator" / "jobs" / "bench" / "journal.jsonl")
        third = max(1, len(watch.samples) // 3)
        result = {
            "bench": "rounds", "clients": options.clients, "model_bytes": options.model_bytes,
            "rounds": len(seconds), "round_seconds_median": round(statistics.median(seconds), 4),
            "round_seconds_min": round(min(seconds), 4), "round_seconds_max": round(max(seconds), 4),
            "aggregator_anonymous_bytes_max": max(watch.samples, default=0),
            "aggregator_anonymous_bytes_max_first_third": max(watch.samples[:third], default=0),
            "aggregator_anonymous_bytes_max_last_third": max(watch.samples[-third:], default=0),
            "aggregator_resident_bytes_peak": watch.peak,
        }
        if options.bare:
            bare_folder = folder / "bare"
            bare_folder.mkdir()
            runs = []
            for _ in range(3):
                out = subprocess.run(
                    [options.bare.resolve(), "--clients", str(options.clients), "--bytes",
                     str(options.model_bytes), "--folder", bare_folder],
                    check=True, capture_output=True, text=True)
                runs.append(json.loads(out.stdout)["seconds"])
            result["bare_seconds_median"] = statistics.median(runs)
            result["ratio"] = round(result["round_seconds_median"] / statistics.median(runs), 3)
        print(json.dumps(result))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
