"""Wrong messages to an aggregator cost their sender a 4xx, and never hurt the round."""

import base64
import hashlib
import http.client
import json
import math
import pathlib
import re
import tempfile
import unittest

import federation
import harness
from federation import SITES, Federation, until


class TokenTap(federation.CuttingProxy):
    """Cuts nothing; learns the session of the agent behind it (over plain HTTP)."""

    token = None

    def __init__(self, port):
        super().__init__(port, limit=0, cuts=0)

    def passed(self, data):
        found = re.search(rb"Authorization: Bearer (\S+)", data, re.IGNORECASE)
        if found:
            self.token = found[1].decode()


class MessagesTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fl-messages-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        clients = federation.make_credentials(self.folder)
        selection = {"policy": "Random", "clientsPerRound": 3, "quorum": 2, "seed": 7}
        self.objects = federation.write_objects(
            self.folder / "objects.yaml", federation.model(), *clients.values(),
            federation.job(rounds=2, selection=selection))

    def request(self, method, path, body=b"", **headers):
        """(status, JSON of the body); underscores in the names of headers are dashes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port,
                                                timeout=federation.LIMIT)
        self.addCleanup(connection.close)
        connection.request(method, path, body,
                           {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else {}

    def refused(self, status, method, path, body=b"", **headers):
        """The error of a request that must be refused with `status`."""
        got, answer = self.request(method, path, body, **headers)
        self.assertEqual(got, status, f"{method} {path}: {answer}")
        self.assertTrue(answer["error"]["message"], answer)
        return answer["error"]

    def test_wrong_messages_do_not_hurt_the_round(self):
        self.running = Federation(self.folder / "run", self.folder, insecure=True)
        self.addCleanup(self.running.__exit__)
        self.running.start_aggregator()
        self.running.submit(self.objects)
        tap = TokenTap(self.running.port)
        self.addCleanup(tap.close)
        # The agents stop at the first thing they write, until all has been said.
        gate = self.folder / "gate"
        for site in SITES:
            self.running.start_agent(site, failpoints=f"file.write=wait:{gate}",
                                     port=tap.port if site == "site-1" else None)
        until(lambda: self.running.journal_lines() >= 3, "the round has started",
              details=self.running.logs)
        until(lambda: tap.token, "the agent has a session", details=self.running.logs)
        self.everything_wrong(tap.token)
        gate.touch()
        self.running.wait_succeeded()
        shown = self.running.fl("rounds", "train", "-o", "json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        rounds = sorted(json.loads(shown.stdout)["items"], key=lambda each: each["number"])
        # Only the client that sent the NaN is out, and only of the round in which it did.
        self.assertEqual([(each["accepted"], each["rejected"]) for each in rounds],
                         [(2, 1), (3, 0)])
        (reason,) = [each["reason"] for each in rounds[0]["clients"] if each.get("reason")]
        self.assertIn("not finite", reason)

    def everything_wrong(self, token):
        own = "/v1/jobs/train/rounds/{}/updates/site-1"
        session = {"Authorization": f"Bearer {token}"}
        # Who may.
        self.refused(401, "GET", "/v1/agents/site-1/task")
        self.refused(401, "GET", "/v1/agents/site-1/task", Authorization="Bearer invented")
        self.refused(401, "PUT", own.format(1), b"x", Authorization="Bearer invented",
                     Fl_Samples="1")
        self.refused(403, "GET", "/v1/agents/site-2/task", **session)
        self.refused(403, "PUT", own.format(1).replace("site-1", "site-2"), b"x", **session,
                     Fl_Samples="1")
        for headers in ({}, {"Fl_Admin_Token": "wrong"}, session):
            status, answer = self.request("DELETE", "/v1/jobs/train", **headers)
            self.assertIn(status, (401, 403), answer)
        # When: the message says which round it is.
        for other in (0, 2, 99):
            late = self.refused(409, "PUT", own.format(other), b"x", **session, Fl_Samples="1")
            self.assertEqual(late["round"], 1)
        self.refused(404, "PUT", own.format(1).replace("train", "unknown"), b"x", **session,
                     Fl_Samples="1")
        # What.
        for body in (b"{", b"", b"[]", b'{"client": 1}', b"\xff\xfe", b"[" * 10_000):
            self.refused(400, "POST", "/v1/agents", body, Content_Type="application/json")
        self.refused(400, "PUT", own.format(1), b"x", **session)
        for samples in ("-1", "1.5", "many", "9" * 30):
            self.refused(400, "PUT", own.format(1), b"x", **session, Fl_Samples=samples)
        self.refused(400, "PUT", own.format("one"), b"x", **session, Fl_Samples="1")
        self.too_large("PUT", own.format(1), session)
        self.too_large("POST", "/v1/agents", {})
        # The body is another than was announced: nobody's fault, and no answer for the round.
        self.refused(400, "PUT", own.format(1), self.update(0.0), **session, Fl_Samples="1",
                     Repr_Digest=self.digest(b"another"))
        # The last word of this client in this round.
        bad = self.update(math.nan)
        self.refused(400, "PUT", own.format(1), bad, **session, Fl_Samples="1",
                     Repr_Digest=self.digest(bad))

    def too_large(self, method, path, headers):
        """Refused by its Content-Length, before a byte of the body is sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port,
                                                timeout=federation.LIMIT)
        self.addCleanup(connection.close)
        connection.putrequest(method, path)
        for name, value in {**headers, "Fl-Samples": "1", "Content-Length": str(1 << 50)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        self.assertEqual(answer.status, 413, answer.read(1000))

    def update(self, value):
        """Weights of the model with `value` in them."""
        dtype, shape = "F32", lambda *sizes: list(sizes)
        path = self.folder / "update.safetensors"
        harness.write_safetensors(path, {
            name: harness.tensor(dtype, shape(*sizes), [value] * math.prod(sizes))
            for name, sizes in {"layers.0.bias": (512,), "layers.0.weight": (512, 6),
                                "layers.1.bias": (3,), "layers.1.weight": (3, 512)}.items()})
        return path.read_bytes()

    @staticmethod
    def digest(data):
        return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


if __name__ == "__main__":
    unittest.main()
