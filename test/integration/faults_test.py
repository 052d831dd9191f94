"""Processes are killed and connections are cut; the result is the one without, to the bit."""

import os
import pathlib
import random
import signal
import subprocess
import tempfile
import unittest

import federation
import harness
from federation import SITES, Federation, Layout, until

ROUNDS = 6


class Undisturbed:
    """What the job comes to when nothing happens, and the keys that this run made."""

    def __init__(self, folder):
        self.folder = folder
        federation.write_data(folder)
        objects = [federation.client(site, f"file:{site}.csv") for site in SITES]
        self.objects = federation.write_objects(
            folder / "objects.yaml", federation.model(), *objects, federation.job(rounds=ROUNDS))
        done = self.run("undisturbed")
        assert done.returncode == 0, done.stdout + done.stderr
        self.credentials = folder / "undisturbed" / "tiny"
        keys = {}
        for site in SITES:
            (self.credentials / f"{site}.csv").symlink_to(folder / f"{site}.csv")
            shown = harness.fl("keys", "show", self.credentials / "keys" / f"{site}.key")
            keys[site] = shown.stdout.strip()
        # fl run makes keys of its own: these are the objects for daemons started by hand.
        self.submitted = federation.write_objects(
            folder / "submitted.yaml", federation.model(),
            *[federation.client(site, f"file:{site}.csv", keys[site]) for site in SITES],
            federation.job(rounds=ROUNDS))
        self.versions = Layout(folder / "undisturbed-registry" / "tiny").versions()
        assert len(self.versions) == ROUNDS + 1, self.versions
        assert all(len(layers) == 2 for layers in self.versions[1:]), self.versions

    def command(self, name):
        return [harness.FL, "run", "-f", str(self.objects), "--state-dir", str(self.folder / name),
                "--registry", str(self.folder / f"{name}-registry")]

    def run(self, name):
        return subprocess.run(self.command(name), capture_output=True, text=True, check=False,
                              timeout=300, env=harness.environment(), stdin=subprocess.DEVNULL)


def setUpModule():
    global undisturbed, scratch
    scratch = tempfile.TemporaryDirectory(prefix="fl-faults-")
    unittest.addModuleCleanup(scratch.cleanup)
    undisturbed = Undisturbed(pathlib.Path(scratch.name))


class FaultsTest(unittest.TestCase):

    def expect_undisturbed(self, registry):
        """Each version there once, whole, and the same bits as without the fault."""
        layout = Layout(registry / "tiny")
        self.assertEqual(layout.versions(), undisturbed.versions)
        self.assertEqual(layout.published(), list(range(ROUNDS + 1)))
        verified = harness.fl("models", "verify", "tiny", "--registry", registry)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def start_federation(self):
        """A federation that has the job."""
        folder = pathlib.Path(scratch.name) / self._testMethodName
        running = self.enterContext(Federation(folder, undisturbed.credentials))
        running.start_aggregator()
        running.submit(undisturbed.submitted)
        for site in SITES:
            running.start_agent(site)
        return running

    def enterContext(self, context):  # unittest has it since Python 3.11
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    # Every place of a round and of publishing, in the order in which they are passed. Those before
    # something is written down come first, so that the job gets on between two deaths.
    STEPS = [
        "update.commit", "file.rename", "update.journal", "update.answer", "engine.aggregate",
        "engine.publish", "registry.publish.start", "registry.publish.weights",
        "registry.publish.state", "registry.publish.config", "registry.publish.manifest",
        "registry.file.rename", "registry.file.rename#3", "engine.published",
        "journal.append#1", "journal.append#2", "journal.append#3", "journal.append#4",
        "journal.append#5", "journal.append#6"]

    def test_B16_the_aggregator_is_killed_at_each_step(self):
        running = self.start_federation()
        running.kill(running.aggregator)
        for step in self.STEPS:
            running.start_aggregator(failpoints=f"{step}=kill")
            running.wait_for_death(running.aggregator, step)
        running.start_aggregator()
        running.wait_succeeded()
        self.expect_undisturbed(running.registry)

    def test_B16_the_aggregator_is_killed_at_random(self):
        rng = random.Random(20)
        running = self.start_federation()
        for _ in range(3):
            moment = running.journal_lines() + rng.randrange(1, 12)
            until(lambda: running.journal_lines() >= moment, f"journal line {moment}",
                  details=running.logs)
            running.kill(running.aggregator)
            running.start_aggregator()
        running.wait_succeeded()
        self.expect_undisturbed(running.registry)

    def test_agents_are_killed_at_random_and_while_they_write(self):
        rng = random.Random(21)
        running = self.start_federation()
        for write in range(1, 4):
            site = rng.choice(SITES)
            running.kill(running.agents[site])
            running.start_agent(site, failpoints=f"file.write#{write}=kill")
            running.wait_for_death(running.agents[site], f"write {write} of {site}")
            running.start_agent(site)
            moment = running.journal_lines() + rng.randrange(1, 6)
            until(lambda: running.journal_lines() >= moment, f"journal line {moment}",
                  details=running.logs)
        running.wait_succeeded()
        self.expect_undisturbed(running.registry)

    def test_connections_are_cut_in_the_middle_of_uploads(self):
        folder = pathlib.Path(scratch.name) / self._testMethodName
        running = self.enterContext(Federation(folder, undisturbed.credentials))
        running.start_aggregator()
        running.submit(undisturbed.submitted)
        # Less than an update has, more than the messages before it.
        proxy = federation.CuttingProxy(running.port, limit=16_000, cuts=4)
        self.addCleanup(proxy.close)
        for site in SITES:
            running.start_agent(site, port=proxy.port)
        running.wait_succeeded()
        self.assertEqual(proxy.cuts, 4)
        self.expect_undisturbed(running.registry)

    def test_B16_a_full_disk_holds_the_job_until_there_is_space(self):
        small = pathlib.Path(scratch.name) / "small"
        if not federation.mount_small(small, 4 << 20):
            self.skipTest("a small disk cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", small], check=True)
        for when in ("before the first round", "while updates come", "while it is published"):
            with self.subTest(when):
                self.full_disk(small / when.replace(" ", "-"), when)

    def full_disk(self, on_small, when):
        folder = pathlib.Path(scratch.name) / on_small.name
        gate = folder / "gate"
        ballast = on_small / "ballast"
        self.addCleanup(ballast.unlink, missing_ok=True)
        with Federation(folder, undisturbed.credentials) as running:
            running.state = on_small / "state"
            running.registry = on_small / "registry"
            step = "engine.publish#2" if when == "while it is published" else "update.commit#4"
            running.start_aggregator(failpoints=f"{step}=wait:{gate}")
            running.submit(undisturbed.submitted)
            if when == "before the first round":
                federation.fill(ballast)
            for site in SITES:
                running.start_agent(site)
            if when != "before the first round":
                moment = 11 if when == "while updates come" else 17
                until(lambda: running.journal_lines() >= moment, when, details=running.logs)
                federation.fill(ballast)
            gate.touch()
            status = lambda: running.fl("get", "job", "train", "-o", "json").stdout
            until(lambda: "No space left" in status() or "are free" in status(),
                  "the status says why", details=lambda: status() + running.logs())
            ballast.unlink()
            running.wait_succeeded()
            self.expect_undisturbed(running.registry)

    def test_run_goes_on_after_ctrl_c_and_after_kill(self):
        gate = pathlib.Path(scratch.name) / "gate"
        registry = pathlib.Path(scratch.name) / "stopped-registry"

        def start(failpoints):
            return subprocess.Popen(undisturbed.command("stopped"), text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, start_new_session=True,
                                    env=harness.environment(FL_FAILPOINTS=failpoints))

        def versions():
            index = registry / "tiny" / "index.json"
            return len(Layout(index.parent).versions()) if index.exists() else 0

        running = start(f"engine.publish#3=wait:{gate}")
        self.addCleanup(running.kill)
        until(lambda: versions() == 3, "two rounds are done")
        running.send_signal(signal.SIGINT)
        # The round that waits may not go on before those who train have gone.
        until(lambda: len(children(running.pid)) <= 1, "the agents have ended")
        gate.touch()
        output, errors = running.communicate(timeout=federation.LIMIT)
        self.assertEqual(running.returncode, 130, output + errors)
        self.assertIn("the same command goes on", errors)
        self.assertLess(versions(), ROUNDS + 1)

        # Killed, it takes its daemons along.
        gate.unlink()
        killed = start(f"engine.publish#1=wait:{gate}")
        self.addCleanup(killed.kill)
        before = versions()
        until(lambda: len(children(killed.pid)) == len(SITES) + 1, "its daemons run")
        daemons = children(killed.pid)
        killed.kill()
        killed.communicate(timeout=federation.LIMIT)
        until(lambda: not any(is_running(pid) for pid in daemons), "its daemons have ended")
        self.assertEqual(versions(), before)

        done = undisturbed.run("stopped")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.expect_undisturbed(registry)

    def test_a_finished_run_again_changes_nothing(self):
        registry = pathlib.Path(scratch.name) / "undisturbed-registry"
        before = (registry / "tiny" / "index.json").read_bytes()
        again = undisturbed.run("undisturbed")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("nothing to do", again.stdout)
        self.assertEqual((registry / "tiny" / "index.json").read_bytes(), before)


def children(parent):
    """Processes that `parent` started and that have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            state = process_state(int(entry))
            if state and state[1] == parent and state[0] != "Z":
                found.append(int(entry))
    return found


def process_state(pid):
    """(state, parent) as in proc(5); None where there is no such process."""
    try:
        after_name = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return after_name[0], int(after_name[1])


def is_running(pid):
    state = process_state(pid)
    return state is not None and state[0] != "Z"


if __name__ == "__main__":
    unittest.main()
