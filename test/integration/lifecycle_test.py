"""Clients and aggregators that come late, come twice, or do not come back."""

import json
import pathlib
import socket
import tempfile
import unittest

import federation
import harness
from federation import SITES, Federation, until


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class LifecycleTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fl-lifecycle-")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        self.clients = federation.make_credentials(folder)
        self.running = Federation(folder / "run", folder, insecure=True)
        self.addCleanup(self.running.__exit__)

    def objects(self, *jobs, sites=SITES):
        return federation.write_objects(
            self.running.folder / f"{jobs[0]['metadata']['name']}.json",
            federation.model(hidden=16), *[self.clients[site] for site in sites], *jobs)

    def items(self, *command):
        shown = self.running.fl(*command, "-o", "json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)["items"]

    def log(self, name):
        return (self.running.folder / f"{name}.log").read_text()

    def test_B17_agents_may_come_first_and_the_next_job_follows(self):
        self.running.port = free_port()
        for site in SITES:
            self.running.start_agent(site)
        for site in SITES:
            until(lambda site=site: "trying again" in self.log(site), f"{site} has tried")
        self.running.start_aggregator()
        self.running.submit(self.objects(federation.job("first", rounds=2),
                                         federation.job("second", rounds=2)))
        self.running.wait_succeeded("first")
        self.running.wait_succeeded("second")
        for site in SITES:
            self.assertIsNone(self.running.agents[site].poll(), f"{site} has ended")

    def selection(self, quorum):
        return {"policy": "Random", "clientsPerRound": 2, "quorum": quorum, "seed": 7}

    def test_B11_the_deadline_closes_a_round_that_a_dead_client_would_hold(self):
        self.running.start_aggregator()
        self.running.submit(self.objects(
            federation.job(rounds=1, selection=self.selection(1),
                           roundPolicy={"deadlineSeconds": 6}), sites=SITES[:2]))
        self.running.start_agent("site-1")
        self.running.start_agent("site-2", failpoints="file.write=kill")
        self.running.wait_for_death(self.running.agents["site-2"], "the task it got")
        self.running.wait_succeeded()
        (only,) = self.items("rounds", "train")
        self.assertEqual((only["selected"], only["accepted"]), (2, 1))
        self.assertIn("deadline", only["message"])

    def test_B11_with_every_client_dead_the_job_fails_and_the_model_stays(self):
        self.running.start_aggregator()
        self.running.submit(self.objects(
            federation.job(rounds=1, selection=self.selection(1),
                           roundPolicy={"deadlineSeconds": 2, "onMissedQuorum": "Fail"}),
            sites=SITES[:2]))
        for site in SITES[:2]:
            self.running.start_agent(site, failpoints="file.write=kill")
        for site in SITES[:2]:
            self.running.wait_for_death(self.running.agents[site], "the task it got")
        done = self.running.fl("wait", "train", "--for", "failed", "--timeout", "60s")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("quorum", done.stdout + self.running.fl("describe", "train").stdout)
        self.assertEqual(len(federation.Layout(self.running.registry / "tiny").versions()), 1)

    def test_B14_a_client_that_comes_again_is_one_client(self):
        self.running.start_aggregator()
        self.running.submit(self.objects(
            federation.job(rounds=1, selection=self.selection(2)), sites=SITES[:2]))

        def connected():
            return [each for each in self.items("clients") if each["status"]["connected"]]

        self.running.start_agent("site-1")
        until(connected, "site-1 is there", details=self.running.logs)
        self.running.kill(self.running.agents["site-1"])
        self.running.start_agent("site-1")
        until(lambda: self.log("site-1").count("session opened") == 2, "site-1 is there again",
              details=self.running.logs)
        self.assertEqual(len(connected()), 1)
        self.assertEqual(sorted(each["metadata"]["name"] for each in self.items("clients")),
                         ["site-1", "site-2"])
        self.assertEqual(self.items("rounds", "train"), [])
        self.running.start_agent("site-2")
        self.running.wait_succeeded()

    def test_B14_a_newer_session_ends_the_older(self):
        self.running.start_aggregator()
        self.running.submit(self.objects(
            federation.job(rounds=1, selection=self.selection(2)), sites=SITES[:2]))
        self.running.start_agent("site-1")
        until(lambda: "session opened" in self.log("site-1"), "site-1 is there")
        twin = self.running.start_agent("site-1", work="twin")
        self.addCleanup(twin.wait)
        self.addCleanup(twin.kill)
        until(lambda: "another process" in self.log("site-1"), "the older session has ended",
              details=self.running.logs)
        self.running.start_agent("site-2")
        self.running.wait_succeeded()

    def test_B15_the_same_submitted_again_is_unchanged(self):
        self.running.start_aggregator()
        objects = self.objects(federation.job(rounds=1))
        first = self.running.fl("submit", "-f", objects)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("created", first.stdout)
        # The answers are lost on the way, after all was done.
        deaf = federation.CuttingProxy(self.running.port, limit=None, cuts=0, answers=False)
        self.addCleanup(deaf.close)
        lost = harness.fl("submit", "-f", objects, "--insecure",
                          FL_AGGREGATOR=f"http://127.0.0.1:{deaf.port}",
                          FL_TOKEN_FILE=str(self.running.credentials / "admin.token"))
        self.assertEqual(lost.returncode, 2, lost.stdout + lost.stderr)
        again = self.running.fl("submit", "-f", objects)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("created", again.stdout)
        self.assertNotIn("configured", again.stdout)
        self.assertIn("unchanged", again.stdout)
        self.assertEqual(len(self.items("list")), 1)


if __name__ == "__main__":
    unittest.main()
