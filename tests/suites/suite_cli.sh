#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the command-line cases: each tests/cli/NAME.sh in a clean folder of its
# own, then compares what it printed with the files beside it:
#   NAME.stdout.exact  NAME.stderr.exact   the very text
#   NAME.stdout.glob   NAME.stderr.glob    a pattern for each line: * ? [...]
#   NAME.exit                              exit status; 0 when there is no such file
# A stream without a file must be empty.  In a case $MSPROBE is the program and
# $CASES this folder; "exit 77" after a line on stdout skips the case.
#   sh tests/suites/suite_cli.sh [--update] [NAME...]    --update writes the exact files anew
B=${B:-build}
update=
[ "${1:-}" = --update ] && update=y && shift

top=$(pwd)
case $B in /*) build=$B ;; *) build=$top/$B ;; esac
MSPROBE=$build/msprobe
CASES=$top/tests/cli
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-cli-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export MSPROBE CASES
export TZ=UTC LANG=C.UTF-8 LC_ALL=C.UTF-8 COLUMNS=80 TERM=dumb
unset NO_COLOR MSPROBE_DEBUG MSPROBE_LOG MSPROBE_CPU MSPROBE_FAIL_ALLOC
failed=0

# The words of a glob line are a pattern of the shell, matched against the whole line.
matches_globs() { # got wanted
    exec 3<"$1" 4<"$2"
    while :; do
        got=y && wanted=y
        IFS= read -r line <&3 || got=
        IFS= read -r pattern <&4 || wanted=
        [ "$got" = "$wanted" ] || break
        [ -n "$got" ] || { exec 3<&- 4<&-; return 0; }
        # shellcheck disable=SC2254  # a pattern is what it is
        case $line in $pattern) ;; *) break ;; esac
    done
    exec 3<&- 4<&-
    return 1
}

# Leaves the difference in the file diff.
stream_is_right() { # base got
    if [ -e "$1.glob" ]; then
        matches_globs "$2" "$1.glob" && return
        diff "$1.glob" "$2" >"$scratch/diff"
        return 1
    fi
    if [ -n "$update" ]; then
        rm -f "$1.exact"
        [ ! -s "$2" ] || cp "$2" "$1.exact"
        return 0
    fi
    wanted=$1.exact
    [ -e "$wanted" ] || wanted=/dev/null
    diff "$wanted" "$2" >"$scratch/diff"
}

status_is_right() { # base got
    if [ -n "$update" ]; then
        rm -f "$1.exit"
        [ "$2" -eq 0 ] || echo "$2" >"$1.exit"
        return 0
    fi
    wanted=0
    [ ! -e "$1.exit" ] || wanted=$(cat "$1.exit")
    [ "$wanted" = "$2" ] && return
    echo "exit status $2, expected $wanted" >"$scratch/diff"
    return 1
}

run_case() {
    name=$(basename "$1" .sh)
    mkdir "$scratch/$name"
    (cd "$scratch/$name" && sh "$CASES/$name.sh") >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    if [ $status -eq 77 ]; then
        echo "skip $name: $(tail -1 "$scratch/out")"
        return
    fi
    if status_is_right "$CASES/$name" $status &&
        stream_is_right "$CASES/$name.stdout" "$scratch/out" &&
        stream_is_right "$CASES/$name.stderr" "$scratch/err"; then
        echo "ok $name"
        return
    fi
    echo "not ok $name"
    cat "$scratch/diff"
    [ ! -s "$scratch/err" ] || sed 's/^/stderr: /' "$scratch/err" | head -5
    failed=1
}

if [ $# -eq 0 ]; then
    for c in tests/cli/*.sh; do run_case "$c"; done
else
    for c; do run_case "$c"; done
fi
exit $failed
