"""fl in a terminal, in a pipe, with broken streams and signals."""

import errno
import json
import os
import pathlib
import pty
import resource
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import FL, BIN, environment, fl, tensor, write_safetensors


def in_terminal(*arguments, **changes):
    """Runs fl with a terminal for all its streams; returns (exit status, text)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(FL, [FL, *arguments], environment(**{"TERM": "xterm", **changes}))
    text = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError as error:  # the other end is closed
            if error.errno != errno.EIO:
                raise
            break
        if not chunk:
            break
        text += chunk
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode()


class StreamsTest(unittest.TestCase):
    def test_colours_only_on_a_terminal(self):
        self.assertNotIn("\033", fl("help").stdout)
        code, text = in_terminal("help")
        self.assertEqual(code, 0)
        self.assertIn("\033[1mUsage\033[0m", text)
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", in_terminal("help", **changes)[1])
        code, text = in_terminal("lits")
        self.assertEqual(code, 4)
        self.assertIn("\033[31mfl: error:\033[0m unknown command", text)
        self.assertIn("\033[31m", fl("inspect", "/no/such", "--color=always").stderr)
        self.assertNotIn("\033", in_terminal("inspect", "/no/such", "--color=never")[1])

    def test_data_and_talk_go_apart(self):
        done = fl("version", "-o", "json")
        self.assertEqual(json.loads(done.stdout)["apiVersion"], "kubefl.dev/v1alpha1")
        self.assertEqual(done.stderr, "")
        done = fl("list")
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertRegex(done.stderr, r"\Afl: error: .*\nhint: .*--aggregator.*--registry.*kubectl fl\n\Z")

    def test_a_reader_that_goes_is_no_error(self):
        # /bin/true reads nothing; the output is larger than a pipe holds.
        with tempfile.TemporaryDirectory() as folder:
            many = {f"t{i}": tensor("F32", [], [0]) for i in range(20000)}
            path = write_safetensors(pathlib.Path(folder) / "many.safetensors", many)
            done = subprocess.run(
                ["bash", "-c", 'set -o pipefail; "$0" inspect "$1" -o json | head -c 10', FL, path],
                capture_output=True, text=True, env=environment(), timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_full_disk_is_one(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([FL, "help"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=environment(), timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("fl: error: cannot write to standard output", done.stderr)

    def test_closed_streams_are_not_taken_by_files(self):
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key"
            done = subprocess.run(["bash", "-c", '"$0" keys generate --out "$1" >&- 2>&-', FL, key],
                                  env=environment(), timeout=60, check=False)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(key.read_text().endswith("-----END PRIVATE KEY-----\n"))

    def test_interrupted(self):
        # Nobody listens behind a port that accepts: the command waits, and Ctrl-C ends it.
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            child = subprocess.Popen([FL, "wait", "job", "--aggregator", url, "--insecure"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env=environment())
            connection = server.accept()[0]
            with connection:
                connection.recv(1)
                child.send_signal(signal.SIGINT)
                out, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, out), (130, ""))
        self.assertIn("fl: error: ", err)

    def test_daemons_run_in_place_of_fl(self):
        for verb, program in (("aggregator", "fl-aggregatord"), ("agent", "fl-agentd")):
            if not (BIN / program).exists():
                self.skipTest(f"{program} is not built")
            own = subprocess.run([BIN / program, "--help"], capture_output=True, text=True,
                                 timeout=60, check=False)
            self.assertEqual(fl(verb, "--help").stdout, own.stdout)

    def test_starts_quickly(self):
        # Completion runs the program at each key.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(fl("__complete", "").returncode, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertLess(used, 0.5)  # seconds of a processor, with sanitizers too; plainly 0.02


if __name__ == "__main__":
    unittest.main()
