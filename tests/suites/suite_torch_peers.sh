#!/bin/sh
# SPDX-License-Identifier: MIT
# The PyTorch adapter with the newest PyTorch of PyPI beside Debian's, and the dumps of both and of C
# in the hands of the official tool, mindstudio-probe, which comes from there as well.
#   B=build  PYTHON=/usr/bin/python3
#   TORCH_INSTALL=DIR    make a virtual environment and a folder of packages there, once
#   TORCH_PARTS="torch2 harm bugs readers figures"    what is run; harm walks every way to train in one mode, half of them
#                        with the newest PyTorch and the others with 2.1, dealt by SEED=WORD;
#                        HARM="--full": all ways in all modes with both;
#                        bugs compares every sixth bug of tests/bugs; figures are the suites quantise, judge,
#                        memory and advice with the newest PyTorch;
#                        oracle2 and oracle1, dumps of many programs beside the
#                        official tool's with the newest PyTorch and with Debian's, take minutes more
suite=torch_peers
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2
official=mindstudio-probe==26.2.0
[ -n "${TORCH_INSTALL:-}" ] || skip "TORCH_INSTALL=DIR says where to install its peers"
extension=$(ls "$build"/python/msprobe/_probe*.so 2>/dev/null | head -1)
[ -n "$extension" ] || skip "no extension was built; are there headers of Python?"
if ldd "$extension" | grep -q 'libasan\|libtsan'; then
    skip "the interpreter is built without the sanitizer"
fi
venv=$TORCH_INSTALL/venv
middle=$TORCH_INSTALL/venv21 # PyTorch 2.1, which many still train with
first=$TORCH_INSTALL/first # packages beside Debian's torch, which is for the first numpy
python=$venv/bin/python

packages_of() { "$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
pip() { timeout 500 "$python" -m pip install -q "$@"; }
# The wheel needs gigabytes of its device's libraries; stand-ins do where there is no device.
install_torch() {
    "$PYTHON" -m venv "$venv" && pip --no-deps torch &&
        pip numpy typing_extensions sympy networkx jinja2 fsspec filelock setuptools &&
        "$python" tests/suites/vendor_standins.py "$(packages_of)/torch/lib" &&
        "$python" -c 'import torch' && pip "$official" && touch "$venv/whole"
}
install_middle() {
    "$PYTHON" -m venv "$middle" && timeout 500 "$middle/bin/python" -m pip install -q --no-deps torch==2.1.2 &&
        timeout 500 "$middle/bin/python" -m pip install -q 'numpy<2' typing_extensions sympy networkx \
            jinja2 fsspec filelock setuptools &&
        "$middle/bin/python" tests/suites/vendor_standins.py \
            "$("$middle/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/torch/lib" &&
        "$middle/bin/python" -c 'import torch' && touch "$middle/whole"
}
install_first() {
    pip --target "$first" "$official" 'numpy<2' && touch "$first/whole"
}
once() { # DIR COMMAND: half of it would be taken for the whole next time
    [ -e "$1/whole" ] || "$2" >&2 || { rm -rf "$1" && return 1; }
}
wanted() { case " ${TORCH_PARTS:-torch2 harm bugs readers figures} " in *" $1 "*) return 0 ;; esac; return 1; }

once "$venv" install_torch || skip "PyTorch and $official could not be installed; is PyPI reachable?"
"$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); from msprobe import _probe' \
    "$build/python" 2>/dev/null || skip "the extension is for another version than $python"
echo "# PyTorch $("$python" -c 'import torch; print(torch.__version__)'), $official"

if wanted torch2; then
    PYTHON=$python sh tests/suites/suite_torch_dump.sh
    PYTHON=$python sh tests/suites/suite_gloo.sh
fi
if wanted harm; then
    PYTHON=$python HARM="${HARM:---brief --part 1/3:${SEED:-}}" sh tests/suites/suite_harm.sh
    if once "$middle" install_middle; then
        PYTHON=$middle/bin/python HARM="${HARM:---brief --part 2/3:${SEED:-}}" sh tests/suites/suite_harm.sh
    else
        echo "skip harm with PyTorch 2.1: it could not be installed"
    fi
fi
if wanted bugs; then "$python" tests/bugs/bench.py --sample 6; fi
if wanted figures; then
    for other in quantise judge memory advice; do TORCH_PYTHON=$python sh "tests/suites/suite_$other.sh"; done
fi
if wanted oracle2; then "$python" tests/suites/torch_oracle.py "$B" "$(packages_of)"; fi
if wanted readers; then "$python" tests/suites/dump_readers.py "$B" "$(packages_of)"; fi
if wanted oracle1; then
    if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
        echo "skip oracle1: $PYTHON has no torch"
    elif ! once "$first" install_first; then
        echo "skip oracle1: $official could not be installed beside it"
    else
        "$PYTHON" tests/suites/torch_oracle.py "$B" "$first"
    fi
fi
