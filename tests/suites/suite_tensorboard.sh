#!/bin/sh
# SPDX-License-Identifier: MIT
# Graph databases in the official TensorBoard plugin, there and back: tests/suites/plugin_peer.py.
#   B=build
#   TENSORBOARD_PYTHON=FILE    a Python that has tb_graph_ascend
#   TENSORBOARD_INSTALL=DIR    without one: make a virtual environment there from PyPI
suite=tensorboard
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2
find_python TENSORBOARD server.plugin 300 tensorboard tb_graph_ascend
[ -x "$B/samples/train_mpi" ] || skip "the sample was not built; is there an MPI?"

"$B/samples/train_mpi" --steps 1 --quiet --dump "$scratch/clean" >"$said" 2>&1 &&
    "$B/samples/train_mpi" --steps 1 --quiet --fault layer1.scale --dump "$scratch/faulty" \
        >"$said" 2>&1 || {
    echo "not ok the sample makes dumps: $(tail -1 "$said")"
    exit 1
}
"$python" tests/suites/plugin_peer.py "$B/msprobe" "$scratch/faulty/step0/rank0" \
    "$scratch/clean/step0/rank0" "$scratch" 2>"$said" && exit
tail -n 5 "$said"
exit 1
