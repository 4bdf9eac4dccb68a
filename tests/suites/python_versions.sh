#!/bin/sh
# SPDX-License-Identifier: MIT
# The wheel with the oldest and the newest PyTorch of each Python, each in a virtual environment of its own.
#   python_versions.sh DIR [PYTHON,TORCH,NUMPY ...]
# DIR holds the environments, 2 GB each, of which one is there at a time; KEEP=1 keeps them. Pythons are those of
# the PATH or of pyenv. PyPI's wheels of PyTorch are for a device whose libraries stand-ins replace.
into=$1
shift
[ $# -ne 0 ] || set -- '3.9,1.7.1,<2' '3.9,2.8.0,<2' '3.10,1.11.0,<2' '3.10,2.14.1,>=2' '3.11,1.13.0,<2' '3.11,2.15.0,>=2' \
    '3.12,2.2.0,<2' '3.12,2.15.0,>=2' '3.13,2.5.0,>=2' '3.13,2.15.0,>=2'
mkdir -p "$into" && into=$(realpath "$into") || exit 1
status=0

find_python() { # VERSION
    for p in "$HOME"/.pyenv/versions/"$1".*/bin/"python$1" "$(command -v "python$1")"; do
        [ ! -x "$p" ] || { echo "$p"; return; }
    done
}
purelib() { "$place/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
pip() { timeout 500 "$place/bin/python" -m pip install -q --no-cache-dir --disable-pip-version-check "$@"; }
make_env() { # PYTHON TORCH NUMPY
    "$1" -m venv "$place" && pip --no-deps "torch==$2" &&
        pip "numpy$3" typing_extensions sympy networkx jinja2 fsspec filelock setuptools &&
        "$place/bin/python" tests/suites/vendor_standins.py "$(purelib)/torch/lib" &&
        "$place/bin/python" -c 'import torch' && : >"$place/ready"
}

for each; do
    version=${each%%,*} numpy=${each##*,}
    torch=${each#*,}
    torch=${torch%,*}
    place=$into/python$version-torch$torch
    python=$(find_python "$version")
    [ -n "$python" ] || { echo "skip Python $version: it is not here"; continue; }
    [ -e "$place/ready" ] || make_env "$python" "$torch" "$numpy" >"$into/log" 2>&1 ||
        { echo "skip Python $version, PyTorch $torch: $(tail -n 1 "$into/log")"; rm -rf "$place"; continue; }
    PYTHONS="$place/bin/python" TORCHES="$place/bin/python" sh tests/suites/suite_wheel.sh | grep -v '^skip further' || status=1
    [ -n "${KEEP:-}" ] || rm -rf "$place"
done
exit $status
