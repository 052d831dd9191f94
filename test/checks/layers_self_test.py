#!/usr/bin/env python3
"""Tests of layers.py: a good tree passes, and each kind of fault is found where it is."""

import tempfile
import unittest
from pathlib import Path

from layers import LONGEST_FILE, Checker

GOOD = {
    "lib/CMakeLists.txt": "# fl_module(commented DEPS out)\n"
                          "fl_module(base LIBS OpenSSL::Crypto)\n"
                          "fl_module(tensor DEPS base LIBS x)\n"
                          "fl_module(wire DEPS base\n          LIBS y TEST_LIBS z)\n"
                          "fl_module(agent DEPS base tensor wire)\n",
    "lib/base/README.md": "base",
    "lib/base/status.h": '#pragma once\n#include <string>\n#include <openssl/evp.h>\n',
    "lib/base/testing/clock.h": '#pragma once\n#include <gmock/gmock.h>\n#include "base/status.h"\n',
    "lib/tensor/README.md": "tensor",
    "lib/tensor/file.h": '#pragma once\n#include <nlohmann/json_fwd.hpp>\n#include "base/status.h"\n',
    "lib/tensor/file.cc": '#include "tensor/file.h"\n#include <nlohmann/json.hpp>\n'
                          '#include "tensor/internal/map.h"\n',
    "lib/tensor/file_test.cc": '#include "tensor/file.h"\n#include "base/testing/clock.h"\n',
    "lib/tensor/internal/map.h": '#pragma once\n#include <boost/asio.hpp>\n',
    "lib/agent/README.md": "agent",
    "lib/agent/agent.h": '#pragma once\n#include "tensor/file.h"\n',
    "cmd/CMakeLists.txt": "fl_program(fl-agentd DEPS agent LIBS CLI11::CLI11)\n",
    "cmd/fl-agentd/main.cc": '#include <CLI/CLI.hpp>\n#include "agent/agent.h"\n'
                             '#include "base/status.h"\n',
    "test/fuzz/CMakeLists.txt": "file(GLOB tests *_test.cc)\n",
    "test/fuzz/corpus_test.cc": '#include "agent/agent.h"\n#include "helper.h"\n',
}

# What is added to the good tree (None: removed), and what must be found, as PATH:LINE: words.
FAULTS = {
    "a sibling": ({"lib/tensor/file.h": '#pragma once\n#include "wire/task.h"\n',
                   "lib/wire/README.md": "", "lib/wire/task.h": "#pragma once\n"},
                  "lib/tensor/file.h:2: tensor may not include wire"),
    "a higher layer": ({"lib/base/status.cc": '\n#  include "tensor/file.h"\n'},
                       "lib/base/status.cc:2: base may not include tensor"),
    "a higher layer from a test": ({"lib/base/status_test.cc": '#include "tensor/file.h"\n'},
                                   "lib/base/status_test.cc:1: base may not include tensor"),
    "a program past its modules": (
        {"cmd/CMakeLists.txt": "fl_program(fl-agentd DEPS tensor)\n"},
        "cmd/fl-agentd/main.cc:2: fl-agentd may not include agent"),
    "a cycle": ({"lib/CMakeLists.txt": GOOD["lib/CMakeLists.txt"].replace(
        "fl_module(base ", "fl_module(base DEPS tensor ")},
        "lib/CMakeLists.txt:2: base depends on tensor, which stands later"),
    "a dependency on itself": ({"lib/CMakeLists.txt": GOOD["lib/CMakeLists.txt"].replace(
        "fl_module(base ", "fl_module(base DEPS base ")}, "base depends on itself"),
    "an unknown dependency": ({"lib/CMakeLists.txt": GOOD["lib/CMakeLists.txt"].replace(
        "DEPS base tensor wire", "DEPS base tensor wire nothing")}, "nothing, which is no module"),
    "no table": ({"lib/CMakeLists.txt": ""}, "no layer table"),
    "a folder that is no module": ({"lib/stray/x.cc": ""}, "lib/stray:1: no fl_module(stray"),
    "a program that is not declared": ({"cmd/extra/main.cc": ""}, "cmd/extra:1: no fl_program"),
    "a module without README": ({"lib/agent/README.md": None}, "lib/agent:1: a module without"),
    "a long file": ({"lib/base/long.cc": "\n" * (LONGEST_FILE + 1)},
                    f"lib/base/long.cc:{LONGEST_FILE + 1}:"),
    "a long script": ({"test/long.sh": "#\n" * (LONGEST_FILE + 1)}, "test/long.sh:"),
    "a heavy header in a public one": (
        {"lib/tensor/file.h": "#pragma once\n#include <Eigen/Core>\n"},
        "lib/tensor/file.h:2: Eigen/Core is a heavy header"),
    "nlohmann in a public header": (
        {"lib/tensor/file.h": "#pragma once\n#include <nlohmann/json.hpp>\n"}, "heavy header"),
    "a heavy header in a fake": (
        {"lib/base/testing/clock.h": "#pragma once\n#include <boost/asio.hpp>\n"}, "heavy header"),
    "no pragma once": ({"lib/tensor/file.h": "int x;\n"}, "lib/tensor/file.h:1: a header without"),
    "a header that is not there": ({"lib/agent/agent.h": '#pragma once\n#include "base/gone.h"\n'},
                                   "lib/agent/agent.h:2: there is no lib/base/gone.h"),
    "a path from nowhere": ({"lib/agent/agent.h": '#pragma once\n#include "local.h"\n'},
                            'lib/agent/agent.h:2: "local.h" does not begin with a module'),
    "ours as a system header": ({"lib/agent/agent.h": "#pragma once\n#include <base/status.h>\n"},
                                "lib/agent/agent.h:2: <base/status.h> is ours"),
    "another's internals": ({"lib/agent/agent.cc": '#include "tensor/internal/map.h"\n'},
                            "is internal to tensor"),
    "a fake in the product": ({"lib/agent/agent.cc": '#include "base/testing/clock.h"\n'},
                              "is for tests only"),
    "a test in no module": ({"lib/stray_test.cc": ""}, "lib/stray_test.cc:1: a test outside"),
    "a test among fakes": ({"lib/base/testing/clock_test.cc": ""}, "a test in testing/"),
    "a test that nothing builds": ({"test/other/lost_test.cc": ""},
                                   "test/other/lost_test.cc:1: no CMakeLists.txt builds"),
    "a test beside a program": ({"cmd/fl-agentd/main_test.cc": ""},
                                "no CMakeLists.txt builds this test"),
}


def findings_for(files: dict[str, str | None]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, content in files.items():
            if content is None:
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return Checker(root).run()


class LayersTest(unittest.TestCase):
    def test_good_tree_passes(self):
        self.assertEqual(findings_for(GOOD), [])

    def test_each_fault_is_found(self):
        for name, (change, expected) in FAULTS.items():
            with self.subTest(name):
                findings = findings_for({**GOOD, **change})
                self.assertTrue(any(expected in finding for finding in findings),
                                f"{expected!r} is not among {findings}")


if __name__ == "__main__":
    unittest.main()
