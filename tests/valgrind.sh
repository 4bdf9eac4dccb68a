#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit tests, and every screen of the terminal viewer, under valgrind: no bad access, nothing undefined, no leak.
#   B=build        what to test
#   ONLY=word      only what has the word in its name
B=${B:-build}
export LC_ALL=C.UTF-8 TZ=UTC
# One process, so that what a test leaves behind is seen.  Only what is surely lost
# counts: SQLite keeps pointers into its blocks, and a test may end a child at once.
export CK_FORK=no
# A record of what a recorder keeps by time is not compared.
export TIMES_ARE_OTHERS=1
logs=$B/tests/valgrind
mkdir -p "$logs"
passed=0
failed=0

run() { # program
    name=$(basename "$1")
    # Children of these map room behind a file's end, where a leak check gets a signal for each word.
    case $name in test_plugin | test_rt_drawn) leaks=no ;; *) leaks=full ;; esac
    if timeout 1800 valgrind -q --leak-check=$leaks --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite --error-exitcode=9 --num-callers=20 \
        --suppressions=tests/data/valgrind.supp "$1" >"$logs/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "not ok $name; $logs/$name.log"
        grep -E -A8 '^==|:[EF]:' "$logs/$name.log" | head -20
    fi
}

command -v valgrind >/dev/null || { echo "valgrind: not here; sh tests/deps.sh ci installs it"; exit 1; }
for t in "$B"/tests/test_*; do
    case $t in *.o | *.d | *'*') continue ;; esac
    case $t in *"${ONLY:-}"*) run "$t" ;; esac
done
# Every screen of the terminal viewer: an error also shows as another screen or exit status.
view() { # WHAT COMMAND...
    what=$1
    shift
    : >"$logs/terminal.log"
    if "$@" >"$logs/view.log" 2>&1 && ! grep -q '^==' "$logs/view.log"; then
        passed=$((passed + 1))
        echo "ok $what"
    else
        failed=$((failed + 1))
        echo "not ok $what; $logs/view.log"
        cat "$logs/view.log" "$logs/terminal.log" | grep -v '^ok' | head -20
    fi
}
# The keys on a real terminal, through ncurses, at sizes that change.
on_terminal() { # TERM KEYS PATH [option]
    view "the viewer on $1 at $3 ${4:-}" "${PYTHON:-/usr/bin/python3}" tests/suites/view_pty.py "$1" "$(printf '%b' "$2")" \
        valgrind -q --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --error-exitcode=9 \
        --keep-debuginfo=yes --log-file="$logs/terminal.log" --suppressions=tests/data/valgrind.supp "$B/msprobe" view ${4:-} "$tmp/$3"
}
case view in
*"${ONLY:-}"*)
    view "screens of the viewer" env UNDER="valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9" \
        sh tests/suites/suite_view.sh
    tmp=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-valgrind-XXXXXX") || exit 1
    trap 'rm -rf "$tmp"' EXIT
    "$B/tests/tool_sim" "$tmp/sim" straggler 0.3 1 2 2 2 30 >/dev/null && "$B/msprobe" import "$tmp/sim" >/dev/null
    "${PYTHON:-/usr/bin/python3}" tests/web/page/make_graph.py "$tmp/d" 500 && "$B/msprobe" graph_visualize -tp "$tmp/d" -o "$tmp/g" >/dev/null
    mv "$tmp"/g/*.vis.db "$tmp/pair.vis.db"
    on_terminal xterm-256color '2E}iqSqvvv/relu\n\\\\Torch\n\0033?/err\0033:sql SELECT 1\n4\t\t\t1:nope\n' pair.vis.db
    on_terminal vt100 '3jwwwd.,}{llll lll i q/step\n\00334\t\t\t1\n' sim
    on_terminal linux '3jww1 \n' sim --live
    ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
