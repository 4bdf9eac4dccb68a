# SPDX-License-Identifier: MIT
"""What the commands that judge NaN and infinity answer for a dump: the operator that each names."""
import json
import re
import subprocess
import urllib.request

PATIENCE = 300


def ask(program, *arguments):
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return run.returncode, run.stdout, run.stderr


def operator(text):
    """The operator in a text: NODE of NODE, of NODE.output.0, and of a sentence."""
    found = re.search(r"\b(?:Module|Cell)\.[\w.]+?\.(?:forward|backward)\.\d+|\b[A-Z]\w+\.\w+\.\d+\.(?:forward|backward)", text or "")
    return found.group(0) if found else None


def by_stat(program, dump, golden):
    """stat names the first row of each kind; infinity comes before the NaN that it leads to."""
    for one in json.loads(ask(program, "stat", "--format", "json", dump)[1])["dumps"]:
        if one["first_inf"] or one["first_nan"]:
            return operator(one["first_inf"] or one["first_nan"])
    return None


def by_check(program, dump, golden):
    code, out, _ = ask(program, "check", "--exit_code", "--format", "json", dump)
    suspects = [s for s in json.loads(out)["suspects"] if s["check"] == "finite"]
    assert code == (1 if json.loads(out)["suspects"] else 0), f"check ended with {code}"
    return operator(suspects[0]["target"]) if suspects else None


def by_overflow_check(program, dump, golden):
    code, out, _ = ask(program, "overflow_check", "-i", dump, "-o", dump + ".anomaly", "--exit_code", "--format", "json")
    findings = json.loads(out)["findings"]
    assert code == (1 if findings else 0), f"overflow_check ended with {code}"
    return operator(findings[0]["node"]) if findings else None


def by_compare(program, dump, golden):
    _, out, _ = ask(program, "compare", "-tp", dump, "-gp", golden, "-o", dump + ".out", "--format", "json")
    suspects = json.loads(out)["suspects"]
    return operator(suspects[0]["target"]) if suspects else None


def by_view(program, dump, golden):
    script = dump + ".keys"
    with open(script, "w", encoding="utf-8") as f:
        f.write("")
    _, out, err = ask(program, "view", "--script", script, "--size", "200x40", "--ascii", dump)
    found = [line for line in out.splitlines() if re.search(r"NaN|infin|inf\b", line)]
    return operator("\n".join(found))


def by_serve(program, dump, golden):
    server = subprocess.Popen([program, "serve", "--port", "0", dump], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        address = re.match(r"(http://[^/]+)/\S*token=(\w+)", server.stdout.readline())
        request = urllib.request.Request(address.group(1) + "/api/findings?token=" + address.group(2),
                                         headers={"Authorization": "Bearer " + address.group(2)})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return operator(answer.read().decode())
    finally:
        server.terminate()
        server.wait(PATIENCE)


COMMANDS = {"stat": by_stat, "check": by_check, "overflow_check": by_overflow_check,
            "compare": by_compare, "view": by_view, "serve": by_serve}


def answers(program, dump, golden):
    found = {}
    for name, command in COMMANDS.items():
        try:
            found[name] = command(program, dump, golden)
        except Exception as error:  # the answer of one command must not hide those of the others
            found[name] = f"{type(error).__name__}: {error}"
    return found


def show(name, wanted, found):
    wrong = {k: v for k, v in found.items() if v != wanted}
    print(f"not ok nan {name}: {wanted} is wanted, found {wrong}" if wrong else f"ok nan {name}")
    return bool(wrong)
