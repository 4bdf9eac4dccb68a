#!/bin/sh
# SPDX-License-Identifier: MIT
# What `msprobe doctor` says of this machine is what others say of it, and it ends whatever they do.
#   B=build  PYTHON=/usr/bin/python3
suite=doctor
. tests/support/checks.sh
said_of() { "$msprobe" doctor --python "$PYTHON" "$@" 2>"$said"; }
can() { said_of --format json | "$PYTHON" -c 'import json, sys
print(next(c["can"] for c in json.load(sys.stdin)["checks"] if c["name"] == sys.argv[1]))' "$1"; }
fact() { said_of --format json | "$PYTHON" -c 'import json, sys
print(next(c["fact"] for c in json.load(sys.stdin)["checks"] if c["name"] == sys.argv[1]))' "$1"; }

for flavour in openmpi mpich; do
    wanted=no
    [ ! -e "$build/libmstx_mpi_$flavour.so" ] || wanted=partly
    ! command -v "mpirun.$flavour" >/dev/null || [ $wanted = no ] || wanted=yes
    check "$flavour is $wanted" is "$(can $flavour)" $wanted
done
for package in torch mindspore; do
    version=$("$PYTHON" -c "import $package; print($package.__version__)" 2>/dev/null)
    if [ -z "$version" ]; then
        check "no $package" is "$(can $package)" no
    elif ls "$build"/python/msprobe/_probe*.so >/dev/null 2>&1 && ! is_sanitized; then
        check "$package $version" is "$(fact $package | cut -d, -f1)" "$version"
    fi
done
check 'a Python that is not there' is "$("$msprobe" doctor --python /nowhere --format json | grep -c 'cannot be run here')" 2
mute() { # programs that say nothing of themselves, and that fail
    mkdir -p "$scratch/bin"
    printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/mpirun"
    printf '#!/bin/sh\nprintf "\\033[31mOpen MPI"\nkill -9 $$\n' >"$scratch/bin/mpirun.openmpi"
    chmod +x "$scratch/bin/mpirun" "$scratch/bin/mpirun.openmpi"
    PATH=$scratch/bin:$PATH "$msprobe" doctor --python "$scratch/bin/mpirun" >"$scratch/out" 2>"$said" &&
        grep -qE '^(no|partly) +Open MPI' "$scratch/out"
}
check 'programs that fail' mute
# Each thing that is missing has a remedy: a machine that lacks it is made, and the row read.
lacks() { # NAME STATE WORDS-OF-REMEDY COMMAND...: the command's doctor says that
    row=$1 state=$2 words=$3
    shift 3
    "$@" --format json >"$scratch/lacks" 2>"$said"
    "$PYTHON" -c 'import json, sys
row = next(c for c in json.load(open(sys.argv[1]))["checks"] if c["name"] == sys.argv[2])
assert row["can"] == sys.argv[3] and sys.argv[4] in row["remedy"], row' "$scratch/lacks" "$row" "$state" "$words" 2>>"$said"
}
bare() { # a PATH with a shell alone
    mkdir -p "$scratch/bare"
    ln -sf "$(command -v sh)" "$scratch/bare/sh"
    PATH=$scratch/bare "$msprobe" doctor "$@"
}
half() { # a copy of msprobe without what records
    mkdir -p "$scratch/half"
    cp "$build/msprobe" "$build/libmsprobe_cli.so" "$scratch/half/"
    "$scratch/half/msprobe" doctor "$@"
}
broken() { # a package that is there and does not load
    mkdir -p "$scratch/packages/torch"
    printf 'raise ImportError("libcudart.so.12: no such\\nfile|ok")\n' >"$scratch/packages/torch/__init__.py"
    PYTHONPATH=$scratch/packages "$msprobe" doctor --python "$PYTHON" "$@"
}
none() { "$PYTHON" -S -c '' && "$msprobe" doctor --python "$scratch/isolated" "$@"; }
printf '#!/bin/sh\nexec "%s" -I -S "$@"\n' "$PYTHON" >"$scratch/isolated"
chmod +x "$scratch/isolated"
mpirun_alone() { # the launcher without our hooks
    mkdir -p "$scratch/launcher"
    printf '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n' >"$scratch/launcher/mpirun"
    chmod +x "$scratch/launcher/mpirun"
    PATH=$scratch/launcher:$PATH half "$@"
}
full_of() { env -u TERM "$msprobe" doctor "$@"; }
ascii() { TERM=xterm LC_ALL=C "$msprobe" doctor "$@"; }
check 'without a recorder' lacks recorder no 'install msprobe whole' half
check 'hooks without a launcher' lacks openmpi partly 'put it into PATH' bare
check 'a launcher without hooks' lacks openmpi no 'mpicc' mpirun_alone
check 'no Python' lacks torch no 'doctor --python FILE' bare
check 'no modules of ours' lacks torch no 'python3-dev' half
if ls "$build"/python/mstx*.so >/dev/null 2>&1 && ! is_sanitized; then
    check 'no PyTorch' lacks torch no 'pip install torch' none
    check 'no MindSpore' lacks mindspore no 'pip install mindspore' none
    check 'a PyTorch that does not load' lacks torch no "import torch' says" broken
fi
check 'no terminal' lacks terminal no 'set TERM' full_of
check 'a terminal of ASCII' lacks terminal partly 'LC_ALL=C.UTF-8' ascii
remedies() { # whatever lacks here, something is said against it
    for machine in bare half broken full_of; do
        $machine --format json >"$scratch/lacks" 2>"$said"
        "$PYTHON" -c 'import json, sys
assert all(c["can"] == "yes" or len(c["remedy"]) > 15 for c in json.load(open(sys.argv[1]))["checks"])' "$scratch/lacks" || return 1
    done
}
check 'each no has a remedy' remedies
rows() { said_of >"$scratch/rows" && ! grep -vqE '^(yes|partly|no) +[A-Za-z]|^ {20,}[^ ]' "$scratch/rows" &&
    is "$(grep -cE '^(yes|partly|no)' "$scratch/rows")" 13; }
check 'each line is a fact or a remedy' rows
full() { ! "$msprobe" doctor >/dev/full 2>"$said" && grep -q 'No space left' "$said"; }
check 'a disk that is full' full
exit $rc
