"""A small federation for the integration tests: real daemons, real files, tiny data.

Everything is in the folder given. Nothing here sleeps but to look again whether something became
true, and only processes that were started here are killed.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import harness

SITES = ("site-1", "site-2", "site-3")
LIMIT = float(os.environ.get("FL_TEST_PATIENCE", "60"))  # seconds until a condition counts as false


def until(condition, what, limit=LIMIT, details=lambda: ""):
    """Waits for condition() to be true and returns what it returned."""
    deadline = time.monotonic() + limit
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit:g} s: {what}\n{details()}")
        time.sleep(0.002)


def write_data(folder, seed=1, rows=40):
    """SITE.csv for each site: 6 features that tell 3 classes apart, with noise."""
    rng = random.Random(seed)
    for site in SITES:
        lines = [",".join(f"x{i}" for i in range(6)) + ",label"]
        for _ in range(rows):
            label = rng.randrange(3)
            features = (rng.gauss(2.0 if i % 3 == label else 0.0, 1.0) for i in range(6))
            lines.append(",".join(f"{x:.4f}" for x in features) + f",{label}")
        (folder / f"{site}.csv").write_text("\n".join(lines) + "\n")


def model(hidden=512):
    # Optimiser state and a body of some 20 kB, so that both are there to be lost.
    return {"apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedModel",
            "metadata": {"name": "tiny"},
            "spec": {"initial": {"builtin": {"architecture": "mlp", "layers": [6, hidden, 3],
                                             "seed": 1}}}}


def client(name, dataset, public_key=None):
    """Without a key it is one for `fl run`, which makes the keys itself."""
    spec = {"type": "Agent", "dataset": {"uri": dataset}}
    if public_key is not None:
        spec["publicKey"] = public_key
    return {"apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedClient",
            "metadata": {"name": name}, "spec": spec}


def job(name="train", rounds=6, **changes):
    """A job on all three sites; members of changes replace those of the spec."""
    spec = {"modelRef": {"name": "tiny"}, "rounds": rounds,
            "trainer": {"builtin": "mlp",
                        "config": {"learningRate": 0.05, "localEpochs": 2, "batchSize": 10}},
            "selection": {"policy": "Random", "clientsPerRound": 3, "quorum": 3, "seed": 7},
            "roundPolicy": {"deadlineSeconds": 300},
            "aggregation": {"algorithm": "FedAdam"}}
    spec.update(changes)
    return {"apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedLearningJob",
            "metadata": {"name": name}, "spec": spec}


def make_credentials(folder):
    """Data, keys and a token for a federation over plain HTTP; returns {site: its client}."""
    write_data(folder)
    (folder / "admin.token").write_text("the administrators' token\n")
    (folder / "keys").mkdir()
    clients = {}
    for site in SITES:
        made = harness.fl("keys", "generate", "--type", "ed25519", "--out",
                          folder / "keys" / f"{site}.key")
        assert made.returncode == 0, made.stderr
        clients[site] = client(site, f"file:{site}.csv", made.stdout.strip())
    return clients


def write_objects(path, *objects):
    """JSON documents are YAML documents."""
    path.write_text("\n---\n".join(json.dumps(each) for each in objects) + "\n")
    return path


class Layout:
    """The registry of one model, read as any OCI tool would."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def _blob(self, descriptor):
        algorithm, _, digits = descriptor["digest"].partition(":")
        return (self.folder / "blobs" / algorithm / digits).read_bytes()

    def _tags(self):
        index = json.loads((self.folder / "index.json").read_text())
        name = "org.opencontainers.image.ref.name"
        return {each["annotations"][name]: each for each in index["manifests"]}

    def versions(self):
        """[[digest of each layer] of each version]: weights, and the optimiser's state."""
        tags = self._tags()
        numbers = sorted(int(tag[1:]) for tag in tags if tag[1:].isdigit())
        assert numbers == list(range(len(numbers))), f"versions are not dense: {numbers}"
        manifests = (json.loads(self._blob(tags[f"v{number}"])) for number in numbers)
        return [[layer["digest"] for layer in manifest["layers"]] for manifest in manifests]

    def published(self):
        """Numbers of the versions that the records say were published, in that order."""
        manifest = json.loads(self._blob(self._tags()["records"]))
        lines = b"".join(self._blob(layer) for layer in manifest["layers"]).splitlines()
        records = map(json.loads, lines)
        return [each["data"]["version"] for each in records if each["type"] == "published"]


class Federation:
    """Daemons started one by one, with keys and certificates of an earlier `fl run`."""

    def __init__(self, folder, credentials, insecure=False):
        self.folder = pathlib.Path(folder)
        self.credentials = credentials
        self.scheme = "http" if insecure else "https"
        self.state = self.folder / "state"
        self.registry = self.folder / "registry"
        self.port = 0
        self.aggregator = None
        self.agents = {}
        self.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for process in [self.aggregator, *self.agents.values()]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    @property
    def journal(self):
        return self.state / "jobs" / "train" / "journal.jsonl"

    def _start(self, name, arguments, failpoints):
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(list(map(str, arguments)), stdout=log, stderr=log,
                                    stdin=subprocess.DEVNULL, cwd=self.folder,
                                    env=harness.environment(FL_FAILPOINTS=failpoints))

    def start_aggregator(self, failpoints=""):
        """Starts it, the second time on the port of the first, and waits until it serves."""
        port_file = self.folder / "port.json"
        port_file.unlink(missing_ok=True)
        self.aggregator = self._start("aggregator", [
            harness.BIN / "fl-aggregatord", "--state-dir", self.state, "--registry", self.registry,
            "--listen", f"127.0.0.1:{self.port}", "--port-file", port_file,
            "--admin-token-file", self.credentials / "admin.token", *self._tls()], failpoints)
        until(lambda: port_file.exists() or self.aggregator.poll() is not None,
              "the aggregator serves", details=self.logs)
        if port_file.exists():
            self.port = json.loads(port_file.read_text())["port"]

    def _tls(self):
        if self.scheme == "http":
            return ["--insecure"]
        return ["--tls-cert", self.credentials / "server.crt",
                "--tls-key", self.credentials / "server.key"]

    def start_agent(self, site, failpoints="", port=None, work=None, trainers=None):
        """The agent of a site; another one of the same site needs another name, `work`."""
        name = work or site
        config = self.folder / f"{name}.yaml"
        config.write_text(json.dumps({
            "aggregator": f"{self.scheme}://127.0.0.1:{port or self.port}",
            **({"insecure": True} if self.scheme == "http" else
               {"caFile": str(self.credentials / "ca.crt")}),
            "workDir": str(self.folder / "work" / name),
            **({"trainers": trainers} if trainers else {}),
            "client": site,
            "keyFile": str(self.credentials / "keys" / f"{site}.key"),
            "dataset": f"file://{self.credentials / site}.csv"}))
        agent = self._start(name, [harness.BIN / "fl-agentd", "--config", config], failpoints)
        self.agents[name] = agent
        return agent

    def fl(self, *arguments):
        trust = (["--insecure"] if self.scheme == "http" else
                 ["--ca-file", self.credentials / "ca.crt"])
        return harness.fl(*arguments, *trust,
                          FL_AGGREGATOR=f"{self.scheme}://127.0.0.1:{self.port}",
                          FL_TOKEN_FILE=str(self.credentials / "admin.token"))

    def submit(self, objects):
        done = self.fl("submit", "-f", objects)
        assert done.returncode == 0, done.stderr + self.logs()

    def kill(self, process):
        process.kill()
        return process.wait(LIMIT)

    def wait_for_death(self, process, what):
        """Until a failpoint has killed it."""
        until(lambda: process.poll() is not None, f"{what} kills it", details=self.logs)
        assert process.returncode == -signal.SIGKILL, \
            f"{what}: ended with {process.returncode}\n{self.logs()}"

    def wait_succeeded(self, name="train"):
        done = self.fl("wait", name, "--for", "succeeded", "--timeout", f"{LIMIT:g}s")
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.logs()}"

    def journal_lines(self):
        with contextlib.suppress(FileNotFoundError):
            return self.journal.read_bytes().count(b"\n")
        return 0

    def logs(self):
        """The last lines of each log, for a failure's message."""
        return "\n".join(f"== {path.name}\n" + "\n".join(path.read_text().splitlines()[-8:])
                         for path in sorted(self.folder.glob("*.log")))


def mount_small(folder, size):
    """Mounts an empty disk of `size` bytes for this process and its children; False if forbidden."""
    clone_newns, ms_rec, ms_private = 0x00020000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir(parents=True)
    return (libc.unshare(clone_newns) == 0 and
            libc.mount(None, b"/", None, ctypes.c_ulong(ms_rec | ms_private), None) == 0 and
            libc.mount(b"small", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0),
                       f"size={size}".encode()) == 0)


def fill(path):
    """Writes until the disk is full."""
    with open(path, "ab", buffering=0) as ballast:
        for size in (1 << 16, 1):
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(b"x" * size)


class CuttingProxy:
    """Forwards TCP to a port, and resets the first `cuts` connections that sent `limit` bytes.

    Without `answers` nothing comes back: connections are reset once there is an answer.
    """

    def __init__(self, port, limit, cuts, answers=True):
        self._answers = answers
        self._target = port
        self._limit = limit
        self._lock = threading.Lock()
        self._cuts_left = cuts
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def passed(self, data):
        """Sees what is forwarded."""

    def _accept(self):
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                source, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(source,), daemon=True).start()

    def _serve(self, source):
        with source, contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self._target)) as target:
                back = threading.Thread(target=self._forward if self._answers else self._drop,
                                        args=(target, source), daemon=True)
                back.start()
                if self._forward(source, target, self._limit):
                    self._reset(source)
                    self._reset(target)
                back.join()

    @staticmethod
    def _reset(end):
        """Closes with a reset, as when something on the way has lost its memory."""
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)  # wakes who waits on it in another thread
        end.close()

    def _drop(self, source, target):
        with contextlib.suppress(OSError):
            source.recv(1)
            self._reset(target)

    def _forward(self, source, target, limit=None):
        """True where the connection is to be cut."""
        sent = 0
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                self.passed(data)
                if limit is not None and sent + len(data) > limit and self._may_cut():
                    target.sendall(data[:max(0, limit - sent)])
                    return True
                target.sendall(data)
                sent += len(data)
            target.shutdown(socket.SHUT_WR)
        return False

    def _may_cut(self):
        with self._lock:
            if self._cuts_left == 0:
                return False
            self._cuts_left -= 1
            self.cuts += 1
            return True
