#!/bin/sh
# SPDX-License-Identifier: MIT
# The MindSpore adapter with several versions of MindSpore and numpy, each in a virtual environment.
#   mindspore_versions.sh BUILD DIR [VERSION,NUMPY ...]
#   WORD=name   only tests with this word in their name
# PYTHON is a Python of the version that the extension is built for.  PyPI has 2.7.0 as its first
# wheel for Python 3.11.  An environment that is there is used as it is.
build=$1
into=$2
shift 2
[ $# -ne 0 ] || set -- '2.7.0,<2' '2.8.0,<2' '2.9.0,<2' '2.10.0,<2' '2.10.0,>=2'
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2 GLOG_v=3
unset MSPROBE_DUMP

# A package's own bound on numpy is left aside: whether it holds is what is tried.
install() { # PYTHON VERSION NUMPY
    "$1" -m pip install -q "mindspore==$2" && "$1" -m pip install -q --no-deps "numpy$3"
}

status=0
for each; do
    version=${each%%,*}
    numpy=${each#*,}
    place=$into/$version-numpy$(echo "$numpy" | tr -dc '0-9<>')
    if [ ! -e "$place/ready" ]; then
        "${PYTHON:-python3}" -m venv "$place" && install "$place/bin/python" "$version" "$numpy" &&
            : >"$place/ready"
    fi
    if ! "$place/bin/python" -c 'import mindspore' 2>/dev/null; then
        echo "skip mindspore $version, numpy $numpy: it does not run here"
        continue
    fi
    echo "# mindspore $version, numpy $numpy"
    "$place/bin/python" tests/suites/suite_mindspore.py "$build" "${WORD:-}" || status=1
done
exit $status
