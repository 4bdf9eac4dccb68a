#!/bin/sh
# SPDX-License-Identifier: MIT
# msprobe bisect between two trainings with PyTorch, of which one has another eps, and where there is no answer.
#   PYTHON=PROGRAM   one that has PyTorch
suite=bisect
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2

bisect() { # FOLDER GOOD BAD WORDS...
    to=$scratch/$1 good=$2 bad_one=$3
    shift 3
    "$msprobe" bisect --good "$good" --bad "$bad_one" -o "$to" "$@" >"$said" 2>&1
}
bisect none true true
is $? 3 >/dev/null && says 'made no dump of step 0' && ok 'a program without a dump is said' || bad "no dump: $(cat "$said")"
bisect broken 'echo lost; exit 7' true
is $? 3 >/dev/null && says 'ended with status 7' && says 'good/log' && grep -q lost "$scratch/broken/good/log" &&
    ok 'a program that fails is said with its log' || bad "a failing program: $(cat "$said")"
bisect broken true true
is $? 2 >/dev/null && says 'is not empty' && ok 'old dumps are not taken for new ones' || bad "a used folder: $(cat "$said")"

if ! "$PYTHON" -c 'import torch' 2>/dev/null || ! PYTHONPATH=$build/python "$PYTHON" -c 'import msprobe._probe' 2>/dev/null; then
    echo "skip trainings: $PYTHON has no PyTorch, or the extension is for another"
    exit $rc
fi
cat >"$scratch/train.py" <<'P'
import sys
import torch
import torch.nn.functional as F
torch.set_num_threads(1)
if "unseeded" not in sys.argv:
    torch.manual_seed(3)
if "bad" in sys.argv:
    true = F.layer_norm
    F.layer_norm = lambda x, shape, w=None, b=None, eps=1e-5: true(x, shape, w, b, 0.05)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(8, 16), torch.randint(4, (8,))
for _ in range(2):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
P
train="$PYTHON $scratch/train.py"
bisect eps "$train" "$train bad" --step 1 &&
    says '^Functional.layer_norm.0.forward: ' && says 'inputs differ: a plain argument' && ok 'another eps is found' ||
    bad "another eps: $(cat "$said")"
check 'its program runs alone' env -i "$PYTHON" -I "$scratch/eps/bug/reproduce.py"
is "$(find "$scratch/eps/bad_tensors" -name '*.npy' -o -name '*.pt' | grep -vc 'layer_norm\|linear')" 0 >"$said" &&
    ok 'tensors of the suspects alone are dumped' || bad "tensors: $(cat "$said")"
bisect same "$train" "$train" && says 'nothing differs beyond noise' && ok 'equal programs are equal' ||
    bad "equal programs: $(cat "$said")"
bisect noisy "$train unseeded" "$train unseeded" && says 'two runs of --good differ' && ok 'a program without seeds is said' ||
    bad "no seeds: $(cat "$said")"
exit $rc
