# SPDX-License-Identifier: MIT
"""Random keys in the terminal viewer, on every kind of file: it neither crashes nor stays in a prompt.

    key_storms.py BUILD [--storms N] [--keys N] [--seed WORD] [--only NAME] [--terminal]

A storm is N keys drawn by the seed: those of the manual more often than others, names, clicks, and words typed into
prompts.  With --terminal they are pressed on a pseudo terminal as bytes, with escape sequences of many terminals,
pasted text, changed sizes and broken pieces of all of these; else by --script.  Afterwards Escape and 1 lead back to
the findings.  Prints "ok NAME SEED" or "not ok NAME SEED: why"; a storm is repeated by its seed.
"""
import argparse
import fcntl
import json
import os
import pty
import random
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

LIMIT = 300  # seconds for one storm
NAMED = ["Enter", "Tab", "Esc", "Backspace", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PageDown", "S-Tab",
         "Delete", "F1", "Space", "Tick"]
LETTERS = "1234560?/:nNfFgGhjklbBmMsSrRtTvVxXzZwWeEoOpP+-=<>[]{}()*&^%$#@!~`|\\;\"',._ acdiuyACDHIJKLUY6789"
WORDS = ["rank 3", "xml SELECT 1", "goto step=1", "find relu", "filter rank:2", "level x", "help", "write", "12:30", "Δ你好🙂", "..", "-1",
         "99999999999999999999", "%s%n", "'"]
BYTES = [b"\x1b[A", b"\x1b[B", b"\x1bOC", b"\x1b[1;5D", b"\x1b[H", b"\x1b[F", b"\x1b[5~", b"\x1b[6~", b"\x1b[3~", b"\x1b[I", b"\x1b[O", b"\x1bj",
         b"\x1b[200~q:quit\nx\x1b[201~", b"\x1b[<0;10;5M", b"\x1b[<0;10;5m", b"\x1b[<64;3;3M", b"\x1b[M !!", b"\x1b[57352u", b"\x1b[97;5u", b"\x1b[",
         b"\x1b", b"\x1b]0;title\x07", b"\xe4\xbd", b"\xff", b"\x00", b"\r", b"\t", b"\x0c", b"\x7f", b"\x1b[99999;99999;99999Z"]


def drawn(rng, count):
    """Keys as the words of a script."""
    keys = []
    while len(keys) < count:
        kind = rng.random()
        if kind < 0.5:
            letter = rng.choice(LETTERS)
            keys.append("<lt>" if letter == "<" else "<Space>" if letter == " " else letter)
        elif kind < 0.85:
            keys.append(f"<{rng.choice(NAMED)}>")
        elif kind < 0.92:
            keys.append(f"<{rng.choice(['Click', 'Drag', 'WheelUp', 'WheelDown'])}:{rng.randrange(60)},{rng.randrange(250)}>")
        elif kind < 0.96:
            keys.append(f"<C-{rng.choice('lauefbk')}>")
        else:
            word = "".join("<Space>" if c == " " else "<lt>" if c == "<" else c for c in rng.choice(WORDS))
            keys.append(rng.choice([":", "/"]) + word + rng.choice(["<Enter>", "<Esc>", "<Tab>", ""]))
    return keys


def by_script(build, path, more, rng, count, folder):
    """Why a storm went wrong, or None."""
    lines = ["".join(drawn(rng, 40)) for _ in range(count // 40)]
    lines = [(" " + l if l.startswith("#") else l) for l in lines]
    script = os.path.join(folder, "keys")
    with open(script, "w", encoding="utf-8") as f:
        f.write("\n".join("<Esc>" + l if l.startswith(" ") else l for l in lines) + "\n<Esc><Esc><Esc><Esc>1<Home>")
    size = f"{rng.choice([20, 40, 80, 132, 250])}x{rng.choice([5, 10, 24, 60])}"
    try:
        ended = subprocess.run([build + "/msprobe", "view", "--script", script, "--size", size, *more, path], cwd=folder, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=LIMIT, env=dict(os.environ, LC_ALL="C.UTF-8", EDITOR="true"), check=False)
    except subprocess.TimeoutExpired:
        return "no end"
    if ended.returncode not in (0,):
        return f"status {ended.returncode}: {ended.stderr.decode(errors='replace')[-300:]}"
    rows = ended.stdout.decode(errors="replace").split("\n") + [""]
    wide, high = map(int, size.split("x"))
    if wide >= 80 and high >= 10 and rows[1].strip() not in ("What is wrong", "Nothing is wrong", "What this run says"):
        return f"does not come back to the findings: {rows[:2]} at {size}"
    return None


def drain(fd, seconds):
    """Reads what comes until nothing does; False when the other side is gone."""
    while select.select([fd], [], [], seconds)[0]:
        try:
            if not os.read(fd, 1 << 16):
                return False
        except OSError:
            return False
    return True


def press(fd, rng, count):
    sent = 0
    while sent < count:
        piece = b"".join(rng.choice(BYTES) if rng.random() < 0.4 else rng.choice(LETTERS.replace("q", "").replace("Q", "")).encode()
                         for _ in range(50))
        if rng.random() < 0.1:
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rng.choice([1, 5, 24, 60]), rng.choice([1, 10, 80, 200]), 0, 0))
        try:
            os.write(fd, piece.replace(b"\x03", b"").replace(b"\x1a", b""))
        except OSError:
            return
        sent += 50
        if not drain(fd, 0.01):
            return


def by_terminal(build, path, more, rng, count, folder):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM=rng.choice(["xterm-256color", "vt100", "screen", "linux"]), LC_ALL="C.UTF-8", EDITOR="true")
        os.execv(build + "/msprobe", ["msprobe", "view", *more, path])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    end, status = time.monotonic() + LIMIT, None
    drain(fd, 0.3)
    press(fd, rng, count)
    while status is None and time.monotonic() < end:
        try:
            os.write(fd, b"\x1b")
            drain(fd, 0.2)
            os.write(fd, b"\x1b")
            drain(fd, 0.2)
            os.write(fd, b"qqq")  # back, what is not written is said, and out
            drain(fd, 0.1)
        except OSError:
            pass
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
    if status is None:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return "q does not end it"
    os.close(fd)
    return None if status == 0 else f"status {os.waitstatus_to_exitcode(status)}"


def table(top):
    path = os.path.join(top, "compare_result_1.csv")
    with open(path, "w", encoding="utf-8") as f:
        f.write("NPU Name,Bench Name,NormRelativeErr,Max diff,Result,Err_message\n")
        for i in range(3000):
            f.write(f'Module.层.{i}.fc,"a, ""b"" {i}",{i * 7919 % 1000 / 10}%,{i},{("error", "warning", "pass", "")[i % 4]},{"x" * (i % 90)}\n')
    return path


def monitor(top):
    folder = os.path.join(top, "monitor", "Dec01_10-00-00-rank0-12345")
    os.makedirs(folder)
    for metric in ("actv", "grad_reduced"):
        with open(os.path.join(folder, f"{metric}_0-49.csv"), "w", encoding="utf-8") as f:
            f.write("vpp_stage,name,step,norm,max\n")
            for step in range(50):
                for i in range(60):
                    f.write(f"0,layers.{i},{step},{'nan' if i == 7 and step > 30 else (1 + i) * (300 if step == 25 else 1)},{i}\n")
    return os.path.dirname(folder)


ODD = ["\x1b]0;title\x07\x1b[2J", "a\tb\nc\r", "\u202eright to left", "e\u0301" * 40, "\U0001f469\u200d\U0001f680", "x" * 70000, "", "\ufffe", "%s%n", "你好" * 300, "\u0000"]


def hostile_trace(path, rank):
    """Names that are no words, times that overlap, lie apart by years or end before they begin."""
    rng = random.Random(rank)
    events = [{"ph": "X", "name": rng.choice(ODD), "cat": rng.choice(["kernel", "cpu_op", ""]), "pid": rng.choice([0, 1, rng.choice(ODD)]),
               "tid": rng.choice([7, 7, -1, 2 ** 40]), "ts": rng.choice([i * 10, 5, 1e15, 0.25 * i]), "dur": rng.choice([0, 1, 1e6, 0.001]),
               "args": {"stream": 7, "Collective name": rng.choice(["allreduce", "\x1b"]), "Process Group Ranks": rng.choice(["[0, 1]", "[", ""]),
                        "Process Group Name": rng.choice(["0", ODD[3]]), "In msg nelems": rng.choice([0, 2 ** 62]), "Group size": 2}}
              for i in range(600)]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, f)
    return path


def damaged(path, to, seed):
    """The file with some bytes changed, behind the first page."""
    rng = random.Random(seed)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for _ in range(2 + seed):
        data[rng.randrange(4096, len(data))] = rng.randrange(256)
    with open(to, "wb") as f:
        f.write(data)
    return to


def hostile(build, top, run):
    """Files that somebody made to do harm, or that a disk has spoilt."""
    path = os.path.join(top, "compare_result_2.csv")
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as f:
        f.write("NPU Name,Bench Name,Result\n")
        for i in range(200):
            f.write(",".join('"' + ODD[(i + k) % len(ODD)].replace('"', '""') + '"' for k in range(3)) + "\n")
    yield "odd table", path, []
    path = os.path.join(top, "odd.db")
    made = subprocess.run([build + "/msprobe", "import", "-o", path, *(hostile_trace(os.path.join(top, f"odd{r}.json"), r) for r in (0, 1))],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if made.returncode == 0:
        yield "odd trace", path, []
    subprocess.run([build + "/msprobe", "import", run], check=True, stdout=subprocess.DEVNULL)
    script = os.path.join(top, "no_keys")
    with open(script, "w", encoding="utf-8"):
        pass
    for seed in range(6):  # those that are not refused are shown as far as they go
        path = damaged(os.path.join(run, "run.db"), os.path.join(top, f"damaged{seed}.db"), seed)
        opened = subprocess.run([build + "/msprobe", "view", "--script", script, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if opened.returncode == 0:
            yield f"damaged run {seed}", path, []


def inputs(build, top):
    """(name, path, further words of the command)."""
    run = os.path.join(top, "run")
    subprocess.run([build + "/tests/tool_sim", run, "straggler", "0.2", "7"], check=True, stdout=subprocess.DEVNULL)
    hang = os.path.join(top, "hang")
    subprocess.run([build + "/tests/tool_sim", hang, "hang", "0.2", "3", "2", "4", "2", "10", "2", "2"], check=True, stdout=subprocess.DEVNULL)
    yield "run", run, []
    yield "hang", hang, []
    yield "live", run, ["--live"]
    clean = os.path.join(top, "clean")
    subprocess.run([build + "/tests/tool_sim", clean, "clean", "0", "8"], check=True, stdout=subprocess.DEVNULL)
    yield "two runs", run, ["--golden_path", clean]
    yield "table", table(top), []
    yield "curves", monitor(top), []
    yield from hostile(build, top, run)
    golden = os.path.realpath("../shared/golden")
    for name in ("stat_nan", "cross_a", "tensor_scale", "ranks4", "steps2", "md5_scale", "stat_L1"):
        target, base = os.path.join(golden, name, "target"), os.path.join(golden, name, "golden")
        if os.path.isdir(target):
            yield name, target, []
        if os.path.isdir(target) and os.path.isdir(base):
            yield name + " pair", target, ["--golden_path", base]
    trace = os.path.realpath("../shared/traces/kineto/nccl_data.json.gz")
    if os.path.exists(trace):
        subprocess.run([build + "/msprobe", "import", "-o", os.path.join(top, "trace.db"), trace], check=True, stdout=subprocess.DEVNULL)
        yield "trace", os.path.join(top, "trace.db"), []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--storms", type=int, default=1, help="of each file")
    parser.add_argument("--keys", type=int, default=10000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="")
    parser.add_argument("--terminal", action="store_true")
    options = parser.parse_args()
    rc = 0
    with tempfile.TemporaryDirectory(prefix="msprobe-storms-") as top:
        for name, path, more in list(inputs(options.build, top)):
            for n in range(options.storms if options.only in name else 0):
                seed = f"{options.seed}.{n}"
                with tempfile.TemporaryDirectory(dir=top) as folder:
                    storm = by_terminal if options.terminal else by_script
                    why = storm(options.build, path, more, random.Random(f"{name} {seed}"), options.keys, folder)
                print(f"{'ok' if why is None else 'not ok'} {name}: storm {seed}{'' if why is None else ': ' + why}", flush=True)
                rc = rc if why is None else 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
