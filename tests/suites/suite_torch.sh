#!/bin/sh
# SPDX-License-Identifier: MIT
# Marks of PyTorch that a program does not make itself: with a torch of a few lines for what can
# go wrong, and with the real one where it is installed.
#   B=build        what to test
suite=torch
. tests/support/checks.sh
if ! can_preload; then
    echo "skip marks of torch: a sanitizer must be first in a process"
    exit 0
fi
if [ ! -x "$PYTHON" ] || [ ! -e "$build/python/mstx.so" ]; then
    echo "skip marks of torch: the Python module is not built"
    exit 0
fi

# under NAME OPTIONS...: runs $scratch/NAME.py, its output in $scratch/out.
under() {
    program=$scratch/$1.py
    shift
    rm -rf "$scratch/run"
    "$msprobe" run -o "$scratch/run" "$@" "$PYTHON" "$program" >"$scratch/out" 2>"$scratch/err"
}
count() { # how many events of that name the run has
    "$msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE name = '$1' AND domain = 'torch'" |
        tail -1 | tr -d ' '
}

# ---- a torch of a few lines --------------------------------------------------------------

fake=$scratch/fake
mkdir -p "$fake/torch/optim" "$fake/torch/utils/data"
cat >"$fake/torch/__init__.py" <<'END'
__version__ = "0.fake"
from . import optim, serialization, utils
from .serialization import save
END
cat >"$fake/torch/optim/__init__.py" <<'END'
class Optimizer:
    def __init__(self, name="o"):
        self.name = name

    def step(self, closure=None):
        """Steps."""
        return closure() if closure else self.name

class Twice(Optimizer):
    def step(self, closure=None):
        super().step()
        return super().step(closure)
END
cat >"$fake/torch/serialization.py" <<'END'
def save(what, where):
    if callable(what):
        what()
    return (what, where)
END
echo "from . import data" >"$fake/torch/utils/__init__.py"
echo "from . import dataloader" >"$fake/torch/utils/data/__init__.py"
cat >"$fake/torch/utils/data/dataloader.py" <<'END'
class _BaseDataLoaderIter:
    def __init__(self, n): self.left = n
    def __iter__(self): return self
    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left
END

cat >"$scratch/loop.py" <<'END'
import torch
a, b = torch.optim.Twice("a"), torch.optim.Optimizer("b")
for batch in torch.utils.data.dataloader._BaseDataLoaderIter(5):
    assert a.step() == "a" and b.step(lambda: 7) == 7
assert torch.save("w", 1) == ("w", 1) and torch.serialization.save is torch.save
assert a.step.__doc__ is None and b.step.__doc__ == "Steps." and b.step.__name__ == "step"
print("trained")
END
export PYTHONPATH="$fake"
loop() { under loop && is "$(cat "$scratch/out")" trained; }
check 'a training loop runs as without marks' loop
counts() {
    is "$(count dataloader)" 6 && is "$(count optimizer_step)" 10 && is "$(count save_checkpoint)" 1
}
check 'batches, optimizer steps and checkpoints are marked' counts
parted() { is "$(count step)" 6; }
check 'a step of a derived class is one, and the first optimizer parts the steps' parted
reported() { "$msprobe" report "$scratch/run" | grep 'steps: 5 by marks'; }
check 'report tells steps by them' reported
off() { under loop --no_torch && grep 'made no mark' "$scratch/err"; }
check 'an option switches them off' off
variable() { MSTX_TORCH=0 under loop && grep 'made no mark' "$scratch/err"; }
check 'a variable does so too' variable

# Marks of the program tell from inside which ranges must be open, and from outside that none is.
cat >"$scratch/nest.py" <<'END'
import mstx, torch
class Mine(torch.optim.Optimizer):
    def step(self):
        mstx.mark("optimizer_step")
        torch.save(lambda: mstx.mark("optimizer_step,save_checkpoint"), 1)
class Batches(torch.utils.data.dataloader._BaseDataLoaderIter):
    @property
    def left(self): return self.n
    @left.setter
    def left(self, n):
        self.n = n
        mstx.mark("dataloader" if n < 3 else "none")
o = Mine()
for batch in Batches(3):
    mstx.mark("none")
    o.step()
    mstx.mark("none")
torch.save(lambda: mstx.mark("save_checkpoint"), 2)
END
inside() { # what is open at each mark of the program, in time
    "$msprobe" sql "$scratch/run" "SELECT m.name, coalesce((SELECT group_concat(name) FROM (SELECT r.name FROM events r
        WHERE r.domain = 'torch' AND r.dur_ns > 0 AND m.start_ns BETWEEN r.start_ns AND r.start_ns + r.dur_ns
        ORDER BY r.start_ns)), 'none') FROM events m WHERE m.domain = 'default' ORDER BY m.start_ns" | tail -n +2
}
nested() {
    under nest && inside >"$scratch/inside" && is "$(wc -l <"$scratch/inside")" 18 &&
        awk -F '\t' '$1 != $2 {print "open at the mark " $1 ": " $2; bad = 1} END {exit bad}' "$scratch/inside"
}
check 'each range is open while that happens which it is called for, one in the other' nested
in_turn() {
    is "$("$msprobe" sql "$scratch/run" "SELECT name FROM events WHERE domain = 'torch' AND name <> 'garbage_collection' ORDER BY start_ns, dur_ns DESC" |
        tail -n +2 | tr '\n' ' ')" "$(for _ in 1 2 3; do printf 'step dataloader optimizer_step save_checkpoint '; done)step dataloader save_checkpoint "
}
check 'a step begins, waits for its batch and ends with the optimizer' in_turn

cat >"$scratch/raise.py" <<'END'
import torch
class Bad(torch.optim.Optimizer):
    def step(self): raise KeyError("mine")
for _ in range(2):
    try:
        Bad().step()
    except KeyError as e:
        print("caught", e)
END
raised() { under raise && is "$(grep -c "caught 'mine'" "$scratch/out")" 2 && is "$(count optimizer_step)" 2; }
check 'what a step raises comes through and its range ends' raised
ended() { is "$("$msprobe" report "$scratch/run" --format json | grep -c '"kind": "unfinished"')" 0; }
check 'no range stays open' ended

cat >"$scratch/own_steps.py" <<'END'
import mstx, torch
o = torch.optim.Optimizer()
for i in range(8):
    r = mstx.range_start(f"step {i}")
    o.step()
    mstx.range_end(r)
END
own() { under own_steps && "$msprobe" report "$scratch/run" | grep 'steps: 8 by ranges'; }
check 'steps that a program marks itself are the ones that count' own

# ---- what could go wrong -----------------------------------------------------------------

echo 'import torch' >"$scratch/missing.py"
no_torch() {
    (
        export PYTHONPATH=$scratch/nothing
        printf 'import sys\nsys.path[:] = [p for p in sys.path if "packages" not in p]\nimport torch\n' >"$scratch/missing.py"
        fails under missing && grep "ModuleNotFoundError: No module named 'torch'" "$scratch/err"
    )
}
check 'a missing torch is missing in the usual words' no_torch
broken_torch() {
    mkdir -p "$scratch/broken/torch"
    echo 'raise RuntimeError("half installed")' >"$scratch/broken/torch/__init__.py"
    printf 'for i in range(2):\n    try:\n        import torch\n    except RuntimeError as e:\n        print(e)\n' >"$scratch/twice.py"
    (export PYTHONPATH=$scratch/broken; under twice) && is "$(grep -c 'half installed' "$scratch/out")" 2
}
check 'a torch that does not load fails as it would, also the second time' broken_torch
other_torch() {
    mkdir -p "$scratch/other"
    echo 'x = 3' >"$scratch/other/torch.py"
    printf 'import torch\nprint(torch.x)\n' >"$scratch/x.py"
    (export PYTHONPATH=$scratch/other; under x) && is "$(cat "$scratch/out")" 3
}
check 'another thing named torch is left alone' other_torch
chained() {
    mkdir -p "$scratch/site"
    echo 'print("site of the program")' >"$scratch/site/sitecustomize.py"
    printf 'import sitecustomize\nprint(sitecustomize.__file__)\n' >"$scratch/site.py"
    (export PYTHONPATH=$scratch/site; under site) &&
        is "$(cat "$scratch/out")" "$(printf 'site of the program\n%s' "$scratch/site/sitecustomize.py")"
}
check 'a sitecustomize of the program runs and is the one that is imported' chained
failing_site() {
    echo 'raise ValueError("site fails")' >"$scratch/site/sitecustomize.py"
    echo 'print("on")' >"$scratch/on.py"
    (export PYTHONPATH=$scratch/site; under on) && is "$(cat "$scratch/out")" on && grep 'site fails' "$scratch/err"
}
check 'one that fails fails as it would' failing_site
same_path() {
    printf 'import sys\nprint(*sys.path, sep="\\n")\n' >"$scratch/path.py"
    "$PYTHON" "$scratch/path.py" >"$scratch/plain" && under path &&
        grep -v "^$build/python" "$scratch/out" | diff "$scratch/plain" -
}
check 'the rest of the search path is as before' same_path
isolated() { rm -rf "$scratch/run"; "$msprobe" run -o "$scratch/run" "$PYTHON" -I -c 'print(1)' 2>/dev/null; }
check 'an isolated interpreter runs' isolated

# ---- the real one ------------------------------------------------------------------------

unset PYTHONPATH
if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skip real torch: $PYTHON has none"
    exit $rc
fi
cat >"$scratch/real.py" <<'END'
import io, sys, torch
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
adam = torch.optim.AdamW(model.parameters(), lr=1e-2)
lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=2)
rate = torch.optim.lr_scheduler.StepLR(adam, 3)
x = torch.randn(64, 8)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
for workers in 0, 2:
    for a, b in torch.utils.data.DataLoader(data, batch_size=8, num_workers=workers):
        adam.zero_grad()
        loss = torch.nn.functional.mse_loss(model(a), b)
        loss.backward()
        adam.step()
        rate.step()
def closure():
    lbfgs.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    return loss
print("%.9g" % lbfgs.step(closure))
buffer = io.BytesIO()
torch.save({"model": model.state_dict(), "adam": adam.state_dict()}, buffer)
import copy, pickle
pickle.loads(pickle.dumps((torch.save, copy.deepcopy(adam))))
with torch.profiler.profile() as p:
    adam.step()
assert any("Optimizer.step#AdamW.step" in e.key for e in p.key_averages())
print("%.9g" % sum(v.double().sum() for v in model.state_dict().values()), file=sys.stderr)
END
real() {
    "$PYTHON" "$scratch/real.py" >"$scratch/plain" 2>"$scratch/plain_err" || return 1
    under real || { cat "$scratch/err"; return 1; }
    cmp "$scratch/plain" "$scratch/out" && grep -F "$(tail -1 "$scratch/plain_err")" "$scratch/err"
}
check 'real torch trains to the same bits under msprobe run' real
real_counts() {
    is "$(count dataloader)" 18 && is "$(count optimizer_step)" 18 && is "$(count save_checkpoint)" 1 &&
        is "$(count step)" 18
}
check 'and its batches, steps and checkpoint are marked' real_counts
exit $rc
