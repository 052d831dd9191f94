#!/usr/bin/env python3
"""The project's figures as one JSON document; test/bench/run.sh says how to use this.

A figure is what one program measured, and checks: `ours` against a `limit`, with `ok` true, false, or
null where it was not judged (speed under --quick).
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
MEMORY_LIMIT = 128_000_000  # bytes
GROWTH_LIMIT = 4_000_000  # bytes that the memory may grow in 100 rounds and still be called flat
FLOWER = "1.42.0"
ELSEWHERE = "measured on the same kind of machine"
PEERS = {
    "rounds_small": [
        {"name": "Flower 1.42.0", "milliseconds": 10_000, "source": ELSEWHERE},
        {"name": "NVFlare 2.9.0", "milliseconds": 3_000, "work": "simulator", "source": ELSEWHERE},
    ],
    "rounds_100mb": [
        {"name": "Flower 1.42.0", "seconds": [19, 24], "work": "without TLS", "source": ELSEWHERE},
        {"name": "NVFlare 2.9.0", "seconds": [4.5, 10], "work": "simulator", "source": ELSEWHERE},
    ],
    "rounds_2gb": [
        {"name": "Flower 1.42.0", "seconds": [23, 25], "server_bytes": 10_900_000_000,
         "work": "2 agents x 1 GB, without TLS", "source": ELSEWHERE},
        {"name": "NVFlare 2.9.0", "seconds": [8.7, 12], "server_bytes": 9_100_000_000,
         "work": "2 agents x 1 GB, simulator", "source": ELSEWHERE},
    ],
    "aggregate_100x10m": [
        {"name": "Flower 1.42.0", "gbps": [2.3, 12.6], "work": "in memory", "source": ELSEWHERE},
        {"name": "NVFlare 2.9.0", "gbps": [14, 17], "work": "in memory", "source": ELSEWHERE},
    ],
}


def say(text):
    print(f"run.sh: {text}", file=sys.stderr, flush=True)


class Failure(Exception):
    """A figure that could not be measured, and why."""


def check(what, ours, limit, ok):
    return {"what": what, "ours": ours, "limit": limit, "ok": ok}


def run_json(command):
    """What a program says in the last line of its output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = " | ".join(done.stderr.strip().splitlines()[-5:])
        raise Failure(f"{pathlib.Path(command[0]).name} ended with status {done.returncode}: {last}")


class Bench:
    def __init__(self, options):
        self.quick = options.quick
        self.options = options
        self.tests = options.programs.parent / "test"

    def speed(self, what, ours, limit, ok):
        """A check that says nothing at small sizes, on a machine that does other things."""
        return check(what, ours, limit, None if self.quick else ok)

    def rounds(self, clients, model_bytes, rounds, bare=False, clients_per_process=1):
        """Rounds of the real programs, with the checks that hold for all of them."""
        command = [sys.executable, "-B", HERE / "bench_rounds.py", "--programs", self.options.programs,
                   "--clients", clients, "--model-bytes", model_bytes, "--rounds", rounds,
                   "--clients-per-process", clients_per_process, "--folder", self.options.folder]
        if bare:
            command += ["--bare", self.tests / "bench_bare_transfer"]
        measured = run_json(command)
        memory = measured["aggregator_anonymous_bytes_max"]
        checks = [
            check("rounds completed", measured["rounds"], rounds, measured["rounds"] >= rounds),
            check("updates in each version", measured["updates_least"], clients,
                  measured["updates_least"] >= clients),
            check("the aggregator's anonymous memory, bytes, at most", memory, MEMORY_LIMIT,
                  0 < memory <= MEMORY_LIMIT),
        ]
        return measured, checks

    def rounds_small(self):
        # The first round, in which agents connect, is not counted.
        measured, checks = self.rounds(*((3, 4_000, 6) if self.quick else (10, 4_000, 101)))
        median = round(measured["round_seconds_median"] * 1000, 1)
        begin = measured["aggregator_anonymous_bytes_first_tenth"]
        end = measured["aggregator_anonymous_bytes_last_tenth"]
        checks += [
            self.speed("milliseconds a round, median, at most", median, 50, median <= 50),
            check(f"memory over the rounds, from {begin} to {end} bytes: growth at most", end - begin,
                  GROWTH_LIMIT, end - begin <= GROWTH_LIMIT),
        ]
        return measured, checks

    def rounds_100mb(self):
        measured, checks = self.rounds(*((3, 1_000_000, 3) if self.quick else (10, 100_000_000, 6)), bare=True)
        checks.append(self.speed("seconds a round, median, over the bare program's, at most",
                                 measured["ratio"], 1.5, measured["ratio"] <= 1.5))
        return measured, checks

    def rounds_2gb(self):
        return self.rounds(*((2, 4_000_000, 2) if self.quick else (4, 2_000_000_000, 2)))

    def agents_200(self):
        size = (20, 4_000, 3) if self.quick else (200, 4_000, 21)
        return self.rounds(*size, clients_per_process=size[0] // 10)

    def aggregate_100x10m(self):
        clients, params = (10, 100_000) if self.quick else (100, 10_000_000)
        need = (clients + 3) * params * 4
        free = shutil.disk_usage(self.options.folder).free
        if free < need:
            raise Failure(f"{self.options.folder} has {free / 1e9:.1f} GB free, and this takes about "
                          f"{need / 1e9:.1f} GB: name another folder with --folder")
        measured = run_json([self.tests / "bench_aggregate", "--clients", clients, "--params", params,
                             "--threads", 2, "--folder", self.options.folder])
        return measured, [
            self.speed("speed on one core over the plain loop's, at least", measured["ratio"], 0.4,
                       measured["ratio"] >= 0.4),
            check("the same bits with 1 and 2 threads and in any order", measured["same_bits"], True,
                  measured["same_bits"]),
        ]

    def mcmahan(self):
        record = HERE / "results" / "mcmahan.json"
        if self.options.mcmahan:
            environment = dict(os.environ, BENCH_MCMAHAN=str(self.tests / "bench_mcmahan"))
            status = subprocess.run([HERE / "mcmahan.sh"], stdout=sys.stderr, env=environment).returncode
            if status not in (0, 1):
                raise Failure(f"mcmahan.sh ended with status {status}")
        elif not record.exists():
            if self.quick:
                return {}, []
            raise Failure(f"{record} is missing: run with --mcmahan")
        measured = json.loads(record.read_text())
        measured.pop("tried", None)
        measured["from"] = "this run" if self.options.mcmahan else "recorded"
        measured.setdefault("date", git("log", "-1", "--format=%cI", "--", record) or "unknown")
        return measured, [
            check(f"rounds to 97 %, {result['partition']}, median of three seeds (the paper: "
                  f"{result['paper']}), at most",
                  result["median"], result["limit"], result["median"] <= result["limit"])
            for result in measured["results"]
        ]


FIGURES = ["rounds_small", "rounds_100mb", "rounds_2gb", "agents_200", "aggregate_100x10m", "mcmahan"]


def flower_rounds(clients, rounds):
    """Flower's seconds a round with as many clients and as small a model, now on this machine."""
    cache = pathlib.Path(os.environ.get("FL_TEST_CACHE") or pathlib.Path.home() / ".cache" / "fl-test")
    python = cache / "peers" / "flower" / "bin" / "python"
    version = "import importlib.metadata as m; print(m.version('flwr'))"
    try:
        there = subprocess.run([python, "-c", version], capture_output=True, text=True).stdout.strip()
    except OSError:
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True, stdout=sys.stderr)
        there = ""
    if there != FLOWER:
        say(f"installing flwr {FLOWER}")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        f"flwr=={FLOWER}"], check=True, stdout=sys.stderr)
    return run_json([python, "-B", HERE / "peers" / "flower_round.py", "--clients", clients,
                     "--rounds", rounds])


def add_flower(figure, quick):
    """Adds Flower's rounds of this run to the figure of the small rounds."""
    ours = figure["measured"]
    theirs = flower_rounds(ours["clients"], 3 if quick else 5)
    if theirs["updates_least"] < ours["clients"]:
        raise Failure(f"Flower had {theirs['updates_least']} of {ours['clients']} updates in a round")
    peer = theirs["round_seconds_median"]
    figure["peers"].insert(0, {
        "name": f"Flower {theirs['version']}", "milliseconds": round(peer * 1000), "source": "same run",
        "times_as_long_as_ours": round(peer / ours["round_seconds_median"], 1)})


def git(*arguments):
    done = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True)
    return done.stdout.strip()


def machine():
    def field(path, name):
        lines = pathlib.Path(path).read_text().splitlines()
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "unknown")

    return {
        "cores": os.cpu_count(),
        "cpu": field("/proc/cpuinfo", "model name"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": os.uname().release,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": git("rev-parse", "HEAD") or "unknown",
        "changed_since_commit": bool(git("status", "--porcelain", "--untracked-files=no")),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def parse_options():
    parser = argparse.ArgumentParser(prog="run.sh", description="Prints the project's figures as JSON.")
    parser.add_argument("--quick", action="store_true", help="small sizes; no speed is judged")
    parser.add_argument("--only", default=",".join(FIGURES), metavar="NAME[,NAME]", help=", ".join(FIGURES))
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="write the document there too")
    parser.add_argument("--programs", type=pathlib.Path, metavar="DIR", default=SOURCE / "build/release/bin",
                        help="where fl is (build/release/bin); the measurements are in DIR/../test")
    parser.add_argument("--folder", type=pathlib.Path, metavar="DIR", default=tempfile.gettempdir(),
                        help="where to work ($TMPDIR); 44 GB for rounds_2gb")
    parser.add_argument("--mcmahan", action="store_true", help="run mcmahan.sh, half an hour")
    parser.add_argument("--with-peers", action="store_true", help="run Flower's rounds too")
    parser.exit_on_error = False
    try:
        options, rest = parser.parse_known_args()
        if rest:
            raise argparse.ArgumentError(None, f"unknown: {' '.join(rest)}")
    except argparse.ArgumentError as error:
        parser.print_usage(sys.stderr)
        stop(str(error))
    options.only = options.only.split(",")
    for name in options.only:
        if name not in FIGURES:
            stop(f"--only {name}: use {', '.join(FIGURES)}")
    if not options.folder.is_dir():
        stop(f"--folder {options.folder}: there is no such folder")
    if options.out and not options.out.resolve().parent.is_dir():
        stop(f"--out {options.out}: there is no folder {options.out.resolve().parent}")
    if options.with_peers and "rounds_small" not in options.only:
        stop("--with-peers: Flower is compared with rounds_small, which --only leaves out")
    options.programs = options.programs.resolve()
    tests = options.programs.parent / "test"
    needed = [options.programs / name for name in ("fl", "fl-aggregatord", "fl-agentd")]
    needed += [tests / name for name in ("bench_aggregate", "bench_bare_transfer", "bench_mcmahan")]
    for program in needed:
        if not os.access(program, os.X_OK):
            stop(f"{program} is missing: cmake --preset release && cmake --build --preset release")
    return options


def stop(text):
    say(text)
    sys.exit(4)


def main():
    options = parse_options()
    report = {"what": "figures of one machine", "quick": options.quick, "machine": machine(), "ok": True,
              "failed": [], "figures": {}}
    load = report["machine"]["load_average"][0]
    if load > 0.5 and not options.quick:
        say(f"the load average is {load}: figures say little")
    bench = Bench(options)
    for name in options.only:
        say(f"{name}: running")
        begin = time.monotonic()
        figure = {"ok": False, "measured": {}, "checks": [], "peers": list(PEERS.get(name, []))}
        try:
            figure["measured"], figure["checks"] = getattr(bench, name)()
            judged = [each["ok"] for each in figure["checks"] if each["ok"] is not None]
            figure["ok"] = all(judged) if judged else None
        except (Failure, OSError, subprocess.CalledProcessError) as error:
            figure["error"] = str(error)
        figure["seconds"] = round(time.monotonic() - begin, 1)
        report["figures"][name] = figure
        outcome = {True: "ok", False: "FAILED", None: "not judged"}[figure["ok"]]
        say(f"{name}: {outcome} after {figure['seconds']:.0f} s")
        report["failed"] += [f"{name}: {each['what']} {each['limit']}, but it is {each['ours']}"
                             for each in figure["checks"] if each["ok"] is False]
        if "error" in figure:
            report["failed"].append(f"{name}: {figure['error']}")
        elif name == "rounds_small" and options.with_peers:
            say("Flower: running")
            try:
                add_flower(figure, options.quick)
            except (Failure, OSError, subprocess.CalledProcessError) as error:  # ours stays as it is
                report["failed"].append(f"Flower: {error}")
    report["ok"] = not report["failed"]
    text = json.dumps(report, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    for failed in report["failed"]:
        say(failed)
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
