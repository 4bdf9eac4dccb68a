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
logs=$B/tests/valgrind
mkdir -p "$logs"
passed=0
failed=0

run() { # program
    name=$(basename "$1")
    if timeout 600 valgrind -q --leak-check=full --errors-for-leak-kinds=definite \
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
case view in
*"${ONLY:-}"*)
    if UNDER="valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9" \
        sh tests/suite_view.sh >"$logs/view.log" 2>&1 && ! grep -q '^==' "$logs/view.log"; then
        passed=$((passed + 1))
        echo "ok screens of the viewer"
    else
        failed=$((failed + 1))
        echo "not ok screens of the viewer; $logs/view.log"
        grep -v '^ok' "$logs/view.log" | head -20
    fi
    ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
