#!/bin/sh
# SPDX-License-Identifier: MIT
# Graph databases in the official TensorBoard plugin, there and back: tests/plugin_peer.py.
#   B=build
#   TENSORBOARD_PYTHON=FILE    a Python that has tb_graph_ascend
#   TENSORBOARD_INSTALL=DIR    without one: make a virtual environment there from PyPI
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
skip() {
    echo "skip tensorboard: $1"
    exit 0
}
install_it() { # DIR
    "$PYTHON" -m venv "$1" &&
        timeout 300 "$1/bin/python" -m pip install -q tensorboard tb_graph_ascend && return
    rm -rf "$1" # half of it would be taken for the whole next time
    return 1
}
if [ -z "${TENSORBOARD_PYTHON:-}" ] && [ -n "${TENSORBOARD_INSTALL:-}" ]; then
    [ -x "$TENSORBOARD_INSTALL/bin/python" ] || install_it "$TENSORBOARD_INSTALL" >&2 ||
        skip "it could not be installed into $TENSORBOARD_INSTALL within 300 s; is PyPI reachable?"
    TENSORBOARD_PYTHON=$TENSORBOARD_INSTALL/bin/python
fi
python=${TENSORBOARD_PYTHON:-$PYTHON}
"$python" -c 'import server.plugin' >/dev/null 2>&1 ||
    skip "$python has no tb_graph_ascend; TENSORBOARD_PYTHON=FILE or TENSORBOARD_INSTALL=DIR"
[ -x "$B/samples/train_mpi" ] || skip "the sample was not built; is there an MPI?"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-tensorboard-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
"$B/samples/train_mpi" --steps 1 --quiet --dump "$scratch/clean" >"$scratch/said" 2>&1 &&
    "$B/samples/train_mpi" --steps 1 --quiet --fault layer1.scale --dump "$scratch/faulty" \
        >"$scratch/said" 2>&1 || {
    echo "not ok the sample makes dumps: $(tail -1 "$scratch/said")"
    exit 1
}
"$python" tests/plugin_peer.py "$B/msprobe" "$scratch/faulty/step0/rank0" \
    "$scratch/clean/step0/rank0" "$scratch" 2>"$scratch/said" && exit
tail -n 5 "$scratch/said"
exit 1
