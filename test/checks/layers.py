#!/usr/bin/env python3
"""Holds the source tree to its layers.

The table is what lib/CMakeLists.txt says: `fl_module(NAME DEPS lower modules…)`, lowest layer first.
Each finding is a line `PATH:LINE: what is wrong`; any finding makes the exit status 1.

    layers.py [ROOT]        ROOT is the project's folder; by default the one this file is in
"""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

LONGEST_FILE = 600
SOURCE_SUFFIXES = {".h", ".cc", ".inc", ".py", ".sh", ".cmake"}
SOURCE_FOLDERS = ("lib", "cmd", "test", "plugins", "packaging")
# Third-party headers that cost seconds each: only in .cc files and in internal/ headers.
HEAVY = re.compile(
    r"(boost/|spdlog/|CLI/|Eigen/|eigen3/|yaml-cpp/|curl/|nlohmann/json\.hpp$|prometheus/)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CALL = re.compile(r"^[ \t]*(fl_module|fl_program)\(([^)]*)\)", re.MULTILINE)
KEYWORDS = {"DEPS", "LIBS", "TEST_LIBS"}
# Folders that hold no source of ours.
SKIPPED = {"build", "__pycache__", ".venv", "node_modules"}


@dataclass
class Declared:
    """One fl_module or fl_program call."""

    line: int
    deps: list[str] = field(default_factory=list)


def declared(path: Path, function: str) -> dict[str, Declared]:
    """The calls of `function` in the CMake file `path`, by name, in order."""
    found: dict[str, Declared] = {}
    if not path.exists():
        return found
    text = re.sub(r"#[^\n]*", "", path.read_text())
    for match in CALL.finditer(text):
        if match.group(1) != function:
            continue
        name, *words = match.group(2).split()
        entry = Declared(line=text.count("\n", 0, match.start()) + 1)
        keyword = ""
        for word in words:
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPS":
                entry.deps.append(word)
        found[name] = entry
    return found


class Checker:
    def __init__(self, root: Path):
        self.root = root
        self.findings: list[str] = []
        self.modules = declared(root / "lib/CMakeLists.txt", "fl_module")
        self.programs = declared(root / "cmd/CMakeLists.txt", "fl_program")

    def report(self, path: Path, line: int, what: str) -> None:
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {what}")

    def run(self) -> list[str]:
        self.check_table()
        for path in self.sources():
            self.check_length(path)
            if path.suffix in {".h", ".cc", ".inc"}:
                self.check_includes(path)
            if path.suffix == ".h" and "#pragma once" not in path.read_text():
                self.report(path, 1, "a header without #pragma once")
            if path.name.endswith("_test.cc"):
                self.check_test_is_built(path)
        return self.findings

    def sources(self) -> list[Path]:
        found = []
        for folder in SOURCE_FOLDERS:
            for path in (self.root / folder).rglob("*"):
                parts = path.relative_to(self.root).parts
                if path.suffix in SOURCE_SUFFIXES and path.is_file() and not SKIPPED & set(parts):
                    found.append(path)
        return sorted(found)

    def check_table(self) -> None:
        """Modules come after what they stand on, so that there can be no cycle."""
        table = self.root / "lib/CMakeLists.txt"
        if not self.modules:
            self.report(table, 1, "no fl_module(…) found: there is no layer table to check")
        seen: set[str] = set()
        for name, entry in self.modules.items():
            for dep in entry.deps:
                if dep == name:
                    self.report(table, entry.line, f"{name} depends on itself")
                elif dep not in self.modules:
                    self.report(table, entry.line, f"{name} depends on {dep}, which is no module")
                elif dep not in seen:
                    self.report(table, entry.line,
                                f"{name} depends on {dep}, which stands later in the table: "
                                "lower layers come first, and there are no cycles")
            seen.add(name)
        for name, entry in self.programs.items():
            for dep in entry.deps:
                if dep not in self.modules:
                    self.report(self.root / "cmd/CMakeLists.txt", entry.line,
                                f"{name} depends on {dep}, which is no module")
        self.check_folders("lib", self.modules, "fl_module")
        self.check_folders("cmd", self.programs, "fl_program")
        for module in self.modules:
            folder = self.root / "lib" / module
            if folder.is_dir() and not (folder / "README.md").exists():
                self.report(folder, 1, "a module without a README.md (what belongs there, what not)")

    def check_folders(self, top: str, known: dict[str, Declared], function: str) -> None:
        for folder in sorted((self.root / top).glob("*/")):
            if folder.is_dir() and folder.name not in known and folder.name not in SKIPPED:
                self.report(folder, 1, f"no {function}({folder.name} …) in {top}/CMakeLists.txt: "
                            "nothing here is built")

    def check_length(self, path: Path) -> None:
        lines = len(path.read_text().splitlines())
        if lines > LONGEST_FILE:
            self.report(path, lines, f"{lines} lines, more than {LONGEST_FILE}: "
                        "which part of it can stand in a file of its own?")

    def allowed(self, path: Path) -> tuple[str, set[str]]:
        """Who `path` belongs to, and the modules that it may include."""
        parts = path.relative_to(self.root).parts
        if parts[0] == "lib" and len(parts) > 2:
            entry = self.modules.get(parts[1], Declared(0))
            return parts[1], {parts[1], *entry.deps}
        if parts[0] == "cmd" and len(parts) > 2:
            entry = self.programs.get(parts[1], Declared(0))
            reached: set[str] = set()
            waiting = list(entry.deps)
            while waiting:
                module = waiting.pop()
                if module not in reached and module in self.modules:
                    reached.add(module)
                    waiting += self.modules[module].deps
            return parts[1], reached
        return "", set(self.modules)  # tests may use every module

    def check_includes(self, path: Path) -> None:
        owner, allowed = self.allowed(path)
        parts = path.relative_to(self.root).parts
        in_product = parts[0] in ("lib", "cmd")
        in_test = parts[0] == "test" or path.name.endswith("_test.cc") or "testing" in parts
        public_header = parts[0] == "lib" and path.suffix == ".h" and "internal" not in parts
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            module = name.split("/")[0]
            if public_header and HEAVY.match(name):
                self.report(path, number, f"{name} is a heavy header: include it in a .cc file, or in "
                            "an internal/ header, and keep public headers light")
            ours = module in self.modules and "/" in name
            if quote == "<":
                if ours and (self.root / "lib" / name).exists():
                    self.report(path, number, f'<{name}> is ours: write "{name}"')
                continue
            if not ours:
                if in_product:
                    self.report(path, number, f'"{name}" does not begin with a module of lib/; '
                                "headers that are not ours stand in <>")
                continue
            if not (self.root / "lib" / name).exists():
                self.report(path, number, f'there is no lib/{name}')
            if module not in allowed:
                may = ", ".join(sorted(allowed - {owner})) or "no other module"
                self.report(path, number, f'{owner} may not include {module} ("{name}"): '
                            f"its layer stands on {may}")
            # A fuzz target may reach for the part that it feeds.
            fuzz = "test/fuzz/" in Path(path).as_posix()
            if "/internal/" in name and owner != module and not fuzz:
                self.report(path, number, f'"{name}" is internal to {module}')
            if "/testing/" in name and not in_test:
                self.report(path, number, f'"{name}" is for tests only')

    def check_test_is_built(self, path: Path) -> None:
        """A test outside a module is named, or found by a pattern, in a CMakeLists.txt near it."""
        parts = path.relative_to(self.root).parts
        if parts[0] == "lib":
            if parts[1] not in self.modules or len(parts) < 3:
                self.report(path, 1, "a test outside of a module: nothing builds it")
            elif "testing" in parts:
                self.report(path, 1, "a test in testing/, where fakes and contract suites are: "
                            "name it otherwise or move it")
            return
        folder = path.parent
        while folder != self.root:
            build = folder / "CMakeLists.txt"
            if build.exists() and (path.name in build.read_text()
                                   or "*_test.cc" in build.read_text()):
                return
            folder = folder.parent
        self.report(path, 1, "no CMakeLists.txt builds this test")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2])
    root = parser.parse_args().root.resolve()
    findings = Checker(root).run()
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings against the layers", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
