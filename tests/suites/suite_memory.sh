#!/bin/sh
# SPDX-License-Identifier: MIT
# `msprobe memory` and `msprobe dryrun` beside what PyTorch's profiler counts, and `msprobe run --memory`.
#   TORCH_INSTALL=DIR    where suite_torch_peers has installed a newer PyTorch
#   MEMORY_PROFILES="clean leak leak_third graph cache history"   runs whose profile is compared
#   MEMORY_MODELS="transformer cnn"   models that are planned; `all`: each of dryrun_models.py
suite=memory
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2
checker=tests/suites/memory_check.py

raw=../shared/traces/kineto/memory_timeline.raw.gz
if [ -r "$raw" ]; then
    check 'a published timeline has the peak and kinds that a recount has' \
        "$PYTHON" "$checker" "$msprobe" timeline "$raw"
else
    echo "skip timeline: no $raw"
fi

"$msprobe" memory "$scratch/none" >"$said" 2>&1
is $? 3 >/dev/null && says 'no such file' && ok 'a missing file is said' || bad 'a missing file'
"$msprobe" dryrun --device_memory 80x "$scratch/none" >"$said" 2>&1
is $? 2 >/dev/null && ok 'a size that is none is refused' || bad 'a size that is none'

shown='aligned_alloc calloc free malloc memalign posix_memalign realloc '
is "$(symbols_of "$build/libmstx_memory.so" | tr '\n' ' ')" "$shown" >"$said" &&
    ok 'libmstx_memory.so shows the functions of an allocator alone' || bad "libmstx_memory.so: $(cat "$said")"

# A C program: what it leaves and what it gives back.
cat >"$scratch/blocks.c" <<'C'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *kept[8] = {0};
    for (int i = 0; i < 8; i++) {
        char *p = calloc(1, 1 << 20), *q = malloc(3 << 20);
        if (p == NULL || q == NULL)
            return 1;
        memset(q, 1, 3 << 20);
        q = realloc(q, 5 << 20);
        kept[i] = p;
        free(q);
    }
    void *r;
    if (posix_memalign(&r, 4096, 2 << 20) != 0 || ((size_t)r & 4095) != 0)
        return 2;
    free(r);
    return kept[7][9];
}
C
if ! can_preload || is_sanitized; then
    echo 'skip blocks of a C program: a sanitizer has an allocator of its own'
elif cc -o "$scratch/blocks" "$scratch/blocks.c" 2>"$said"; then
    check 'a C program runs under --memory' "$msprobe" run -o "$run" --memory -- "$scratch/blocks"
    "$msprobe" memory --format json "$run" >"$scratch/blocks.json" 2>"$said"
    "$PYTHON" - "$scratch/blocks.json" <<'PY' && ok 'its peak is 8 MiB kept and 5 MiB more' || bad 'its peak'
import json, sys
peak = json.load(open(sys.argv[1]))["devices"][0]["peak"]["bytes"]
assert 13 << 20 <= peak <= (13 << 20) + (1 << 19), peak
PY
fi

python=${TORCH_INSTALL:+$TORCH_INSTALL/venv/bin/python}
[ -n "$python" ] && [ -x "$python" ] && "$python" -c 'import torch' 2>/dev/null || {
    echo 'skip PyTorch: TORCH_INSTALL=DIR has none'
    exit $rc
}
for name in ${MEMORY_PROFILES:-clean leak}; do
    "$python" tests/suites/memory_runs.py $name 12 --profile "$scratch/$name" >"$said" 2>&1 ||
        bad "the profile of $name"
    check "$name: trace, snapshot and timeline have the profiler's peak and kinds, and the leak" \
        "$PYTHON" "$checker" "$msprobe" profile $name "$scratch/$name"
done
is_sanitized || for case in clean leak leak_third graph cache history; do
    rm -rf "$run"
    "$python" tests/suites/memory_runs.py $case 16 >"$scratch/alone" 2>/dev/null
    "$msprobe" run -o "$run" --memory -- "$python" tests/suites/memory_runs.py $case 16 >"$scratch/with" 2>"$said"
    check "$case: the loss is the same to the bit under --memory" cmp "$scratch/alone" "$scratch/with"
    check "$case: a run names the line that leaks, or none" "$PYTHON" "$checker" "$msprobe" run $case "$run"
done

models=${MEMORY_MODELS:-transformer moe unet}
[ "$models" != all ] || models='transformer transformer-fused transformer-again transformer-deep moe cnn unet mlp resnet gated'
for name in $models; do
    printf '{"task": "statistics", "level": "mix", "dump_path": "%s", "rank": [], "step": [2], "statistics": {}}' \
        "$scratch/dump_$name" >"$scratch/config.json"
    rm -rf "$run"
    "$msprobe" run -o "$run" --dump "$scratch/config.json" -- "$python" tests/suites/dryrun_models.py $name >"$said" 2>&1 ||
        bad "the dump of $name"
    measured=$("$python" tests/suites/dryrun_models.py $name --measure 2>"$said" | sed 's/[^0-9]//g')
    dump=$(find "$scratch/dump_$name" -name dump.json | head -1)
    check "$name: the plan is within 10 % of what a step allocates" \
        "$PYTHON" "$checker" "$msprobe" plan "$dump" "$measured" 10
done
exit $rc
