# SPDX-License-Identifier: MIT
"""Walks the official packages msprobe.pytorch, msprobe.mindspore and msprobe.core and lists the public names that
ours do not have; a name that is missing has to be in the list below, with its reason.

    names_oracle.py PACKAGE [PACKAGE..]     PACKAGE: pytorch, mindspore, core; PYTHON is one with the official tool
    names_oracle.py --config                debugger.config has the official attributes and values

The official package is walked in a process of its own, and so is ours (OURS=folder with our package).
"""
import json
import os
import subprocess
import sys
import tempfile

# Names that ours do not have. package.name or package.Class.method: reason
KNOWN = {
    "core.SingleComparator.compare_data": "a step of the official compare(), which nobody calls from outside",
    "core.SingleComparator.compare_single_tag": "a step of the official compare()",
    "core.SingleComparator.get_array_paths": "a step of the official compare()",
    "core.SingleComparator.get_arrays": "a step of the official compare()",
    "core.SingleComparator.get_micro_steps": "a step of the official compare()",
    "core.SingleComparator.get_ranks": "a step of the official compare()",
    "core.SingleComparator.get_steps": "a step of the official compare()",
}
KNOWN.update((f"pytorch.TrainerMon.{name}", "a step of the official monitor, which calls it itself") for name in (
    "adhoc_check build_tbtag_tensor_map common_info dynamic_monitor generate_cc_metrics generate_mv_metrics generate_param_map "
    "generate_param_metrics get_linear_hook_target has_register_backward_hook hook_modules hook_optimizer hook_step_final ops "
    "register_hooks register_param_call_id set_config tensor_metrics write_adhoc_check write_features_tb write_grad_tb "
    "write_metrics_if_not_empty write_mv_tb write_param_tb write_stack_info write_xy_tb").split())

WALK = """
import importlib, inspect, json, sys, types
out = {}
p = importlib.import_module("msprobe." + sys.argv[1])
for n in dir(p):
    o = getattr(p, n)
    if n.startswith("_") or isinstance(o, types.ModuleType):
        continue
    out[n] = sorted(k for k in dir(o) if not k.startswith("_")) if inspect.isclass(o) else []
print("\\n" + json.dumps(out))
"""

CONFIG = """
import json, sys
from msprobe.pytorch import PrecisionDebugger
d = PrecisionDebugger(config_path=sys.argv[1], **json.loads(sys.argv[2]))
c = d.config
names = "task dump_path level rank step framework dump_enable extra_info async_dump precision risk_level scope list data_mode " \\
        "summary_mode slice_info request_id diff_nums bench_path".split()
print("\\n" + json.dumps({n: getattr(c, n) for n in names}))
"""


def fail(why):
    print(f"FAIL names: {why}")
    sys.exit(1)


def ask(code, path, *args):
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=path))
    if done.returncode != 0:
        fail(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def missing(package, ours):
    official, have = ask(WALK, "", package), ask(WALK, ours, package)
    for name, methods in official.items():
        if name not in have:
            yield f"{package}.{name}"
            continue
        for method in methods:
            if method not in have[name]:
                yield f"{package}.{name}.{method}"


def walk(packages, ours):
    bad = []
    for package in packages:
        lost = list(missing(package, ours))
        bad += [n for n in lost if n not in KNOWN]
        print(f"ok {package}: {len(lost)} official names missing" + "".join(f"\n   {n}: {KNOWN.get(n, '?')}" for n in lost))
    if bad:
        fail(f"not in the list: {bad}")


CONFIGS = [
    ({"task": "statistics", "dump_path": "/tmp/x", "rank": [], "step": [], "level": "L1",
      "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}, {}),
    ({"task": "tensor", "dump_path": "/tmp/x", "rank": [0, 1], "step": [1, "3-5"], "level": "L0", "precision": "high", "risk_level": "ALL",
      "tensor": {"scope": [], "list": ["relu"], "data_mode": ["forward"]}}, {}),
    ({"task": "structure", "dump_path": "/tmp/x", "level": "L1", "structure": {}}, {}),
    ({"task": "statistics", "dump_path": "/tmp/x", "level": "mix", "extra_info": False, "statistics": {"summary_mode": "md5"}}, {"level": "L0", "step": [2]}),
    ({"dump_path": "/tmp/x", "statistics": {}}, {"dump_path": "/tmp/y"}),
    ({"task": "statistics", "dump_path": "/tmp/x", "dump_enable": True, "statistics": {"list": ["a", "b"]}}, {}),
]


def configs(ours):
    with tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "config.json")
        for config, given in CONFIGS:
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            want, got = (ask(CONFIG, p, path, json.dumps(given)) for p in ("", ours))
            if want != got:
                fail(f"{config} {given}: " + str({k: (want[k], got[k]) for k in want if want[k] != got[k]}))
    print(f"ok {len(CONFIGS)} configurations: debugger.config as the official one")


if __name__ == "__main__":
    folder = os.path.abspath(os.environ.get("OURS", "build/python"))
    configs(folder) if sys.argv[1] == "--config" else walk(sys.argv[1:], folder)
