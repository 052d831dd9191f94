"""What a long run leaves behind in the aggregator: nothing."""

import json
import os
import pathlib
import tempfile
import unittest

import federation
from federation import SITES, Federation, until

HIDDEN = 100_000
MODEL_BYTES = HIDDEN * (6 + 1 + 3) * 4  # a little less than what the file has
ROUNDS = 25


def anonymous_bytes(pid):
    """Memory of a process that is no file's."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("smaps_rollup has no line Anonymous")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def size_of(folder):
    """(files, bytes) under a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


class MemoryTest(unittest.TestCase):

    def published(self, running):
        if not running.journal.exists():
            return 0
        return running.journal.read_text().count('"type":"published"')

    def test_B19_memory_files_and_disk_are_flat_over_many_rounds(self):
        with tempfile.TemporaryDirectory(prefix="fl-memory-") as scratch:
            folder = pathlib.Path(scratch)
            clients = federation.make_credentials(folder)
            model = federation.model(HIDDEN)
            model["spec"]["retention"] = {"keepLast": 2}
            job = federation.job(rounds=ROUNDS, aggregation={"algorithm": "FedAvg"},
                                 evaluation={"clients": "None"})
            job["spec"]["trainer"]["config"]["localEpochs"] = 1
            with Federation(folder / "run", folder, insecure=True) as running:
                running.start_aggregator()
                for site in SITES:
                    running.start_agent(site)
                objects = federation.write_objects(running.folder / "objects.json", model,
                                                   *clients.values(), job)
                running.submit(objects)
                pid = running.aggregator.pid
                until(lambda: self.published(running) >= 5, "five rounds", details=running.logs)
                memory, files = anonymous_bytes(pid), open_files(pid)
                running.wait_succeeded()
                self.assertEqual(len(json.loads(running.fl("rounds", "train", "-o", "json").stdout)
                                     ["items"]), ROUNDS)
                self.assertLessEqual(open_files(pid), files)
                # Sanitizers keep freed memory for a while, to find those who still use it.
                if not os.environ.get("FL_SANITIZE"):
                    self.assertLessEqual(anonymous_bytes(pid), memory + MODEL_BYTES // 4)
                    self.assertLess(anonymous_bytes(pid), 4 * MODEL_BYTES)
                # No update stays after its round.
                count, size = size_of(running.state)
                self.assertLess(size, 2 * MODEL_BYTES, f"{count} files in the state folder")
                # keepLast, latest and the optimiser's nothing: what else would stay is garbage.
                count, size = size_of(running.registry)
                self.assertLess(size, 5 * MODEL_BYTES, f"{count} files in the registry")


if __name__ == "__main__":
    unittest.main(verbosity=2)
