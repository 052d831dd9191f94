"""The commands on jobs and models against a running aggregator."""

import json
import os
import pathlib
import pty
import shutil
import tempfile
import unittest

import federation
import harness
from federation import SITES


class RemoteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.credentials = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.credentials)
        cls.clients = federation.make_credentials(cls.credentials)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.running = federation.Federation(folder.name, self.credentials, insecure=True)
        self.addCleanup(self.running.__exit__)
        self.running.start_aggregator()

    def ok(self, *arguments):
        done = self.running.fl(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def data(self, *arguments):
        return json.loads(self.ok(*arguments, "-o", "json"))

    def submit(self, *jobs):
        path = federation.write_objects(
            self.running.folder / "objects.json", federation.model(hidden=16),
            *[self.clients[site] for site in SITES], *jobs)
        return self.ok("submit", "-f", path)

    def test_a_job_is_paused_resumed_aborted(self):
        self.assertEqual(self.submit(federation.job(rounds=2)).splitlines(),
                         ["model/tiny created", *(f"client/{site} created" for site in SITES),
                          "job/train created"])
        self.assertEqual(self.ok("list", "-o", "name"), "job/train\n")
        self.assertEqual(self.ok("pause", "train"), "job/train paused\n")
        self.assertIn("Suspended", self.ok("list"))
        self.assertIn("job/train  Suspended", self.ok("status", "train"))
        self.assertEqual(self.ok("resume", "train"), "job/train resumed\n")
        self.assertEqual(self.ok("abort", "train"), "job/train aborted\n")
        self.assertIn("Failed", self.ok("wait", "train", "--for=failed", "--timeout", "30s"))
        wrong = self.running.fl("wait", "train", "--for=succeeded", "--timeout", "30s")
        self.assertEqual(wrong.returncode, 1)
        self.assertEqual(self.running.fl("pause", "train").returncode, 1)
        again = self.running.fl("retry", "train")
        self.assertEqual(again.returncode, 1)
        self.assertIn("aborted", again.stderr)

    def test_a_job_that_failed_is_tried_again(self):
        self.submit(federation.job(
            rounds=1, roundPolicy={"deadlineSeconds": 2, "onMissedQuorum": "Fail"}))
        for site in SITES:
            self.running.start_agent(site, failpoints="file.write=kill")
        for site in SITES:
            self.running.wait_for_death(self.running.agents[site], "the task it got")
        self.ok("wait", "train", "--for=failed", "--timeout", "60s")
        self.assertEqual(self.running.fl("status", "train", "--exit-on-finish").returncode, 1)
        for site in SITES:
            self.running.start_agent(site)
        federation.until(lambda: self.ok("clients").count(" yes ") == len(SITES), "all are there")
        self.assertEqual(self.ok("retry", "train"), "job/train retried\n")
        # What was true before the retry is no answer.
        self.running.wait_succeeded()

    def test_a_job_from_submission_to_rollback(self):
        for site in SITES:
            self.running.start_agent(site)
        self.submit(federation.job(rounds=3))
        followed = self.ok("status", "train", "-w", "--exit-on-finish")
        self.assertIn("Succeeded round 3/3", followed.splitlines()[-1])
        self.assertIn("round 3", self.ok("logs", "train", "-f"))
        self.assertEqual([r["number"] for r in self.data("rounds", "train")["items"]], [1, 2, 3])
        for text in ("Conditions:", "Succeeded", "Spec:", "Events:"):
            self.assertIn(text, self.ok("describe", "train"))
        self.assertIn("Accepted:    3 rounds", self.ok("describe", "client", SITES[0]))
        self.assertEqual([c["metadata"]["name"] for c in self.data("clients")["items"]],
                         list(SITES))

        versions = self.data("models", "history", "tiny")["items"]
        self.assertEqual([v["version"] for v in versions], [3, 2, 1, 0])
        self.assertEqual(versions[0]["contributors"], 3)
        self.assertEqual(self.ok("rollback", "tiny"), "model/tiny rolled back: v3 -> v2 (pinned)\n")
        self.assertEqual(self.ok("rollback", "tiny", "--to-version", "2"),
                         "model/tiny is at v2 already; nothing changed\n")
        self.assertEqual(self.data("get", "model", "tiny")["status"]["currentVersion"], 2)
        # The registry is the aggregator's: who goes past it is told so.
        past = self.running.fl("rollback", "tiny", "--to-version", "1", "--registry",
                               self.running.registry)
        self.assertEqual(past.returncode, 1)
        self.assertIn("--aggregator", past.stderr)
        self.assertEqual(self.ok("rollback", "tiny", "--unpin"), "model/tiny unpinned: v2 -> v3\n")
        self.assertIn("model/tiny is intact: 4 versions",
                      self.ok("models", "verify", "tiny", "--registry", self.running.registry))
        self.assertNotEqual(
            self.running.fl("models", "export", "tiny", "-o", self.running.folder / "x").returncode,
            0)
        self.ok("models", "export", "tiny", "v3", "-o", self.running.folder / "v3.safetensors",
                "--state", self.running.folder / "state.safetensors",
                "--registry", self.running.registry)
        self.assertIn("ok    token: accepted", self.running.fl("doctor").stdout)

        # What the registry says afterwards, without the aggregator.
        self.running.kill(self.running.aggregator)
        self.assertIn("Succeeded", self.ok("list", "--registry", self.running.registry))
        self.assertEqual(self.running.fl("list").returncode, 2)

    def test_who_is_no_administrator_is_told(self):
        self.submit(federation.job(rounds=1))
        wrong = self.running.folder / "wrong.token"
        wrong.write_text("something else\n")
        done = self.running.fl("pause", "train", "--token-file", wrong)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--token-file", done.stderr)
        self.assertNotIn("Suspended", self.ok("list"))

    def test_the_tree_is_drawn_again_on_a_terminal(self):
        self.submit(federation.job(rounds=1))
        pid, terminal = pty.fork()
        if pid == 0:
            arguments = ["status", "train", "-w", "--exit-on-finish", "--insecure"]
            os.execve(harness.FL, [harness.FL, *arguments], harness.environment(
                TERM="xterm", LANG="C.UTF-8",
                FL_AGGREGATOR=f"http://127.0.0.1:{self.running.port}",
                FL_TOKEN_FILE=str(self.credentials / "admin.token")))
        for site in SITES:
            self.running.start_agent(site)
        text = b""
        try:
            while chunk := os.read(terminal, 65536):
                text += chunk
        except OSError:
            pass  # the other end is closed
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(code, 0, text.decode())
        self.assertRegex(text.decode(), r"\x1b\[\d+A\x1b\[J")
        self.assertIn("└─ ", text.decode())
        self.assertIn("✔", text.decode())


if __name__ == "__main__":
    unittest.main()
