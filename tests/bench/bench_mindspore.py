# SPDX-License-Identifier: MIT
"""CPU time that a dump adds to a training step of MindSpore, ours and the official tool's.

    bench_mindspore.py BUILD [OFFICIAL]    OFFICIAL is a folder with that package
    ONLY=PATTERN ROUNDS=3                  only configs whose name has it; so many turns
    bench_mindspore.py --one CONFIG        one training, as the parent starts it; - for none

It runs in a Python that has mindspore.  Trainings of all kinds take turns, so that each ratio is of
one time of day; the figure of a training is the median of its steps, and of a kind that of its
trainings.  Functions end before the next is called: threads of the framework that wait for each
other spin, and on a busy machine nearly all CPU time would be theirs.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, STEPS, SKIPPED = 3, 9, 2
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None
CONFIGS = {
    "mix": {"level": "mix"}, "L0": {"level": "L0"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
}


def one(config):
    """Milliseconds of CPU time of a step."""
    import mindspore
    from mindspore_models import MODELS
    from mindspore_oracle import have_kernels
    have_kernels()
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.set_context(pynative_synchronize=True)
    debugger = None
    if config != "-":
        from msprobe.mindspore import PrecisionDebugger
        debugger = PrecisionDebugger(config_path=config)
    model, loss_of = MODELS["block"]()
    step, costs = mindspore.value_and_grad(loss_of, None, model.trainable_params()), []
    for _ in range(STEPS):
        begin = time.process_time()
        if debugger:
            debugger.start(model)
        loss, _ = step()
        float(loss.asnumpy())
        if debugger:
            debugger.stop()
            debugger.step()
        costs.append(time.process_time() - begin)
    print("cost", 1000 * statistics.median(costs[SKIPPED:]), flush=True)


def measure(path, keys, folder):
    config = "-"
    if keys is not None:
        config = os.path.join(folder, "config.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"task": "statistics", "rank": [], "step": [],
                       "dump_path": os.path.join(folder, "out"), **keys}, f)
    env = {**os.environ, "PYTHONPATH": path, "GLOG_v": "3"}
    got = subprocess.run([sys.executable, __file__, "--one", config], env=env, text=True,
                         capture_output=True, check=True)
    return float(got.stdout.split("cost ")[1].split()[0])


def take_turns(tools, wanted):
    """(config, tool) -> what each of its trainings cost, as they come."""
    costs = {}
    turns = [(("plain", ""), tools["ours"], None)]
    turns += [((label, tool), path, keys) for label, keys in wanted for tool, path in tools.items()]
    for _ in range(int(os.environ.get("ROUNDS", ROUNDS))):
        for kind, path, keys in turns:
            with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
                cost = measure(path, keys, folder)
            print(f"  {' '.join(kind).strip()}: a step is {cost:.1f} ms", flush=True)
            costs.setdefault(kind, []).append(cost)
    return costs


def main():
    if sys.argv[1] == "--one":
        one(sys.argv[2])
        return
    ours = os.path.join(sys.argv[1], "python")
    tools = {"ours": ours} | ({"official": sys.argv[2]} if len(sys.argv) > 2 else {})
    pattern = os.environ.get("ONLY", "")
    costs = take_turns(tools, [(label, keys) for label, keys in CONFIGS.items()
                               if re.search(pattern, label)])
    middle = {kind: statistics.median(found) for kind, found in costs.items()}
    plain = middle.pop(("plain", ""))
    print(f"a step of the block without a dump: {plain:.1f} ms of CPU time")
    for (label, tool), cost in middle.items():
        line = f"{label} {tool}: {cost - plain:.1f} ms more"
        if tool == "official":
            line += f", ours is {(middle[label, 'ours'] - plain) / (cost - plain):.3f} of it"
        print(line)


if __name__ == "__main__":
    main()
