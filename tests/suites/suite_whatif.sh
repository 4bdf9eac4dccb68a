#!/bin/sh
# SPDX-License-Identifier: MIT
# `msprobe whatif` on a production trace whose slowdowns were published with it, and what it refuses.
suite=whatif
. tests/support/checks.sh
traces=../shared/traces/straggler_st

# A run of which rank 2 works longer by the tenth part of a step.
"$B/tests/tool_sim" "$scratch/sim" straggler 0.1 8 >/dev/null && "$msprobe" whatif --without rank:2 \
    --format json "$scratch/sim" >"$scratch/sim.json"
"$PYTHON" - "$scratch/sim.json" <<'PY' && ok 'the calls of a capture are replayed' || bad 'the calls of a capture'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["by_rank"][0]["rank"] == 2 and r["by_rank"][0]["slowdown"] > 1.04, r["by_rank"]
assert r["model_error"] < 0.015
assert 0.04 < 1 - r["changed_seconds"] / r["replayed_seconds"] < 0.12
PY
"$msprobe" report --format json "$scratch/sim" >"$scratch/said.json"
"$PYTHON" - "$scratch" <<'PY' && ok 'report and whatif say the same gain' || bad 'report and whatif differ'
import json, sys
r = json.load(open(sys.argv[1] + "/sim.json"))
said = [f["value"] for f in json.load(open(sys.argv[1] + "/said.json"))["findings"] if f["kind"] == "straggler"]
assert len(said) == 1 and abs(said[0] - (1 - r["changed_seconds"] / r["replayed_seconds"])) < 1e-4, said
PY
"$msprobe" whatif --without link:0-1 "$scratch/sim" >"$scratch/out" 2>&1
[ $? -eq 2 ] && ok 'a link that the run has not is refused' || bad 'a link that the run has not'

# The stored critical path leaves no time out, and most of it is the work of rank 2.
"$msprobe" sql --format json "$scratch/sim" "SELECT start_ns, end_ns, rank, kind FROM replay_spans WHERE timeline = 0" >"$scratch/path.json"
"$msprobe" sql --format json "$scratch/sim" "SELECT min(start_ns) AS a, max(end_ns) AS b FROM comm_ops" >"$scratch/span.json"
"$PYTHON" - "$scratch" <<'PY' && ok 'the critical path is stored' || bad 'the stored critical path'
import json, sys
load = lambda name: [list(r.values()) if isinstance(r, dict) else r for r in json.load(open(sys.argv[1] + name))]
rows, span = load("/path.json"), load("/span.json")[0]
assert all(a[1] == b[0] for a, b in zip(rows, rows[1:])), "gaps"
assert abs(rows[0][0] - span[0]) < 1e6 and abs(rows[-1][1] - span[1]) < 1e6, (rows[0], rows[-1], span)
work = [0] * 4
for a, b, rank, kind in rows:
    work[rank] += (b - a) * (kind == "work")
assert work[2] > 0.9 * sum(work), work
PY

# The report begins with the cause and its cost; of a clean run it says that there is none.
"$msprobe" report "$scratch/sim" | head -1 >"$scratch/out"
grep -q '^rank 2 makes the others wait in all steps: .* the job would take .* % less' "$scratch/out" &&
    ok 'a report begins with who makes the others wait' || bad 'a report begins with something else'
# Its evidence is the step in which that rank works most.
"$msprobe" sql "$scratch/sim" "SELECT f.from_ns = s.start_ns AND f.to_ns = s.end_ns AS at FROM rank_steps s, findings f
    WHERE s.rank = 2 AND f.kind = 'straggler' ORDER BY s.computing_ns DESC LIMIT 1" >"$scratch/out" 2>&1
tail -n +2 "$scratch/out" | grep -qx 1 && ok 'its evidence is the worst step' || bad "its evidence: $(cat "$scratch/out")"
"$B/tests/tool_sim" "$scratch/clean" clean 0 8 >/dev/null && "$msprobe" report --format json "$scratch/clean" >"$scratch/clean.json"
"$PYTHON" - "$scratch/clean.json" <<'PY' && ok 'nobody is an answer' || bad 'nobody is an answer'
import json, sys
kinds = [f["kind"] for f in json.load(open(sys.argv[1]))["findings"]]
assert "balance" in kinds and not {"straggler", "fail_slow"} & set(kinds), kinds
PY

# Programs that wait for one rank, for reasons that are known.
if command -v mpicc >/dev/null && command -v mpirun >/dev/null && mpirun --version | grep -q 'Open MPI' && can_preload; then
    mpicc -O2 -o "$scratch/wait_mpi" tests/waiting/wait_mpi.c -lpthread || bad 'wait_mpi does not compile'
    for case in compute:computes sleep:off_cpu write:writes late:computes both:computes+off_cpu none:; do
        cause=${case%:*} culprit=1
        [ "$cause" = both ] && cause=compute culprit=1,sleep,1
        (cd "$scratch" && MSTX_QUIET=2 timeout 120 mpirun -n 3 "$msprobe" run -o "$scratch/${case%:*}" -- \
            "$scratch/wait_mpi" blocking $cause $culprit 4 60 3) >"$scratch/out" 2>&1 || bad "wait_mpi ${case%:*}"
        "$msprobe" report --format json "$scratch/${case%:*}" >"$scratch/wait.json"
        "$PYTHON" - "$scratch/wait.json" "${case#*:}" <<'PY' && ok "the reason of wait_mpi ${case%:*}" || bad "the reason of wait_mpi ${case%:*}"
import json, sys
slow = [(f["ranks"], "+".join(sorted(f[key] for key in ("reason", "second_reason") if key in f)))
        for f in json.load(open(sys.argv[1]))["findings"] if f["kind"] in ("straggler", "fail_slow")]
assert slow == ([([1], sys.argv[2])] if sys.argv[2] else []), slow
PY
    done
    "$msprobe" report "$scratch/late" | head -1 >"$scratch/out"
    grep -q '^rank 1 makes the others wait in all steps, from .* to .* of the run: it computes' "$scratch/out" &&
        ok 'a rank that becomes slow has a beginning' || bad "a rank that becomes slow: $(cat "$scratch/out")"
    # A limit on CPU time is recorded of the rank that it holds back; root and its control groups are needed.
    (cd "$scratch" && MSTX_QUIET=2 timeout 120 mpirun -n 2 "$msprobe" run -o "$scratch/limit" -- \
        "$scratch/wait_mpi" blocking throttle 1 0 40 3) >"$scratch/out" 2>&1
    if grep -q 'no control group' "$scratch/out"; then
        echo 'skip limit: no control groups can be made'
    else
        "$msprobe" sql "$scratch/limit" "SELECT DISTINCT rank FROM events WHERE domain = 'use of the host' AND name = 'throttled'" |
            tail -n +2 | grep -qx 1 && ok 'a limit on CPU time is recorded' || bad 'a limit on CPU time'
    fi
    # Names of hosts differ, as in containers on one machine, but all ranks read one clock.
    if [ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null; then
        (cd "$scratch" && MSTX_QUIET=2 timeout 120 mpirun -n 3 unshare --uts \
            sh -c 'hostname "box$OMPI_COMM_WORLD_RANK"; exec "$0" "$@"' "$msprobe" run -o "$scratch/boxes" -- \
            "$scratch/wait_mpi" blocking compute 1 4 60 3) >"$scratch/out" 2>&1 || bad 'wait_mpi in boxes'
        "$msprobe" whatif --format json "$scratch/boxes" >"$scratch/boxes.json"
        "$PYTHON" - "$scratch/boxes.json" <<'PY' && ok 'containers of one boot are one clock' || bad 'containers of one boot'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["by_rank"][0]["rank"] == 1 and r["by_rank"][0]["slowdown"] > 1, r["by_rank"]
PY
    else
        echo 'skip boxes: no right to change the name of the host'
    fi
else
    echo 'skip wait_mpi: no Open MPI'
fi

if [ -d $traces ]; then
    cp $traces/timeline-ST.json.gz "$scratch/st.json.gz"
    for model in types generic; do
        "$msprobe" whatif --model $model --format json --ideal "$scratch/ideal-$model.json" \
            "$scratch/st.json.gz" >"$scratch/$model.json" || bad "whatif --model $model"
    done
    "$msprobe" sql --format json "$scratch/st.json.gz" "SELECT step, timeline, kind, rank, tid, start_ns, end_ns FROM replay_spans" >"$scratch/spans.json"
    for part in figures order timeline generic spans; do
        if "$PYTHON" tests/suites/whatif_published.py $part $traces "$scratch"; then
            ok "published $part"
        else
            bad "published $part"
        fi
    done
    "$msprobe" report "$scratch/st.json.gz" | head -1 >"$scratch/out"
    grep -q '^rank 7 makes the others wait\|^stage 3 (ranks 6, 7) makes the others wait' "$scratch/out" &&
        ok 'the report of a production trace begins with its cause' || bad "report: $(cat "$scratch/out")"
    # The ideal timeline is a run of its own, which has no slowdown.
    "$msprobe" whatif --format json "$scratch/ideal-types.json" >"$scratch/again.json"
    slowdown=$("$PYTHON" -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["slowdown"], 5))' \
        "$scratch/again.json")
    [ "$slowdown" = 1.0 ] && ok 'the ideal timeline has no slowdown' ||
        bad "the ideal timeline has a slowdown of $slowdown"
    gzip -dc $traces/timeline-ST.json.gz >"$scratch/plain.json"
    "$msprobe" whatif --format json "$scratch/plain.json" >"$scratch/plain.out"
    cmp -s "$scratch/plain.out" "$scratch/types.json" && ok 'compressed or not, the answer is the same' ||
        bad 'a compressed trace is answered differently'
    "$msprobe" whatif --without rank:7,rank:6 --format json "$scratch/plain.json" >"$scratch/without.json"
    "$msprobe" whatif --scale compute=0.9 --format json "$scratch/plain.json" >"$scratch/scale.json"
    "$PYTHON" - "$scratch" <<'PY' && ok 'changes are replayed' || bad 'changes are not replayed'
import json, sys
without = json.load(open(sys.argv[1] + "/without.json"))
scale = json.load(open(sys.argv[1] + "/scale.json"))
assert without["changed_seconds"] < without["replayed_seconds"]
assert 0.90 < scale["changed_seconds"] / scale["replayed_seconds"] < 0.93
PY
else
    skip "no $traces"
fi

printf '[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]' >"$scratch/other.json"
"$msprobe" whatif "$scratch/other.json" >"$scratch/out" 2>&1
[ $? -eq 3 ] && grep -q 'no operations' "$scratch/out" && ok 'a trace without ranks that meet is refused' ||
    bad 'a trace without ranks that meet is not refused'
head -c 1000000 /dev/zero | gzip -9 >"$scratch/bomb.gz"
"$msprobe" whatif "$scratch/bomb.gz" >"$scratch/out" 2>&1
[ $? -eq 3 ] && ok 'a compressed file that is no trace is refused' || bad 'a compressed file of zeros'
exit $rc
