#!/bin/sh
# SPDX-License-Identifier: MIT
# The wheel of `make wheel`, installed with pip in empty environments of every Python that is here, and used
# without a compiler: on a PATH that has nothing but the environment. With PyTorch where a Python here has one.
#   WHEEL=FILE     the wheel; without it the one below $B/portable
#   PYTHONS=...    Pythons to make environments of; without it all between 3.9 and 3.13 that are here
#   TORCHES=...    Pythons that have PyTorch; without it the system's and those of suite_torch_peers
B=${B:-build}
machine=$(uname -m)
WHEEL=${WHEEL:-$(ls "$B"/portable/msprobe-*_"$machine".whl 2>/dev/null | tail -n 1)}
if [ ! -e "$WHEEL" ]; then
    echo "skip wheel: there is none in $B/portable; make wheel builds it"
    exit 0
fi
WHEEL=$(realpath "$WHEEL")
data=$(realpath tests/data/parity/p2p_tensors)
symbols=$(realpath tests/portable/symbols.sh)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-wheel-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cd "$scratch" || exit 1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
rc=0

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$scratch/said" | head -20
        rc=1
    fi
}

# Versions 3.9 to 3.13: of the PATH, and where pyenv puts them; one of each.
pythons() {
    for v in 9 10 11 12 13; do
        for p in "$(command -v python3.$v)" "$HOME"/.pyenv/versions/3.$v.*/bin/python3.$v; do
            if [ -x "$p" ] && "$p" -c 'import venv, ensurepip' 2>/dev/null; then
                echo "$p"
                break
            fi
        done
    done
}
torches() {
    cache=${TORCH_INSTALL:-${XDG_CACHE_HOME:-$HOME/.cache}/msprobe-torch}
    for p in /usr/bin/python3 "$cache/venv21/bin/python" "$cache/venv/bin/python"; do
        [ ! -x "$p" ] || ! "$p" -c 'import torch' 2>/dev/null || echo "$p"
    done
}
version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# The environment alone: no compiler, no other Python, no program of the system.
within() { env -i HOME="$scratch" PATH="$env/bin" LC_ALL=C.UTF-8 "$@"; }

make_env() { # python
    env=$scratch/env
    rm -rf "$env" && "$1" -m venv "$env" &&
        "$env/bin/python" -m pip --disable-pip-version-check install -q --no-index --no-cache-dir "$WHEEL"
}
site() { "$env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }

# ---- the file --------------------------------------------------------------------

is_small() { [ "$(stat -c %s "$WHEEL")" -le 8388608 ]; }
needs_little() {
    "$(command -v python3)" -m zipfile -e "$WHEEL" "$scratch/content" && sh "$symbols" "$scratch/content" 2.28
}

# ---- in an empty environment -------------------------------------------------------

cat >marks.py <<'END'
import mstx

for i in range(20):
    step = mstx.range_start("step")
    mstx.range_end(step)
END
records_marks() {
    rm -rf run
    within msprobe run -o run -- python3 marks.py && within msprobe report run | grep '20 events'
}
imports_ours() {
    found=$(cd / && within python3 -c 'import msprobe._probe as p; print(p.__file__)') || return 1
    echo "$found"
    case $found in "$env"/lib/msprobe/python/msprobe/_probe.*) ;; *) return 1 ;; esac
}
selftest() { within msprobe selftest; }
compares() {
    within msprobe compare -tp "$data/target" -gp "$data/golden" -o "compared" && ls compared | grep compare_result
}
shows() {
    within python3 -c 'import msprobe; assert "<pre" in msprobe.show("run")._repr_html_()' | grep 'What is wrong'
}
has_manuals() { [ -s "$env/share/man/man1/msprobe-compare.1" ]; }
plant_official() {
    packages=$(site) && [ -n "$packages" ] || return 1
    mkdir "$packages/msprobe" && echo 'OFFICIAL = True' >"$packages/msprobe/__init__.py"
}
is_official() { (cd / && within python3 -c 'import msprobe; assert msprobe.OFFICIAL'); }
drop_in() { # on|off
    within msprobe drop-in "$1" >answer 2>&1
    cat answer
    grep -q "^$1: " answer && within msprobe drop-in | cmp - answer
}
leaves_nothing() {
    "$env/bin/python" -m pip --disable-pip-version-check uninstall -q -y msprobe &&
        ! find "$env" \( -name '*msprobe*' -o -name '*mstx*' \) ! -path '*/site-packages/msprobe*' | grep .
}

try_python() { # python
    v=$(version_of "$1")
    check "Python $v: pip installs the wheel with no network" make_env "$1"
    [ -x "$env/bin/msprobe" ] || return
    check "Python $v: the installed copy passes its own test" selftest
    check "Python $v: marks of a script are recorded and reported" records_marks
    check "Python $v: import finds the extension of this version" imports_ours
    check "Python $v: two dumps are compared" compares
    check "Python $v: show() has the findings of the run" shows
    check "Python $v: man pages are there" has_manuals
    plant_official
    check "Python $v: an official package is not shadowed" is_official
    check "Python $v: drop-in on says so" drop_in on
    check "Python $v: drop-in on puts this one in its place" imports_ours
    check "Python $v: drop-in off says so" drop_in off
    check "Python $v: drop-in off gives the official one back" is_official
    check "Python $v: nothing is left when pip removes it" leaves_nothing
}

# ---- with PyTorch ------------------------------------------------------------------

cat >train.py <<'END'
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(3, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
END
echo '{"task": "statistics", "level": "mix", "step": [], "rank": [], "dump_path": "dump"}' >config.json
# Packages of another environment, behind those that are installed in this one.
borrow_torch() { # python
    "$1" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$(site)/a_torch.pth"
    within python3 -c 'import torch'
}
dumps() {
    rm -rf dump run
    within msprobe run -o run --dump config.json -- python3 train.py >out || return 1
    within python3 train.py >plain && cmp out plain && within msprobe stat dump | grep . &&
        grep -q 'Linear.forward.0' "$(find dump -name dump.json | sort | head -n 1)"
}
reads_back() { within msprobe compare -tp dump -gp dump -o equal && find equal -name 'compare_result*.csv' | grep .; }
debugger_is() { # ours|official
    found=$(cd / && within python3 -c 'from msprobe.pytorch import PrecisionDebugger as d; import msprobe; print(msprobe.__path__[0])') || return 1
    echo "$found"
    case $1:$found in
    ours:"$env"/lib/msprobe/*) ;;
    official:"$env"/lib/msprobe/* | ours:*) return 1 ;;
    esac
}
try_torch() { # python
    make_env "$1" >/dev/null 2>&1
    torch="PyTorch $("$1" -c 'import torch; print(torch.__version__)'), Python $(version_of "$1")"
    check "$torch: an environment has it" borrow_torch "$1"
    check "$torch: run --dump dumps a plain script, whose loss stays" dumps
    check "$torch: the dump is compared" reads_back
    if "$1" -c 'import msprobe' 2>/dev/null; then
        check "$torch: the official debugger is found beside ours" debugger_is official
        check "$torch: drop-in on" drop_in on
    fi
    check "$torch: ours is found" debugger_is ours
}

check "the wheel has at most 8 MB: $(stat -c %s "$WHEEL") bytes" is_small
check 'no file in it needs a newer C library than 2.28' needs_little
count=0
for p in ${PYTHONS:-$(pythons)}; do
    try_python "$p"
    count=$((count + 1))
done
[ "$count" -ge 3 ] || echo "skip further Pythons: $count are here that can make environments; apt-get install python3-venv, or pyenv"
count=0
for p in ${TORCHES:-$(torches)}; do
    try_torch "$p"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || echo 'skip PyTorch: no Python here has it'
exit $rc
