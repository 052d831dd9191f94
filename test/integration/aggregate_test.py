"""`fl aggregate` and `fl inspect` as programs: numbers from the trouble cases, exit codes, files."""

import hashlib
import itertools
import json
import math
import pathlib
import struct
import tempfile
import unittest

from harness import fl, read_safetensors, tensor, write_safetensors


class AggregateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out.safetensors"

    def f32(self, name, values, tensor_name="w"):
        return write_safetensors(self.folder / f"{name}.safetensors",
                                 {tensor_name: tensor("F32", [len(values)], values)})

    def aggregate(self, *arguments, updates=()):
        flags = list(itertools.chain.from_iterable(("--update", u) for u in updates))
        return fl("aggregate", *arguments, *flags, "-o", self.out, "--report", "-")

    def mean_of(self, *updates, arguments=()):
        done = self.aggregate(*arguments, updates=updates)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_safetensors(self.out)["w"][2], json.loads(done.stdout)

    # B01: nobody has samples; one has none; a negative count.
    def test_b01_all_zero_weight_fails_and_leaves_the_model(self):
        a, b = self.f32("a", [1, 2]), self.f32("b", [3, 4])
        self.out.write_bytes(b"the model before")
        done = self.aggregate(updates=[f"{a},weight=0", f"{b},weight=0"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("fl: error: ", done.stderr)
        self.assertEqual(self.out.read_bytes(), b"the model before")

    def test_b01_weight_zero_contributes_nothing(self):
        a, b = self.f32("a", [1, 2]), self.f32("b", [3, 4])
        values, report = self.mean_of(f"{a},weight=0", f"{b},weight=10")
        self.assertEqual(values, [3, 4])
        self.assertEqual(report["accepted"],
                         [{"client": "a", "weight": 0}, {"client": "b", "weight": 10}])

    def test_b01_impossible_weights_are_rejected_by_client(self):
        a, b = self.f32("a", [1, 2]), self.f32("b", [3, 4])
        for weight in ("-5", "nan", "inf", "-inf", "1e300"):
            with self.subTest(weight=weight):
                values, report = self.mean_of(f"{a},weight={weight},client=x", f"{b},weight=10")
                self.assertEqual(values, [3, 4])
                self.assertEqual([r["client"] for r in report["rejected"]], ["x"])
                self.assertIn("weight", report["rejected"][0]["reason"])

    def test_b01_only_a_negative_count_leaves_nothing(self):
        a = self.f32("a", [1, 2])
        done = self.aggregate(updates=[f"{a},weight=-5"])
        self.assertEqual(done.returncode, 1)
        self.assertFalse(self.out.exists())
        self.assertEqual(json.loads(done.stdout)["accepted"], [])
        self.assertIn('client "a"', done.stderr)

    def test_b01_nan_never_in_a_stored_model(self):
        a, b = self.f32("a", [1, math.nan]), self.f32("b", [3, 4])
        values, report = self.mean_of(f"{a},weight=0", f"{b},weight=10")
        self.assertEqual(values, [3, 4])
        self.assertEqual(report["rejected"][0]["tensor"], "w")
        done = self.aggregate(updates=[f"{a},weight=5"])
        self.assertEqual(done.returncode, 1)

    # B04: half precision does not overflow on the way and is rounded once.
    def test_b04_half_precision(self):
        def half(name, value):
            return write_safetensors(self.folder / f"{name}.safetensors",
                                     {"w": tensor("F16", [1], [value])})
        for values, weights, expected in (((60000, 60000), (100, 100), bytes.fromhex("537b")),
                                          ((40000, 50000), (1, 1), bytes.fromhex("7e79"))):
            a, b = half("a", values[0]), half("b", values[1])
            (mean,), _ = self.mean_of(f"{a},weight={weights[0]}", f"{b},weight={weights[1]}")
            self.assertEqual(struct.pack("<e", mean), expected)

    # B09: server Adam steps with its momentum; Yogi's second moment.
    def server_step(self, algorithm, x, trained, *parameters):
        model, update = self.f32("model", [x]), self.f32("u", [trained])
        flags = [f for p in parameters for f in ("--param", p)]
        state = self.folder / f"{algorithm}-state.safetensors"
        (value,), report = self.mean_of(
            f"{update},weight=1", arguments=["--algorithm", algorithm, "--global", model,
                                             "--state", state, *flags])
        self.assertEqual(report["state"]["digest"],
                         "sha256:" + hashlib.sha256(state.read_bytes()).hexdigest())
        return value

    def test_b09_adam(self):
        common = ("serverLearningRate=0.1", "beta1=0.9", "beta2=0.99", "tau=0.001",
                  "initialAccumulator=0")
        self.assertAlmostEqual(self.server_step("FedAdam", 1, 1.5, *common), 1.0980392157, 6)
        (self.folder / "FedAdam-state.safetensors").unlink()
        self.assertAlmostEqual(
            self.server_step("FedAdam", 1, 1.5, *common, "biasCorrection=true"), 1.0998003992, 6)

    def test_b09_yogi(self):
        for start, second_moment in ((1, 0.9975), (0.04, 0.0425)):
            with self.subTest(start=start):
                value = self.server_step("FedYogi", 1, 1.5, "serverLearningRate=0.1", "beta1=0.9",
                                         "beta2=0.99", "tau=0.001", f"initialAccumulator={start}")
                expected = 1 + 0.1 * 0.05 / (math.sqrt(second_moment) + 0.001)
                self.assertAlmostEqual(value, expected, 6)
                (self.folder / "FedYogi-state.safetensors").unlink()

    def test_b09_state_is_read_the_second_time(self):
        parameters = ("serverLearningRate=1", "serverMomentum=0.5")
        self.assertEqual(self.server_step("FedAvgM", 0, 1, *parameters), 1)
        self.assertEqual(self.server_step("FedAvgM", 0, 1, *parameters), 1.5)

    # FedNova: clients that did more steps do not pull harder.
    def test_fednova_divides_by_steps(self):
        model, a, b = self.f32("m", [0]), self.f32("a", [4]), self.f32("b", [2])
        arguments = ["--algorithm", "FedNova", "--global", model]
        (value,), _ = self.mean_of(f"{a},weight=1,steps=4", f"{b},weight=1,steps=2",
                                   arguments=arguments)
        self.assertEqual(value, 3)  # effective steps 3, each of them 1
        done = self.aggregate(*arguments, updates=[f"{a},weight=1"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("steps", done.stderr)

    # B31 and its kind for updates: refused by client and tensor.
    def test_other_tensors_are_rejected_by_client_and_tensor(self):
        model = self.f32("m", [0, 0])
        good = self.f32("good", [1, 2])
        bad = {
            "shape": self.f32("shape", [1, 2, 3]),
            "missing": self.f32("missing", [1, 2], tensor_name="v"),
            "dtype": write_safetensors(self.folder / "dtype.safetensors",
                                       {"w": tensor("F64", [2], [1, 2])}),
            "extra": write_safetensors(self.folder / "extra.safetensors",
                                       {"w": tensor("F32", [2], [1, 2]),
                                        "z": tensor("F32", [1], [1])}),
            "inf": self.f32("inf", [math.inf, 2]),
        }
        values, report = self.mean_of(f"{good},weight=1", *(f"{p},weight=1" for p in bad.values()),
                                      arguments=["--global", model])
        self.assertEqual(values, [1, 2])
        self.assertEqual({r["client"]: r["tensor"] for r in report["rejected"]},
                         {"shape": "w", "missing": "w", "dtype": "w", "extra": "z", "inf": "w"})

    def test_majority_is_the_reference_and_a_tie_is_none(self):
        a, b, c = self.f32("a", [1, 1]), self.f32("b", [3, 3]), self.f32("c", [1, 2, 3])
        values, report = self.mean_of(*(f"{p},weight=1" for p in (a, b, c)))
        self.assertEqual(values, [2, 2])
        self.assertEqual([r["client"] for r in report["rejected"]], ["c"])
        self.out.unlink()
        done = self.aggregate(updates=[f"{a},weight=1", f"{c},weight=1"])
        self.assertEqual(done.returncode, 4)
        self.assertFalse(self.out.exists())

    def test_same_bits_in_any_order_and_with_any_threads(self):
        updates = [f"{self.f32(f'c{i}', [0.1 * i * j + 1e-7 for j in range(5000)])},weight={i + 1}"
                   for i in range(5)]
        digests = set()
        for order in itertools.islice(itertools.permutations(updates), 0, 120, 17):
            for threads in (1, 2, 7):
                self.mean_of(*order, arguments=["--threads", threads])
                digests.add(hashlib.sha256(self.out.read_bytes()).hexdigest())
        self.assertEqual(len(digests), 1)

    def test_integers_get_the_exact_mean(self):
        def whole(name, value):
            return write_safetensors(self.folder / f"{name}.safetensors",
                                     {"w": tensor("I64", [], [value])})
        big = 2**62
        (value,), _ = self.mean_of(f"{whole('a', big + 1)},weight=1", f"{whole('b', big + 3)},weight=1")
        self.assertEqual(value, big + 2)

    # B30: scalars and empty tensors.
    def test_b30_scalar_and_empty_tensor(self):
        path = self.folder / "b30.safetensors"
        header = (b'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},'
                  b'"e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]}}')
        path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", 1.5))
        self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(),
                         "22f028af94923d8a761ec950cbfa04d9a85c82819db19996928f18aafdb9f58f")
        done = self.aggregate(updates=[f"{path},weight=3"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_safetensors(self.out),
                         {"a": ("F32", [], [1.5]), "e": ("F32", [0, 3], [])})
        shown = json.loads(fl("inspect", path, "-o", "json").stdout)
        self.assertEqual([t["shape"] for t in shown["tensors"]], [[], [0, 3]])

    def test_bad_usage_and_files_exit_four(self):
        a = self.f32("a", [1, 2])
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(b"\x00" * 7)
        cases = {
            "weight missing": ["--update", a],
            "weight no number": ["--update", f"{a},weight=many"],
            "unknown option": ["--update", f"{a},weight=1,colour=red"],
            "given twice": ["--update", f"{a},weight=1,weight=2"],
            "no file": ["--update", f"{self.folder}/none,weight=1"],
            "malformed file": ["--update", f"{broken},weight=1"],
            "a folder": ["--update", f"{self.folder},weight=1"],
            "unknown algorithm": ["--algorithm", "FedMagic", "--update", f"{a},weight=1"],
            "unknown parameter": ["--param", "learningRate=1", "--update", f"{a},weight=1"],
            "parameter twice": ["--param", "serverLearningRate=1", "--param",
                                "serverLearningRate=1", "--update", f"{a},weight=1"],
            "parameter no number": ["--param", "serverLearningRate=.nan", "--update",
                                    f"{a},weight=1"],
            "trusted not offered": ["--trusted", a, "--update", f"{a},weight=1"],
            "global missing": ["--algorithm", "FedAdam", "--update", f"{a},weight=1"],
            "one client twice": ["--update", f"{a},weight=1,client=x", "--update",
                                 f"{a},weight=1,client=x"],
            "no threads": ["--threads", "0", "--update", f"{a},weight=1"],
            "nothing": [],
        }
        for name, arguments in cases.items():
            with self.subTest(name):
                done = fl("aggregate", *arguments, "-o", self.out)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertTrue(done.stderr.startswith("fl: error: "), done.stderr)
                self.assertFalse(self.out.exists())
        trusted = fl("aggregate", "--trusted", a, "--update", f"{a},weight=1", "-o", self.out)
        self.assertIn("not offered by FedAvg", trusted.stderr)

    def test_a_file_name_may_hold_commas(self):
        path = write_safetensors(self.folder / "a,b=c,d.safetensors",
                                 {"w": tensor("F32", [1], [7])})
        done = self.aggregate(updates=[f"{path},weight=1"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_files_of_one_name_are_told_apart_by_their_path(self):
        for folder in ("x", "y"):
            (self.folder / folder).mkdir()
        a, b = self.f32("x/update", [1]), self.f32("y/update", [3])
        values, report = self.mean_of(f"{a},weight=1", f"{b},weight=1")
        self.assertEqual(values, [2])
        self.assertEqual([u["client"] for u in report["accepted"]], [a, b])

    def test_inspect_counts_what_is_not_finite(self):
        path = self.f32("a", [1, math.nan, math.inf, -math.inf])
        shown = json.loads(fl("inspect", path, "-o", "json").stdout)
        self.assertEqual(shown["nonFinite"], 3)
        self.assertEqual(shown["digest"],
                         "sha256:" + hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest())
        self.assertEqual(shown["tensors"], [{"name": "w", "dtype": "F32", "shape": [4],
                                             "elements": 4, "bytes": 16, "nonFinite": 3}])

    # B29: what a header may not be, and what it may.
    def test_b29_inspect_says_what_is_wrong(self):
        def inspect(header, data=b""):
            path = self.folder / "x.safetensors"
            path.write_bytes(struct.pack("<Q", len(header)) + header + data)
            return fl("inspect", path, "-o", "json")
        entry = b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
        twice = inspect(b"{" + entry + b"," + entry + b"}")
        self.assertEqual(twice.returncode, 4)
        self.assertIn('"a"', twice.stderr)
        number = inspect(b'{"__metadata__":{"n":1}}')
        self.assertEqual(number.returncode, 4)
        self.assertIn("string", number.stderr)
        only = inspect(b'{"__metadata__":{"k":"v"} }')
        self.assertEqual(json.loads(only.stdout)["metadata"], {"k": "v"})
        self.assertEqual(inspect(b'{"__metadata__":{}}').returncode, 0)


if __name__ == "__main__":
    unittest.main()
