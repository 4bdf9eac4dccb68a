# SPDX-License-Identifier: MIT
"""What a person at a terminal sees of long work, and what ^C leaves of it.

    terminal.py BUILD SCRATCH

Progress: each long command says on a terminal how far it is, with its rate where it counts something, and the
remaining time, and says nothing of it to a pipe or to a terminal with TERM=dumb.  The line appears after a second of
work; a process that is stopped for a second in its middle needs no large input.
^C: a command that is interrupted at a random moment ends by the signal, and leaves nothing where it writes, or all
that it writes.
Prints "ok NAME" or "not ok NAME".
"""
import contextlib
import json
import os
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile

from json_forms import write_npy

SHARES = (0.5, 0.3, 0.7, 0.15, 0.4, 0.6, 0.8, 0.05, 0.9)  # of a command's time, at which it is stopped
TRIES = 5     # interrupts of a command
LEFT = r"\d[\d.,]* (ns|us|ms|s|min|h).* left"
RATE = r"\d[\d.,e+]* (kB|MB|GB|B|rows|files|ranks|dumps|layers|operators|weights)/s"
failed = False


def tell(name, problems):
    global failed
    failed = failed or bool(problems)
    print(f"{'not ok' if problems else 'ok'} {name}", flush=True)
    for p in problems:
        print(f"    {p}")


# ---- inputs ---------------------------------------------------------------------------------------------------------


def write_dump(folder, ops, slip=0.0):
    """A tensor dump of many operators; slip is added to each result."""
    data = folder + "/dump_tensor_data"
    os.makedirs(data)
    calls = {}
    for i in range(ops):
        name, values = f"Functional.relu.{i}.forward", [float(k - 50 + i % 7) for k in range(400)]
        row = {}
        for what, v in (("input", values), ("output", [max(x, 0.0) + slip for x in values])):
            write_npy(f"{data}/{name}.{what}.0.npy", v)
            row[what] = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [len(v)], "Max": max(v), "Min": min(v),
                         "Mean": sum(v) / len(v), "Norm": sum(x * x for x in v) ** 0.5, "requires_grad": False,
                         "data_name": f"{name}.{what}.0.npy"}
        calls[name] = {"input_args": [row["input"]], "input_kwargs": {}, "output": [row["output"]]}
    for name, content in (("dump", {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": data, "data": calls}),
                          ("construct", dict.fromkeys(calls)), ("stack", {})):
        with open(f"{folder}/{name}.json", "w", encoding="utf-8") as f:
            json.dump(content, f)


def write_checkpoint(path, weights, side):
    head, at = {}, 0
    for i in range(weights):
        head[f"layers.{i}.weight"] = {"dtype": "F32", "shape": [side, side], "data_offsets": [at, at + 4 * side * side]}
        at += 4 * side * side
    text = json.dumps(head).encode()
    row = struct.pack(f"<{side}f", *((k % 13 - 6) / 7 for k in range(side)))
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + row * (side * weights))


def write_traces(folder, ranks, events):
    os.makedirs(folder)
    for rank in range(ranks):
        items = [{"ph": "X", "name": f"op{i % 40}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": i * 10, "dur": 9} for i in range(events)]
        with open(f"{folder}/rank{rank}.json", "w", encoding="utf-8") as f:
            json.dump({"schemaVersion": 1, "traceEvents": items}, f)


def write_memory(folder, ranks, rows):
    os.makedirs(folder)
    for rank in range(ranks):
        with open(f"{folder}/memory_block_rank{rank}.csv", "w", encoding="utf-8") as f:
            f.write("start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,file_name,line_num,"
                    "thread_id,tag,node_name\n")
            f.writelines(f"{i},{i + 3},0x{i * 512:x},0,other,512,1024,a.py,{i % 9},1,t,op{i % 30}\n" for i in range(1, rows))


def make(build, top):
    subprocess.run([build + "/tests/tool_sim", top + "/run", "straggler", "0.1", "5", "4", "2", "2", "120", "4", "12", "16"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([build + "/msprobe", "import", "-o", top + "/run.db", top + "/run"], check=True, stdout=subprocess.DEVNULL)
    for rank in range(4):
        write_dump(f"{top}/target/step0/rank{rank}", 150, 0.25)
        write_dump(f"{top}/golden/step0/rank{rank}", 150)
    for rank in range(60):
        os.makedirs(f"{top}/many/step0/rank{rank}")
        shutil.copy(f"{top}/target/step0/rank0/dump.json", f"{top}/many/step0/rank{rank}")
    write_checkpoint(top + "/a.safetensors", 150, 128)
    write_checkpoint(top + "/b.safetensors", 150, 128)
    write_checkpoint(top + "/c.safetensors", 800, 128)
    write_traces(top + "/traces", 4, 30000)
    write_memory(top + "/memory", 12, 3000)


# ---- running --------------------------------------------------------------------------------------------------------


def start(argv, top, stderr, term):
    env = dict(os.environ, TERM=term, CLICOLOR="1", CLICOLOR_FORCE="1", TMPDIR=top + "/tmp")
    env.pop("NO_COLOR", None)
    shutil.rmtree(top + "/out", ignore_errors=True)
    os.makedirs(top + "/out")
    os.makedirs(top + "/tmp", exist_ok=True)
    for db in ("/traces/run.db", "/run/run.db"):  # what a command imports by itself, each time again
        with contextlib.suppress(FileNotFoundError):
            os.remove(top + db)
    # Whoever started us may have made us ignore an interrupt, and so our children.
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if stderr == subprocess.PIPE else subprocess.DEVNULL,
                            stderr=stderr, env=env, cwd=top, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def lasts(argv, top):
    before = time.monotonic()
    p = start(argv, top, subprocess.PIPE, "xterm")
    printed, said = p.communicate(timeout=120)
    return time.monotonic() - before, p.returncode, (printed + said).decode(errors="replace")


def stop_for_a_second(p, after):
    time.sleep(after)
    p.send_signal(signal.SIGSTOP)
    time.sleep(1.05)
    p.send_signal(signal.SIGCONT)


def read_all(fd):
    text = b""
    while True:
        try:
            piece = os.read(fd, 1 << 16)
        except OSError:
            piece = b""
        if not piece:
            return text.decode(errors="replace")
        text += piece


def on_terminal(argv, top, after, term):
    """What stands on a terminal after a command that was stopped for a second."""
    ours, its = pty.openpty()
    p = start(argv, top, its, term)
    os.close(its)
    stop_for_a_second(p, after)
    text = read_all(ours)
    os.close(ours)
    p.wait(timeout=120)
    return text


# ---- progress -------------------------------------------------------------------------------------------------------


def long_commands(top):
    """Name: what its line begins with, whether it counts something, and its words."""
    return {
        "import of a run": ("reading", True, ["import", "-o", "out/r.db", "run"]),
        "import of traces": ("reading", True, ["import", "-o", "out/r.db", "traces"]),
        "report that imports": ("importing", True, ["report", "traces"]),
        "export": ("writing", True, ["export", "-f", "chrome", "-o", "out/x.json", "run.db"]),
        "whatif": ("replaying", False, ["whatif", "run.db"]),
        "memory": ("reading", True, ["memory", "memory"]),
        "check": ("checking", True, ["check", "many"]),
        "judge": ("computing again", True, ["judge", "target/step0/rank0", "golden/step0/rank0", "--all", "--format", "json"]),
        "quantise": ("quantising", True, ["quantise", "a.safetensors", "--as", "mxfp4"]),
        "quantise --against": ("comparing", True, ["quantise", "a.safetensors", "--against", "b.safetensors"]),
        "config_check": ("comparing weights", True, ["config_check", "-c", "a.safetensors", "b.safetensors", "-o", "out/c.json"]),
        "graph_visualize": ("building", False, ["graph_visualize", "-tp", "target", "-gp", "golden", "-o", "out"]),
    }


def check_progress(msprobe, top):
    for name, (what, counts, words) in long_commands(top).items():
        argv, wanted = [msprobe] + words, re.compile(rf"\r{what}( \[#* *\] +\d+%)?.*{', ' + RATE if counts else ''}.*, {LEFT}\033\[K")
        whole, status, said = lasts(argv, top)
        if status != 0:
            tell(f"{name}: runs", [f"status {status}: {said[:300]}"])
            continue
        seen = ""
        for share in SHARES * 3:  # a loaded machine may stop it too early or too late
            seen = on_terminal(argv, top, whole * share, "xterm")
            if wanted.search(seen):
                break
        tell(f"{name}: a terminal shows rate and remaining time" if counts else f"{name}: a terminal shows the remaining time",
             [] if wanted.search(seen) else [repr(seen[-300:])])
        found = []
        if wanted.search(seen) and re.search(r"[\r\033]", on_terminal(argv, top, whole * share, "dumb").replace("\r\n", "")):
            found.append("a terminal with TERM=dumb is sent control characters")
        p = start(argv, top, subprocess.PIPE, "xterm")
        stop_for_a_second(p, whole * share)
        said = b"".join(p.communicate(timeout=120))
        if b"\r" in said or b"\033" in said:
            found.append("a pipe is sent control characters")
        tell(f"{name}: none without a terminal", found)


# ---- interrupts -----------------------------------------------------------------------------------------------------


def writing_commands():
    """Words of each command that writes into "out"."""
    formats = ("chrome", "trace-view", "perfetto", "csv", "ascend-db", "flight-recorder")
    return {**{f"export {f}": ["export", "-f", f, "-o", "out/x" + (".db" if f == "ascend-db" else ""), "run.db"] for f in formats},
            "export ascend-db into a folder": ["export", "-f", "ascend-db", "-o", "out/x", "run.db"],
            "import": ["import", "-o", "out/r.db", "run"],
            "whatif --ideal": ["whatif", "--ideal", "out/x.json", "run.db"],
            "cluster": ["cluster", "-m", "slow_rank", "-d", "run", "-o", "out/x"],
            "cluster, tables": ["cluster", "-m", "hccl_sum", "--export_type", "text", "-d", "run", "-o", "out/x"],
            "compare": ["compare", "-tp", "target", "-gp", "golden", "-o", "out/x"],
            "compare --xlsx": ["compare", "-tp", "target", "-gp", "golden", "-o", "out/x", "--xlsx"],
            "graph_visualize": ["graph_visualize", "-tp", "target", "-gp", "golden", "-o", "out/x"],
            "data2db": ["data2db", "--db", "out/x", "--data", "target"],
            "config_check": ["config_check", "-c", "c.safetensors", "c.safetensors", "-o", "out/c.json"],
            "calibrate": ["calibrate", "target", "golden", "-o", "out/n.json"]}


def files_below(top):
    """Sizes of the files by their names without a time; of workbooks, which hold a time, whether they are whole."""
    paths = [os.path.join(at, f) for folder in ("/out", "/tmp") for at, _, files in os.walk(top + folder) for f in files]
    return {re.sub(r"20\d{12}", "TIME", p[len(top):]): zipfile.is_zipfile(p) if p.endswith(".xlsx") else os.path.getsize(p) for p in paths}


def check_interrupts(msprobe, top):
    rng = random.Random(os.environ.get("SEED", "interrupts"))
    for name, words in writing_commands().items():
        argv, found, ended = [msprobe] + words, [], 0
        whole, status, said = lasts(argv, top)
        if status not in (0, 1):
            tell(f"{name}: runs", [f"status {status}: {said[:300]}"])
            continue
        full = files_below(top)
        for _ in range(TRIES):
            p = start(argv, top, subprocess.DEVNULL, "xterm")
            time.sleep(whole * rng.uniform(0.05, 0.9))
            p.send_signal(signal.SIGINT)
            p.wait(timeout=60)
            ended += p.returncode == -signal.SIGINT
            left = files_below(top) if p.returncode == -signal.SIGINT else {}
            # It may have come after the last file was whole. The tables of ranks that compare has written stay.
            if left != full and (words[0] != "compare" or not left.items() <= full.items()):
                found += [f"leaves {left} of {full}"] if left else []
            if p.returncode not in (0, 1, -signal.SIGINT):
                found.append(f"ends with {p.returncode}")
        if ended == 0:
            found.append("no interrupt came before the end")
        tell(f"{name}: an interrupt ends it and leaves nothing", found)


def main():
    msprobe, top = os.path.abspath(sys.argv[1]) + "/msprobe", os.path.abspath(sys.argv[2])
    make(os.path.abspath(sys.argv[1]), top)
    check_interrupts(msprobe, top)
    check_progress(msprobe, top)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
