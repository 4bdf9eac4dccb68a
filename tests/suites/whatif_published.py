# SPDX-License-Identifier: MIT
"""Compares the answers of `msprobe whatif` with those published with a production trace."""
import gzip
import json
import sys

part, traces, scratch = sys.argv[1:]
published = json.load(open(traces + "/result-ST.json"))
ours = json.load(open(scratch + "/types.json"))
bad = []


def near(name, got, want, limit=1e-4):
    if abs(got - want) > limit * abs(want):
        bad.append("%s: %.6f, published %.6f" % (name, got, want))


def by(list_name, key, result=ours):
    return {str(r[key]): r["slowdown"] for r in result[list_name]}


TABLES = {"by_stage": ("stage", "blocking_decompose_by_stage"), "by_dp_rank": ("dp_rank", "blocking_decompose_by_dp_rank"),
          "by_op": ("op", "blocking_decompose_by_optype"), "by_step": ("step", "blocking_step_slowdown")}

if part == "figures":
    near("slowdown", ours["slowdown"], published["blocking_slowdown"])
    mean = lambda k: sum(published[k].values()) / len(published[k])
    near("recorded", ours["recorded_seconds"], mean("step_t_base"))
    near("replayed", ours["replayed_seconds"], mean("step_t_nodelay"))
    near("ideal", ours["ideal_seconds"], mean("step_t_noblk"))
    for name, (key, table) in TABLES.items():
        got = by(name, key)
        if set(got) != set(published[table]):
            bad.append("%s: other rows than published" % name)
        for k, v in published[table].items():
            near("%s %s" % (name, k), got.get(k, 0), v)
    steps = {str(r["step"]): r["seconds"] for r in ours["by_step"]}
    for k, v in published["step_t_nodelay"].items():
        near("step %s" % k, steps[k], v)
    near("rank 7", by("by_rank", "rank")["7"], 1.2319)
    near("rank 6", by("by_rank", "rank")["6"], 1.2272)
    near("peers", ours["slowdown_to_peers"], 1.011, 1e-3)
    for key, name in (("last_stage", "ms"), ("worst_workers", "mw")):
        want, got = json.load(open("%s/%s-ST.json" % (traces, name))), ours[key]
        near(name + " rem", got["removes"], want["rem"])
        near(name + " add", got["adds"], want["add"])
        near(name + " trem", got["removed_seconds"], want["trem"])
        near(name + " tadd", got["added_seconds"], want["tadd"])
    if ours["worst_workers"]["ranks"] != [7]:
        bad.append("worst workers: %s" % ours["worst_workers"])
elif part == "order":
    for name, (key, table) in TABLES.items():
        want = sorted(published[table].items(), key=lambda kv: -kv[1])
        got = by(name, key)
        for (a, va), (b, vb) in zip(want, want[1:]):
            if va - vb > 1e-3 and got[a] <= got[b]:
                bad.append("%s: %s is not before %s" % (name, a, b))
elif part == "timeline":
    read = lambda t: {(e["pid"], e["tid"] // 5, e["args"]["step"], e["name"], e["args"]["seq_id"]): e["ts"] + e["dur"]
                      for e in t if e["ph"] == "X"}
    want = read(json.load(gzip.open(traces + "/ideal-timeline-ST.json.gz")))
    got = read(json.load(open(scratch + "/ideal-types.json")))
    if set(want) != set(got):
        bad.append("other operations than published")
    for k, v in want.items():
        if abs(got.get(k, 0) - v) > 1e-4 * 1.85e6 + 1e-6 * v:
            bad.append("%s ends at %.1f, published %.1f" % (k, got.get(k, 0), v))
elif part == "generic":
    generic = json.load(open(scratch + "/generic.json"))
    near("slowdown", generic["slowdown"], published["blocking_slowdown"], 2e-3)
    for name in ("by_stage", "by_dp_rank", "by_op"):
        key, table = TABLES[name]
        want = sorted(published[table].items(), key=lambda kv: -kv[1])
        got = by(name, key, generic)
        for (a, va), (b, vb) in zip(want, want[1:]):
            if va - vb > 1e-3 and got[a] <= got[b]:
                bad.append("generic %s: %s is not before %s" % (name, a, b))
elif part == "spans":
    spans = json.load(open(scratch + "/spans.json"))
    for k, v in published["step_t_nodelay"].items():
        path = [s for s in spans if s["timeline"] == 0 and str(s["step"]) == k]
        near("critical path of step %s" % k, sum(s["end_ns"] - s["start_ns"] for s in path) / 1e9, v)
    for k, v in published["step_t_noblk"].items():
        ideal = [s for s in spans if s["timeline"] == 1 and str(s["step"]) == k]
        near("ideal step %s" % k, (max(s["end_ns"] for s in ideal) - min(s["start_ns"] for s in ideal)) / 1e9, v)
print("\n".join(bad[:10]))
sys.exit(bool(bad))
