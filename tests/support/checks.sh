# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: MIT
# What suites have in common; from the top folder:   suite=NAME; . tests/support/checks.sh
#   build, msprobe    what is tested: an absolute path, and the program
#   scratch, run      a folder that goes at the end, and a place for a run in it
#   check, ok, bad    tell how a test went; rc: the exit status of the suite
#   skip              ends the suite and says why; find_python: one that has packages of others
: "${suite:?which suite}"
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
build=$(cd "$B" && pwd) || exit 1
msprobe=$build/msprobe
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-$suite-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
run=$scratch/run
said=$scratch/said
rc=0
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR PYTHONPATH LD_PRELOAD
unset MSTX_OUT MSTX_INJECTION_PATH NVTX_INJECTION64_PATH MSTX_TORCH
# As many ranks as a test wants, whoever runs it on whatever machine.
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_btl_base_warn_component_unused=0
# What MPI, Python and PyTorch keep to the end of a process, or free as they should not, is no fault of ours.
ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:alloc_dealloc_mismatch=0:detect_odr_violation=0"
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_btl_base_warn_component_unused ASAN_OPTIONS

ok() { echo "ok $*"; }
bad() {
    echo "not ok $*"
    rc=1
}
# check NAME COMMAND...: the command succeeds; what was said last is shown when it does not.
check() {
    name=$1
    shift
    if "$@" >>"$said" 2>&1; then
        ok "$name"
        [ -z "$VERBOSE" ] || cat "$said"
    else
        bad "$name"
        sed 's/^/    /' "$said" | tail -25
    fi
    : >"$said"
}
is() { [ "$1" = "$2" ] || { echo "expected '$2', found '$1'"; return 1; }; }
says() { grep -q -- "$1" "$said"; }
fails() { ! "$@"; }
# A sanitizer must come first in a process: one that is a library of its own can be preloaded before us,
# which msprobe run does; for others $sanitizer: is there to be put before LD_PRELOAD.
is_sanitized() { nm -D "$build/libmstx.so" | grep -q '__asan_init\|__tsan_init'; }
sanitizer=$(ldd "$build/libmstx.so" 2>/dev/null | awk '/lib[at]san/ {printf "%s:", $3}')
can_preload() { ! is_sanitized || [ -n "$sanitizer" ]; }
# What a shared object shows, and that it needs none but the given libraries.
symbols_of() { nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^__\(asan\|ubsan\|odr\)' | sort; }
needs_only() { # FILE LIBRARY...
    file=$1
    shift
    for n in $(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
        case $n in lib*san.so.*) ! is_sanitized || continue ;; esac
        case " $* ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 " in
        *" $n "*) ;;
        *) echo "$file needs $n"; return 1 ;;
        esac
    done
}
skip() {
    echo "skip $suite: $1"
    exit 0
}
# find_python VARIABLE MODULE SECONDS PACKAGE...: $python has a module that is not of this project.
# It is $VARIABLE_PYTHON, or a virtual environment in the folder $VARIABLE_INSTALL, which gets the
# packages from PyPI if it is not there yet, or else $PYTHON.
find_python() {
    variable=$1 module=$2 limit=$3
    shift 3
    eval "python=\${${variable}_PYTHON:-} folder=\${${variable}_INSTALL:-}"
    if [ -z "$python" ] && [ -n "$folder" ]; then
        python=$folder/bin/python
        [ -x "$python" ] || make_venv "$folder" "$limit" "$@" >&2 ||
            skip "it could not be installed into $folder within $limit s; is PyPI reachable?"
    fi
    python=${python:-$PYTHON}
    "$python" -c "import $module" >/dev/null 2>&1 ||
        skip "$python has no $module; ${variable}_PYTHON=FILE or ${variable}_INSTALL=DIR"
}
make_venv() { # DIR SECONDS PACKAGE...
    venv=$1 seconds=$2
    shift 2
    "$PYTHON" -m venv "$venv" && timeout "$seconds" "$venv/bin/python" -m pip install -q "$@" && return
    rm -rf "$venv" # half of it would be taken for the whole next time
    return 1
}
