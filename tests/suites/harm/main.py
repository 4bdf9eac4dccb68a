# SPDX-License-Identifier: MIT
"""Every way of writing a training, run without us and with us: all that it comes to must be alike.

    main.py BUILD [--full | --brief] [--turn N] [--part K/N:WORD] [--way WORD]... [--mode WORD]...
            [--jobs N] [--list] [--twice] [--why FILE] [--slowest N] [--keep DIR]

Without --full a sample of the product is run: every way in the mode that touches most and in one
other, which changes from way to way; with --brief, in one of the two.  --turn N runs every way in the
N-th of its other modes alone, so all turns together are a full walk in parts.  --part K/N:WORD runs
the K-th of N parts of the ways, which WORD deals.  --twice compares each way without us with itself.
--why FILE: the failing cases, one a line with its first difference.  --slowest N: where the time goes.
--keep DIR: a folder for what the cases came to; those that are there already are not run again.
Prints "ok NAME", "not ok NAME", "skip NAME: why" or "known NAME: what differs" for each way.
"""
import argparse
import atexit
import contextlib
import functools
import gc
import glob
import importlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from known import KNOWN, KNOWN_LINES  # noqa: E402

LIMIT = 240  # seconds that a case may take; one that stalls fails

# How a case is started: in code, as by run --dump (auto), by run -o (marks), as by run --monitor, or by run --memory;
# plain is without us.
Mode = namedtuple("Mode", "start level task", defaults=["", ""])
PLAIN = Mode("plain")
MODES = [Mode("code", level, task) for task in ("statistics", "tensor") for level in ("mix", "L1", "L0", "debug")]
MODES += [Mode("code", level, task) for level, task in
          (("mix", "structure"), ("mix", "overflow_check"), ("L1", "nan_check"), ("mix", "md5"))]
MODES += [Mode("auto", "mix", "statistics"), Mode("auto", "L0", "tensor"), Mode("auto", "L1", "statistics")]
MODES += [Mode("marks"), Mode("monitor"), Mode("memory")]
OF_MONITOR = {"targets": {}, "format": "csv", "ops": ["norm", "min", "max", "mean", "zeros", "nans"], "invariants": True,
              "xy_distribution": True, "wg_distribution": True, "mv_distribution": True, "param_distribution": True,
              "stack_info": True, "all_xy": True}


def name_of(mode):
    return "-".join(word for word in mode if word)


def load_ways():
    from harness import WAYS
    for path in sorted(glob.glob(os.path.join(HERE, "ways_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    return WAYS


# ---- a server: a process that has imported torch, and forks for each case -------------------------


def config_of(mode, dump_path):
    """The settings of a dump; md5 is the task of statistics with digests beside them."""
    is_md5 = mode.task == "md5"
    return {"task": "statistics" if is_md5 else mode.task, "statistics": {"summary_mode": "md5"} if is_md5 else {},
            "level": mode.level, "rank": [], "step": [], "dump_path": dump_path,
            "custom_op_namespaces": ["harm_extension"]}


def debugger_maker(mode):
    """For Run: what makes the debugger of a program that has one in its code."""
    if mode.start != "code":
        return None

    def make():
        from msprobe.pytorch import PrecisionDebugger
        path = f"config{os.getpid()}.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config_of(mode, "dump"), f)
        return PrecisionDebugger(config_path=path)
    return make


def count_records(folder):
    """Records in the dumps below a folder, and rows of a monitor."""
    count = 0
    for path in glob.glob(folder + "/figures/**/*.csv", recursive=True):
        with open(path, encoding="utf-8") as f:
            count += sum(1 for _ in f) - 1  # the first line names the columns
    for path in glob.glob(folder + "/**/d*.json", recursive=True):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        count += text.count('"input_args"') + text.count('"Module.') + text.count('"data_name"')
    return count


def attach_dump(mode):
    """Dumps this process as `run --dump` does when PyTorch has been imported.  The server itself is not dumped: a
    child of a process that is dumped dumps nothing."""
    from msprobe.pytorch import _auto
    path = f"config{os.getpid()}.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config_of(mode, os.path.abspath("dump")), f)
    _auto.attach(path)


def attach_monitor():
    """Monitors this process as `run --monitor` does when PyTorch has been imported."""
    from msprobe.pytorch import _monitor_auto
    path = f"config{os.getpid()}.json"
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.abspath("figures")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(OF_MONITOR, f)
    _monitor_auto.attach(os.path.abspath(path))


def attacher(mode):
    """For Run: what attaches a dump or a monitor that is not in the code."""
    if mode.start == "auto":
        return functools.partial(attach_dump, mode)
    return attach_monitor if mode.start == "monitor" else None


def child(func, mode, folder):
    """Runs one case in its own folder, and ends as a program does."""
    from harness import run_way
    os.chdir(folder)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fd)
    facts, raised = run_way(func, debugger_maker(mode), attacher(mode))
    with open("facts", "wb") as f:
        pickle.dump((facts, raised), f)
    atexit._run_exitfuncs()  # as a program ends; taking PyTorch apart as well would take a second
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def load_lazily():
    """What PyTorch loads when it is first used, once for all children.  No more than that: a compiler that is set up
    before the fork warns there and not in the child, and PyTorch 2.1 takes hooks of optimizers away."""
    import torch
    if torch.__version__ >= "2":
        import torch._dynamo
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1).zero_grad()
    gc.collect()
    gc.freeze()


def serve(build, mode, ways, top):
    """Each way in a child of this process, one after the other."""
    known = load_ways()
    load_lazily()
    if mode.start in ("code", "auto", "monitor"):
        sys.path.insert(0, os.path.join(build, "python"))
        importlib.import_module("msprobe.pytorch")
    for way in ways:
        folder = os.path.join(top, name_of(mode), way)
        os.makedirs(folder, exist_ok=True)
        sys.stdout.flush()
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            child(known[way], mode, folder)
        status = wait_limited(pid)
        for name, value in (("status", status), ("seconds", time.monotonic() - began)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(str(value))


def wait_limited(pid):
    """The status of a child; one that stalls is ended with all that it started."""
    end = time.monotonic() + LIMIT
    pause = 0.002
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return f"stalled for {LIMIT} s"


# ---- the driver -----------------------------------------------------------------------------


def command_of(build, mode, top, ways, number):
    me = [sys.executable, os.path.abspath(__file__), build, "--serve", json.dumps([mode, ways, top])]
    if mode.start in ("marks", "auto", "monitor", "memory"):
        also = ["--memory"] if mode.start == "memory" else []
        return [build + "/msprobe", "run", *also, "-o", os.path.join(top, f"{name_of(mode)}.{number}.run"), "--", *me]
    return me


def run_cases(build, cases, top, jobs):
    """cases: mode -> names of ways.  Servers, so many at a time, that have a part of a mode each."""
    work = []
    for mode, ways in cases.items():
        ways = [way for way in ways if not read(os.path.join(top, name_of(mode), way), "status")]
        size = max(24, -(-len(ways) // jobs))  # importing PyTorch takes as long as many ways
        work += [(mode, ways[at:at + size]) for at in range(0, len(ways), size)]
    running, number = [], os.getpid() * 1000  # a kept folder has servers of other runs
    atexit.register(lambda: [entry[0].terminate() for entry in running if entry[0].poll() is None])
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MSTX_QUIET": "2", "OMP_NUM_THREADS": "1",
           "OPENBLAS_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    while work or running:
        while work and len(running) < jobs:
            mode, ways = work.pop(0)
            number += 1
            log = open(os.path.join(top, f"server.{number}.log"), "w+", encoding="utf-8")
            running.append((subprocess.Popen(command_of(build, mode, top, ways, number), env=env,
                                             stdout=log, stderr=log, stdin=subprocess.DEVNULL), log, mode))
        for entry in list(running):
            if entry[0].poll() is not None:
                running.remove(entry)
                if entry[0].returncode != 0:
                    entry[1].seek(0)
                    print(f"# a server of {name_of(entry[2])} ended with {entry[0].returncode}")
                    print("".join("#   " + line for line in entry[1].readlines()[-15:]))
                entry[1].close()
        time.sleep(0.02)


Outcome = namedtuple("Outcome", "status facts raised stdout stderr")


def read(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def outcome(top, mode, way):
    folder = os.path.join(top, name_of(mode), way)
    try:
        with open(os.path.join(folder, "facts"), "rb") as f:
            facts, raised = pickle.load(f)
    except (OSError, EOFError):
        facts, raised = None, None
    return Outcome(read(folder, "status") or "not run", facts, raised, read(folder, "stdout"),
                   read(folder, "stderr"))


def said_by_others(text):
    """What is on stderr without what we say of ourselves; numbers are those of processes and of time."""
    return [re.sub(r"\d+", "#", line) for line in text.splitlines()
            if "msprobe" not in line and not any(known in line for known in KNOWN_LINES)]


def differences(plain, ours):
    """What is not alike, the most telling first, as texts."""
    if ours.status != plain.status:
        tail = [line for line in ours.stderr.splitlines() if line.strip()][-1:]
        return [f"status {ours.status}, without us {plain.status} {' '.join(tail)[:200]}"]
    if ours.raised != plain.raised:
        return [f"raised {str(ours.raised)[:300]}, without us {plain.raised}"]
    found = []
    for (label, fact), (label2, fact2) in zip(plain.facts or [], ours.facts or []):
        if label != label2:
            found.append(f"{label2} came where {label} comes without us")
            break
        if fact != fact2:
            found.append(f"{label}: {str(fact2)[:200]}, without us {str(fact)[:200]}")
    if len(plain.facts or []) != len(ours.facts or []):
        found.append(f"{len(ours.facts or [])} facts, without us {len(plain.facts or [])}")
    if plain.stdout != ours.stdout:
        found.append("another output")
    if said_by_others(plain.stderr) != said_by_others(ours.stderr):
        new = [line for line in said_by_others(ours.stderr) if line not in plain.stderr]
        found.append(f"another stderr: {(new or ['lines are missing'])[0][:200]}")
    return found


def modes_of(way, options):
    """The modes that a way is run in."""
    words = options.mode
    if options.full or words:
        return [m for m in MODES if not words or any(w in name_of(m) for w in words)]
    number = zlib.crc32(way.encode())
    other = MODES[1 + (number + (options.turn or 0)) % (len(MODES) - 1)]
    if options.turn is not None:
        return [other]
    if options.brief:
        return [MODES[0] if number >> 16 & 1 else other]
    return [MODES[0], other]


def judge(way, modes, top):
    """(word, lines) of one way: skip, ok or not ok."""
    plain = outcome(top, PLAIN, way)
    if plain.raised is not None:
        return "skip", [f"{plain.raised[0][0]}: {plain.raised[0][1].splitlines()[0][:150] if plain.raised[0][1] else ''}"]
    if plain.status != "0":
        return "not ok", [f"without us: status {plain.status} {plain.stderr[-300:]}"]
    lines = []
    for mode in modes:
        found = differences(plain, outcome(top, mode, way))
        lines += [f"{name_of(mode)}: {text}" for text in found[:3]]
    return ("not ok" if lines else "ok"), lines


def is_dealt(name, part):
    """Whether a way belongs to part "K/N:WORD"."""
    if not part:
        return True
    share, _, word = part.partition(":")
    mine, parts = map(int, share.split("/"))
    return zlib.crc32(f"{word} {name}".encode()) % parts == mine - 1


def choose(options, known):
    from harness import VERSION
    chosen, skipped = [], []
    for name, func in known.items():
        if options.way and not any(word in name or word == func.theme for word in options.way):
            continue
        if not is_dealt(name, options.part):
            continue
        if VERSION < func.needs:
            skipped.append((name, "needs PyTorch %d.%d" % func.needs))
        elif not func.slow or options.full or options.way:
            chosen.append(name)
    return chosen, skipped


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--serve", type=json.loads)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--turn", type=int)
    parser.add_argument("--part", metavar="K/N:WORD")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--way", action="append", default=[])
    parser.add_argument("--mode", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--why", default=os.devnull)
    parser.add_argument("--slowest", type=int, default=0)
    parser.add_argument("--keep", type=os.path.abspath)
    return parser.parse_args()


def check_records(chosen, plan, known, top):
    """A dump that collects nothing would do no harm either."""
    from harness import VERSION
    good = True
    starts = ("auto", "monitor") if VERSION >= (2, 0) else ("auto",)  # before, there is no monitor
    for mode in (m for m in MODES if m == MODES[0] or m.start in starts):
        ways = [way for way in chosen if mode in plan[way] and not known[way].silent and
                outcome(top, PLAIN, way).raised is None]
        empty = [way for way in ways if count_records(os.path.join(top, name_of(mode), way)) == 0]
        is_enough = len(empty) <= len(ways) // (10 if mode == MODES[0] else 2) or len(ways) <= 20
        if len(ways) > 20:
            print(f"{'ok' if is_enough else 'not ok'} ways_are_recorded {name_of(mode)}")
        if empty:
            print(f"# without a record at {name_of(mode)}: {' '.join(empty)}")
        good = good and is_enough
    return good


def report_slowest(top, count):
    """The cases that took longest, and what all took together."""
    seconds = {path: float(read(path, "seconds") or 0) for path in glob.glob(top + "/*/*/")}
    for path in sorted(seconds, key=seconds.get, reverse=True)[:count]:
        print(f"# {seconds[path]:6.2f} s {os.path.relpath(path, top)}")
    print(f"# {sum(seconds.values()):.1f} s in {len(seconds)} cases")


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended, and the folder goes
    if options.serve:
        mode, ways, top = options.serve
        return serve(options.build, Mode(*mode), ways, top)
    known = load_ways()
    chosen, skipped = choose(options, known)
    if options.list:
        return print("\n".join(chosen))
    plan = {way: modes_of(way, options) for way in chosen}
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with contextlib.nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory(prefix="msprobe-harm-") as top:
        cases = {PLAIN: chosen}
        if options.twice:
            again = PLAIN._replace(level="again")
            plan = {way: [again] for way in chosen}
            cases[again] = chosen
        for mode in [] if options.twice else MODES:
            of_mode = [way for way in chosen if mode in plan[way]]
            if of_mode:
                cases[mode] = of_mode
        is_whole = True
        try:
            run_cases(options.build, cases, top, options.jobs)
        except SystemExit:
            is_whole = False
            print("# ended early; what is not run is not alike")
        verdicts = {way: judge(way, plan[way], top) for way in chosen}
        if is_whole:
            ask_again(options, known, plan, verdicts, top)
        good = report(verdicts, skipped, plan, options.why)
        if not options.twice:
            good = check_records(chosen, plan, known, top) and good
        if options.slowest:
            report_slowest(top, options.slowest)
    return 0 if good else 1


def why_known(way, line):
    """Why a line of judge() is known to differ, in every mode or in those that begin with a word."""
    return KNOWN.get(way) or KNOWN.get(f"{way} {re.split('[-:]', line)[0]}")


def ask_again(options, known, plan, verdicts, top):
    """Ways of several processes race, so their output may differ by chance: one that differs is run anew,
    without us as well, and the second verdict counts.  What differed at first is told."""
    from harness import OF_RANKS
    again = [way for way, (word, _) in verdicts.items() if word == "not ok" and known[way].theme in OF_RANKS]
    if not again or options.twice:
        return
    below = os.path.join(top, "again")
    os.makedirs(below, exist_ok=True)
    cases = {PLAIN: again}
    for way in again:
        print(f"# {way} differed at first: {verdicts[way][1][0]}")
        for mode in plan[way]:
            cases.setdefault(mode, []).append(way)
    run_cases(options.build, cases, below, options.jobs)
    for way in again:
        verdicts[way] = judge(way, plan[way], below)


def report(verdicts, skipped, plan, why):
    for way, reason in skipped:
        print(f"skip {way}: {reason}")
    counts = {"ok": 0, "not ok": 0, "skip": 0, "known": 0}
    with open(why, "w", encoding="utf-8") as f:
        for way, (word, lines) in verdicts.items():
            if word == "not ok" and all(why_known(way, line) for line in lines):
                word, lines = "known", [why_known(way, lines[0])]
            counts[word] += 1
            print(f"{word} {way}" + (f": {lines[0]}" if word in ("skip", "known") else ""))
            if word == "not ok":
                print("".join(f"    {line}\n" for line in lines[:6]), end="")
                f.writelines(f"{way}\t{line}\n" for line in lines)
    for mode in MODES:
        ways = [way for way, modes in plan.items() if mode in modes and verdicts[way][0] != "skip"]
        lines = [(way, line) for way in ways for line in verdicts[way][1] if line.startswith(name_of(mode) + ": ")]
        known = {way for way, line in lines if why_known(way, line)}
        if ways:
            print(f"# {name_of(mode)}: {len(ways)} ways, {len({way for way, _ in lines} - known)} differ, {len(known)} known to")
    cases = sum(len(modes) for modes in plan.values())
    print(f"# {len(verdicts)} ways, {cases} cases: {counts['ok']} alike, {counts['not ok']} not, "
          f"{counts['known']} known to differ, {counts['skip'] + len(skipped)} skipped")
    return counts["not ok"] == 0


if __name__ == "__main__":
    sys.exit(main())
