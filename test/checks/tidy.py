#!/usr/bin/env python3
"""Runs clang-tidy over the product's sources (lib/ and cmd/, tests left out).

    tidy.py BUILD_FOLDER [--jobs N] [FILE…]

What passed is remembered by its content in $FL_TEST_CACHE (~/.cache/fl-test), outside of the tree,
so that a second run only looks at what changed: the file, or a header of ours that it includes, or
the list of checks, or the tool.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("FL_TEST_CACHE", Path.home() / ".cache/fl-test")) / "tidy"
TOOL = "clang-tidy-19"
MISSING_TOOL = 77  # ctest counts it as skipped


def product_commands(build: Path, only: list[str]) -> list[dict]:
    """The compile commands of the files to look at."""
    chosen = [Path(name).resolve() for name in only]
    commands = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = Path(command["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.name.endswith("_test.cc"):
            continue
        parts = path.relative_to(ROOT).parts
        if parts[0] not in ("lib", "cmd") or "testing" in parts:
            continue
        if not chosen or path in chosen:
            commands[path] = command
    return list(commands.values())


def read_dependencies(build: Path) -> dict[str, list[Path]]:
    """The files that each object was made from, as ninja noted them when it built."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True,
                          capture_output=True, text=True).stdout
    found: dict[str, list[Path]] = {}
    current: list[Path] = []
    for line in text.splitlines():
        if line.startswith(" "):
            current.append((build / line.strip()).resolve())
        elif line and not line.startswith("ninja:"):
            current = found.setdefault(line.split(":")[0], [])
    return found


def key_of(command: dict, dependencies: dict[str, list[Path]], common: bytes) -> str | None:
    """A digest of all that decides the outcome, or None where it is not known."""
    words = command["command"].split()
    files = dependencies.get(words[words.index("-o") + 1])
    if not files:
        return None
    digest = hashlib.sha256(common)
    for path in sorted({path for path in files if path.is_relative_to(ROOT)}):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(command["command"].replace(str(ROOT), "").encode())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if not shutil.which(TOOL):
        print(f"{TOOL} is missing: apt-get install {TOOL}")
        return MISSING_TOOL
    build = options.build.resolve()
    commands = product_commands(build, options.files)
    dependencies = read_dependencies(build)
    version = subprocess.run([TOOL, "--version"], check=True, capture_output=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)

    def look_at(command: dict) -> tuple[str, float, str | None]:
        name = str(Path(command["file"]).resolve().relative_to(ROOT))
        key = key_of(command, dependencies, common)
        if key and (CACHE / key).exists():
            os.utime(CACHE / key)
            return name, 0.0, None
        start = time.monotonic()
        # Its own compiler's warnings are g++'s to give; they differ, and -Werror would make them ours.
        run = subprocess.run([TOOL, "-p", str(build), "--quiet", "--extra-arg=-Wno-everything",
                              command["file"]], capture_output=True, text=True, cwd=ROOT)
        seconds = time.monotonic() - start
        if run.returncode == 0:
            if key:
                (CACHE / key).touch()
            return name, seconds, ""
        return name, seconds, run.stdout + run.stderr

    failed = remembered = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, seconds, output in pool.map(look_at, commands):
            if output is None:
                remembered += 1
            else:
                print(f"{seconds:5.1f}s {name}", flush=True)
                if output:
                    failed += 1
                    print(output.replace(str(ROOT) + "/", ""), flush=True)
    print(f"clang-tidy: {len(commands)} files, {remembered} unchanged since they passed, "
          f"{failed} with findings")
    month = 30 * 24 * 3600
    for mark in CACHE.iterdir():
        if time.time() - mark.stat().st_mtime > month:
            mark.unlink(missing_ok=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
