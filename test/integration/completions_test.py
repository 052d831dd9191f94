"""The completions in the real shells: every command, flags, live names, files."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import BIN, SOURCE, environment, fl, tensor, write_safetensors

COMPLETIONS = SOURCE / "completions"


def listed(*words):
    """What `fl __complete` offers: the same for every shell."""
    lines = fl("__complete", *words).stdout.splitlines()
    return [line.split("\t")[0] for line in lines if not re.fullmatch(r":\d+", line)]


class Shell:
    """Completes a line, given as its words, the last of which is unfinished."""

    def complete(self, words, folder):
        raise NotImplementedError

    def environment(self):
        return environment(PATH=f"{BIN}:{os.environ['PATH']}")


class Bash(Shell):
    name = "bash"
    script = "fl.bash"

    def complete(self, words, folder):
        # readline's own breaking of words, which COMP_WORDS has.
        line = " ".join(words)
        program = f"""
            source {COMPLETIONS}/fl.bash
            complete -p fl >/dev/null || exit 3
            line=$1
            mapfile -t COMP_WORDS < <(sed -E 's/ /\\n/g; s/([=:]+)/\\n\\1\\n/g' <<<"$line")
            cleaned=()
            for i in "${{!COMP_WORDS[@]}}"; do
              # A break at the end leaves an empty word only where the line ends with a blank.
              if [[ ${{COMP_WORDS[i]}} || $i -eq $((${{#COMP_WORDS[@]}} - 1)) ]]; then
                cleaned+=("${{COMP_WORDS[i]}}")
              fi
            done
            if [[ $line == *[=:] ]]; then unset 'cleaned[-1]'; fi
            COMP_WORDS=("${{cleaned[@]}}")
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _fl fl
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "--norc", "-c", program, "bash", line], cwd=folder,
                              env=self.environment(), capture_output=True, text=True, timeout=60,
                              check=True)
        return [word for word in done.stdout.splitlines() if word]


class Fish(Shell):
    name = "fish"
    script = "fl.fish"

    def complete(self, words, folder):
        line = " ".join(words)
        done = subprocess.run(
            ["fish", "-c",
             f"source {COMPLETIONS}/fl.fish; complete -C '{line}'"],
            cwd=folder, env={**self.environment(), "HOME": str(folder)}, capture_output=True,
            text=True, timeout=60, check=True)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]


class Zsh(Shell):
    """zsh has no way to ask: a line editor in a terminal is told to list."""
    name = "zsh"
    script = "_fl"

    def complete(self, words, folder):
        setup = f"""
            unsetopt beep; setopt no_prompt_sp; PS1='' RPS1='' PS2=''
            autoload -Uz compinit && compinit -u -D
            source {COMPLETIONS}/_fl
            zstyle ':completion:*' menu no
            # Everything that is added is noted instead of shown.
            compadd() {{
              if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return $?; fi
              local -a __noted
              builtin compadd -A __noted -D __noted "$@" 2>/dev/null
              builtin compadd -A __noted "$@"
              (( ${{#__noted}} )) && print -rl -- "${{__noted[@]}}" >> $NOTES
              builtin compadd "$@"
            }}
            finish() {{ zle -I; print DONE-$((6*7)); }}
            zle -N finish
            bindkey '^I' list-choices '^X' finish '^U' kill-whole-line
            print READY-$((6*7))
        """
        notes = pathlib.Path(folder) / "zsh-notes"
        notes.write_text("")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"],
                       {**self.environment(), "NOTES": str(notes), "TERM": "dumb",
                        "HOME": str(folder)})
        try:
            init = pathlib.Path(folder) / "zsh-setup"
            init.write_text(setup)
            self.send(terminal, f"source {init}\r", "READY-42")
            self.send(terminal, " ".join(words) + "\t\x18", "DONE-42")
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)
        return list(dict.fromkeys(notes.read_text().splitlines()))

    @staticmethod
    def send(terminal, text, until):
        os.write(terminal, text.encode())
        seen = b""
        deadline = time.monotonic() + 60
        while until.encode() not in seen:
            if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"zsh said {seen!r}")
            seen += os.read(terminal, 65536)


class CompletionTest:
    """For each shell."""
    shell: Shell

    def setUp(self):
        if shutil.which(self.shell.name) is None:
            self.skipTest(f"{self.shell.name} is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def offered(self, *words):
        return sorted(self.shell.complete(list(words), self.folder))

    def test_the_script_is_what_the_program_prints(self):
        self.assertEqual(fl("completion", self.shell.name).stdout,
                         (COMPLETIONS / self.shell.script).read_text())

    def test_every_command(self):
        self.assertEqual(self.offered("fl", ""), sorted(listed("")))
        self.assertIn("validate", self.offered("fl", "va"))
        self.assertEqual(self.offered("fl", "models", ""), sorted(listed("models", "")))
        self.assertEqual(self.offered("fl", "help", "keys", ""), ["generate", "show"])

    def test_flags(self):
        offered = self.offered("fl", "aggregate", "--")
        self.assertEqual(offered, sorted(listed("aggregate", "--")))
        self.assertIn("--update", offered)
        self.assertIn("--registry", offered)

    def test_values(self):
        self.assertEqual(self.offered("fl", "completion", ""), ["bash", "fish", "zsh"])
        self.assertEqual(self.offered("fl", "--color", "a"), ["always", "auto"])
        with_prefix = self.offered("fl", "version", "--output=y")
        self.assertIn(with_prefix, (["yaml"], ["--output=yaml"]))

    def test_live_names_and_versions(self):
        weights = write_safetensors(self.folder / "w.safetensors", {"w": tensor("F32", [1], [1])})
        registry = self.folder / "registry"
        for model in ("digits", "faces"):
            done = fl("models", "import", model, weights, "--registry", registry)
            self.assertEqual(done.returncode, 0, done.stderr)
        at = ("--registry", "registry")
        self.assertEqual(self.offered("fl", "rollback", *at, ""), ["digits", "faces"])
        self.assertEqual(self.offered("fl", "rollback", *at, "f"), ["faces"])
        self.assertEqual(self.offered("fl", "models", "show", *at, "digits", ""), ["0"])

    def test_files_and_folders(self):
        (self.folder / "model.safetensors").write_text("")
        (self.folder / "more").mkdir()
        strip = [name.rstrip("/") for name in self.offered("fl", "inspect", "mo")]
        self.assertEqual(strip, ["model.safetensors", "more"])
        strip = [name.rstrip("/") for name in self.offered("fl", "list", "--registry", "mo")]
        self.assertEqual(strip, ["more"])
        self.assertEqual(self.offered("fl", "wait", "mo"), [])


class BashTest(CompletionTest, unittest.TestCase):
    shell = Bash()

    def test_in_the_line_editor(self):
        """The words as bash itself breaks them, once with = and once in an address."""
        for line, expected in (("fl version --output=ya\t", "version: "),
                               ("fl completion zs\t", "#compdef fl")):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                           {**self.shell.environment(), "TERM": "dumb", "PS1": "",
                            "HISTFILE": ""})
            try:
                Zsh.send(terminal, f"source {COMPLETIONS}/fl.bash; echo READY-$((6*7))\r",
                         "READY-42")
                Zsh.send(terminal, line + "\r", expected)
            finally:
                os.close(terminal)
                os.waitpid(pid, 0)


class ZshTest(CompletionTest, unittest.TestCase):
    shell = Zsh()


class FishTest(CompletionTest, unittest.TestCase):
    shell = Fish()


if __name__ == "__main__":
    unittest.main()
