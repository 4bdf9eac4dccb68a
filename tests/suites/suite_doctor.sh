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
check 'a Python that is not there' is "$("$msprobe" doctor --python /nowhere --format json | grep -c 'could not be asked')" 2
mute() { # programs that say nothing of themselves, and that fail
    mkdir -p "$scratch/bin"
    printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/mpirun"
    printf '#!/bin/sh\nprintf "\\033[31mOpen MPI"\nkill -9 $$\n' >"$scratch/bin/mpirun.openmpi"
    chmod +x "$scratch/bin/mpirun" "$scratch/bin/mpirun.openmpi"
    PATH=$scratch/bin:$PATH "$msprobe" doctor --python "$scratch/bin/mpirun" >"$scratch/out" 2>"$said" &&
        grep -qE '^(no|partly) +Open MPI' "$scratch/out"
}
check 'programs that fail' mute
rows() { said_of >"$scratch/rows" && ! grep -vqE '^(yes|partly|no) +[A-Za-z]|^ {20,}[^ ]' "$scratch/rows" &&
    is "$(grep -cE '^(yes|partly|no)' "$scratch/rows")" 13; }
check 'each line is a fact or a remedy' rows
full() { ! "$msprobe" doctor >/dev/full 2>"$said" && grep -q 'No space left' "$said"; }
check 'a disk that is full' full
exit $rc
