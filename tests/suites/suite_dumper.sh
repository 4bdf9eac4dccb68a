#!/bin/sh
# SPDX-License-Identifier: MIT
# What a C program dumps, read by others: msprobe itself, PyTorch, Python's json.
#   B=build PYTHON=python3
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-dumper-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
rc=0

# check NAME COMMAND...: the command succeeds; what it said is shown when it does not.
check() {
    name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$scratch/said" | head -10
        rc=1
    fi
}

counts_are_right() {
    "$B/msprobe" stat "$scratch/dump/step1/rank2" >"$scratch/stat"
    cat "$scratch/stat"
    grep -q 'records  *5: 5 api; 5 forward' "$scratch/stat" &&
        grep -q '14 with a file' "$scratch/stat"
}
python_reads_the_json() {
    "$PYTHON" - "$scratch"/dump/step?/rank2/*.json <<'EOF'
import json, sys
for path in sys.argv[1:]:
    with open(path) as f:
        text = f.read()
    # The same layout as the official writer's.
    assert json.dumps(json.loads(text), indent=1) == text, path
EOF
}
torch_reads_the_tensors() {
    "$PYTHON" - "$scratch/dump/step0/rank2" <<'EOF'
import inspect, json, os, sys, torch
rank = sys.argv[1]
safe = {"weights_only": True} if "weights_only" in inspect.signature(torch.load).parameters else {}
data = json.load(open(os.path.join(rank, "dump.json")))["data"]
leaves = [leaf for record in data.values() for part in ("input_args", "output")
          for leaf in record[part]]
assert len(leaves) == 14
for leaf in leaves:
    t = torch.load(os.path.join(rank, "dump_tensor_data", leaf["data_name"]), **safe)
    assert str(t.dtype) == leaf["dtype"] and list(t.shape) == leaf["shape"], leaf
    assert t.max().item() == leaf["Max"] and t.min().item() == leaf["Min"], leaf
    assert abs(t.norm().item() - leaf["Norm"]) <= 1e-6 * leaf["Norm"], leaf
EOF
}
config_is_obeyed() {
    cat >"$scratch/config.json" <<EOF
{"dump_path": "$scratch/chosen", "step": [1], "task": "statistics", "level": "L1",
 "risk_level": "ALL", "statistics": {"summary_mode": "md5", "list": ["silu"]}}
EOF
    RANK=0 "$B/samples/eval_callback" "$scratch/config.json" &&
        [ ! -e "$scratch/chosen/step0" ] &&
        [ "$(grep -c '"md5"' "$scratch/chosen/step1/rank0/dump.json")" -eq 2 ]
}
bad_config_spares_the_program() {
    echo '{"dump_path": "x", "level": "L9"}' >"$scratch/bad.json"
    "$B/samples/eval_callback" "$scratch/bad.json" >"$scratch/out" 2>"$scratch/err"
    grep -q '^first output' "$scratch/out" && grep -q 'level: expected one of' "$scratch/err"
}

check 'the sample runs' env RANK=2 "$B/samples/eval_callback" "$scratch/dump"
check 'msprobe counts what is there' counts_are_right
check 'a config.json is obeyed' config_is_obeyed
check 'a bad config.json spares the program' bad_config_spares_the_program
if command -v "$PYTHON" >/dev/null; then
    check 'the layout is that of Python' python_reads_the_json
else
    echo "skip the layout is that of Python: no $PYTHON"
fi
if "$PYTHON" -c 'import torch' 2>/dev/null; then
    check 'PyTorch reads the tensors' torch_reads_the_tensors
else
    echo 'skip PyTorch reads the tensors: no torch here'
fi
exit $rc
