#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job in a minute: a sample program writes two dumps, one of a run with
# a fault, and msprobe says what is in them.  Everything lies in one folder.
set -e
B=${B:-build}
out=${1:-$B/demo}
rm -rf "$out"

say() { printf '\n$ %s\n' "$*"; }

say "$B/samples/two_dumps $out"
"$B/samples/two_dumps" "$out"
say "msprobe stat $out/clean"
"$B/msprobe" stat "$out/clean"
say "msprobe stat $out/faulty"
"$B/msprobe" stat "$out/faulty"

say "msprobe parse -d $out/faulty -t npy -o $out/npy"
"$B/msprobe" parse -d "$out/faulty" -t npy -o "$out/npy"

cat <<EOF

Both runs compute the same network; the second divides by a temperature of zero
before its softmax, and stat names that operator as the first one with NaN.
Look further:  $B/msprobe stat --format json $out/faulty
               $B/msprobe help
EOF
