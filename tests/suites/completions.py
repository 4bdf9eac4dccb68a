# SPDX-License-Identifier: MIT
"""Completion scripts against --help: each option that a command's help lists is in the script of every shell.

    completions.py MSPROBE

Prints "ok SHELL" or "not ok SHELL: COMMAND --OPTION ...".
"""
import re
import subprocess
import sys


def out_of(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def options_of(program):
    """(command, option) of the helps, which list a row for each option."""
    for command in re.findall(r"^  ([a-z][\w-]*) ", out_of(program, "help"), re.M):
        for option in re.findall(r"^  (?:-\S+ |-\S+, | {4})--?([a-z]\w+)", out_of(program, command, "--help"), re.M):
            yield command, option


def part_of(shell, script, command):
    """The part of a script in which options of the command stand."""
    if shell == "fish":
        return "\n".join(l for l in script.splitlines() if f"__msprobe_in {command}'" in l or "-n '__msprobe_in " not in l)
    if shell == "bash":
        return re.search(rf"^    {re.escape(command)}\)\n(.*?)^        ;;", script, re.M | re.S).group(1)
    return script


def main():
    program, rc = sys.argv[1], 0
    found = list(options_of(program))
    assert len(found) > 300, found
    for shell in ("bash", "zsh", "fish"):
        script = out_of(program, "completion", shell)
        lacks = [f"{c} --{o}" for c, o in found if not re.search(rf"(?<!\w)(--|-l '?){o}\b", part_of(shell, script, c))]
        print(f"not ok {shell}: {', '.join(lacks[:20])}" if lacks else f"ok {shell}")
        rc = 1 if lacks else rc
    return rc


if __name__ == "__main__":
    sys.exit(main())
