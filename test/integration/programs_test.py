"""Users' programs that go wrong cost their own update, and the reason says what to fix."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import federation
import harness

# What each client's program does; the name of the client says which it is.
PROGRAM = '''
import json, math, os, signal, sys
sys.path.insert(0, sys.argv[1])
import harness

task = json.load(open(os.environ["FL_TASK"]))
tensors = {name: harness.tensor(*parts) for name, parts in
           harness.read_safetensors(task["model"]).items()}
behaviour = task["client"]
first = next(iter(tensors))
dtype, shape, data = tensors[first]
result = {"num_samples": 40, "num_steps": 4, "metrics": {"trainLoss": 0.5}}
if behaviour == "crashes":
    raise SystemExit("bad input file")
elif behaviour == "is-killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif behaviour == "hangs":
    while True:
        signal.pause()
elif behaviour == "writes-nan":
    tensors[first] = (dtype, shape, harness.tensor("F32", [1], [math.nan])[2] + data[4:])
elif behaviour == "writes-shape":
    tensors[first] = (dtype, list(reversed(shape)), data)
elif behaviour == "forgets-tensor":
    del tensors[first]
elif behaviour == "invents-tensor":
    tensors["made-up"] = harness.tensor("F32", [1], [1.0])
elif behaviour == "writes-f64":
    tensors[first] = harness.tensor("F64", shape, [0.0] * (len(data) // 4))
elif behaviour == "does-nothing":
    raise SystemExit(0)
elif behaviour == "bad-result":
    result["num_samples"] = -1
elif behaviour == "writes-too-much":
    open((task["output"] or task["result"]) + ".checkpoint", "wb").truncate(1 << 30)
    signal.pause()
elif behaviour == "site-1":  # of DiskTest: what it leaves there fills the disk for good
    with open(os.path.join(os.path.dirname(task["output"]), "checkpoint"), "ab", 0) as out:
        while True:
            out.write(bytes(1 << 20))
if behaviour == "truncates":
    harness.write_safetensors(task["output"], tensors)
    os.truncate(task["output"], 300)
else:
    harness.write_safetensors(task["output"], tensors)
if behaviour != "no-result":
    json.dump(result, open(task["result"], "w"))
'''

# client: what its reason must name.
WRONG = {
    "crashes": ["exit status 1", "its output is in"],
    "is-killed": ["signal 9"],
    "hangs": ["time"],
    "writes-nan": ["NaN"],
    "writes-shape": ["shape"],
    "forgets-tensor": ["missing"],
    "invents-tensor": ["made-up"],
    "writes-f64": ["F64", "F32"],
    "does-nothing": ["wrote no result"],
    "bad-result": ["num_samples"],
    "truncates": ["weights"],
    "no-result": ["wrote no result"],
    "writes-too-much": ["more than", "bytes as weights", "keep checkpoints elsewhere"],
}
RIGHT = ["right-1", "right-2"]


def write_program(folder):
    """The trainers that run it."""
    (folder / "program.py").write_text(PROGRAM)
    return {"mine": {"command": [sys.executable, "-B", str(folder / "program.py"),
                                 os.path.dirname(os.path.abspath(__file__))],
                     "timeoutSeconds": 10}}


class ProgramsTest(unittest.TestCase):

    def test_wrong_programs_cost_only_their_own_updates(self):
        scratch = tempfile.TemporaryDirectory(prefix="fl-programs-")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        trainers = write_program(folder)
        names = [*WRONG, *RIGHT]
        federation.write_objects(
            folder / "objects.yaml", federation.model(hidden=16),
            *[federation.client(name, "file:none.csv") for name in names],
            federation.job(rounds=1, trainer={"name": "mine"},
                           selection={"policy": "Random", "clientsPerRound": len(names),
                                      "quorum": len(RIGHT), "seed": 7}))
        (folder / "trainers.yaml").write_text(json.dumps(trainers))
        run = harness.fl("run", "-f", folder / "objects.yaml", "--state-dir", folder / "state",
                         "--registry", folder / "registry", "--trainers", folder / "trainers.yaml",
                         "--clients-per-process", len(names))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        versions = federation.Layout(folder / "registry" / "tiny").versions()
        self.assertEqual(len(versions), 2)
        # What people are told, of the aggregator that comes up again with what was written down.
        with federation.Federation(folder, folder / "state" / "tiny") as running:
            running.state = folder / "state" / "tiny" / "aggregator"
            running.start_aggregator()
            shown = running.fl("rounds", "train", "-o", "json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        (only,) = json.loads(shown.stdout)["items"]
        self.assertEqual(only["accepted"], len(RIGHT))
        states = {each["name"]: each["state"] for each in only["clients"]}
        self.assertEqual(states, {**dict.fromkeys(WRONG, "Rejected"),
                                  **dict.fromkeys(RIGHT, "Accepted")})
        reasons = {each["name"]: each.get("reason", "") for each in only["clients"]}
        for name, words in WRONG.items():
            with self.subTest(name):
                for word in words:
                    self.assertIn(word, reasons[name])
                # Where things lie at the agent stays there.
                for path in (folder, sys.executable, os.path.dirname(os.path.abspath(__file__))):
                    self.assertNotIn(str(path), reasons[name])


class DiskTest(unittest.TestCase):

    def test_a_program_that_fills_its_disk_costs_its_own_updates(self):
        scratch = tempfile.TemporaryDirectory(prefix="fl-programs-")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        # More than an agent wants to be free while a program runs.
        small = folder / "run" / "work" / "site-1"
        if not federation.mount_small(small, 80 << 20):
            self.skipTest("a small disk cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", small], check=True)
        clients = federation.make_credentials(folder)
        objects = federation.write_objects(
            folder / "objects.yaml", federation.model(hidden=16), *clients.values(),
            federation.job(rounds=2, trainer={"name": "mine"}, evaluation={"clients": "None"},
                           selection={"policy": "Random", "clientsPerRound": 3, "quorum": 2,
                                      "seed": 7}))
        trainers = write_program(folder)
        with federation.Federation(folder / "run", folder, insecure=True) as running:
            running.start_aggregator()
            running.submit(objects)
            for site in federation.SITES:
                running.start_agent(site, trainers=trainers)
            running.wait_succeeded()
            shown = running.fl("rounds", "train", "-o", "json")
            self.assertIsNone(running.agents["site-1"].poll(), running.logs())
        self.assertEqual(shown.returncode, 0, shown.stderr)
        rounds = json.loads(shown.stdout)["items"]
        self.assertEqual([(each["accepted"], each["rejected"]) for each in rounds],
                         [(2, 1), (2, 1)])
        for each in rounds:
            states = {client["name"]: client for client in each["clients"]}
            self.assertEqual(states["site-1"]["state"], "Rejected")
            reason = states["site-1"]["reason"]
            self.assertRegex(reason, "nearly full|No space left")
            self.assertIn("free some space", reason)
            self.assertNotIn(str(folder), reason)


if __name__ == "__main__":
    unittest.main()
