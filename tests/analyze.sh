#!/bin/sh
# SPDX-License-Identifier: MIT
# Static analysis of the product code: gcc -fanalyzer, cppcheck, clang-tidy.
# tests/data/analyze.known lists the findings that are wrong, with the reason.
#   TOOLS="gcc cppcheck tidy"    which to run
#   ONLY=word                    only files with the word in their path
#   JOBS=2                       files at a time
all_tools='gcc cppcheck tidy'
tools=${TOOLS:-$all_tools}
jobs=${JOBS:-$(nproc)}
known=tests/data/analyze.known
work=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-analyze-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0
failed=0

files=$(find probe mstx compare viz web -name '*.c' 2>/dev/null | grep -F "${ONLY:-}" | sort)
defines="-I. -I${B:-build}"
defines="$defines -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DMS_VERSION=\"0\" -DMS_BUILD_FLAGS=\"0\""
defines="$defines -DMS_FLAVOUR=\"openmpi\" -DWEB_PAGE=\"web\""
modules=$(${PKG_CONFIG:-pkg-config} --cflags sqlite3 libcjson)
for m in ompi python3; do # what the hooks and the Python module are built against, where it is here
    modules="$modules $(${PKG_CONFIG:-pkg-config} --cflags "$m" 2>/dev/null | sed 's/-I/-isystem /g')"
done
[ -d "${B:-build}/mpi_openmpi" ] && modules="$modules -I${B:-build}/mpi_openmpi"

# All of bugprone and the analyzer, without what has only noise here: arguments of
# one type side by side, names that glibc reserves (_GNU_SOURCE), snprintf and memcpy
# as such, conversions that the intrinsics ask for, memcmp on floating-point numbers
# (bits are what is compared), memcpy of digits without a NUL, arrays of pointers,
# products of small constants, declarations made by a macro, branches of a table that
# say the same, bytes between members.
checks='-*,clang-analyzer-*,bugprone-*
-clang-analyzer-optin.performance.Padding
-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
-bugprone-branch-clone
-bugprone-easily-swappable-parameters
-bugprone-implicit-widening-of-multiplication-result
-bugprone-macro-parentheses
-bugprone-misplaced-widening-cast
-bugprone-narrowing-conversions
-bugprone-not-null-terminated-result
-bugprone-reserved-identifier
-bugprone-sizeof-expression
-bugprone-suspicious-memory-comparison'
checks=$(printf '%s\n' "$checks" | paste -sd,)

# A command over all files, with {} for one of them and tests/support/analyzer.h in front,
# but for the files that define what that header wraps.
each_file() { # command...
    # shellcheck disable=SC2016,SC2086
    printf '%s\n' $files | xargs -P "$jobs" -I{} sh -c '
        case $1 in
        probe/base/err.c | probe/base/arena.c | probe/base/jread.c) shift; exec "$@" ;;
        *) shift; exec "$@" -include tests/support/analyzer.h ;;
        esac' each {} "$@"
}

# Shifts are not looked at by gcc: it takes the lanes of a vector for its width.
# shellcheck disable=SC2086
run_gcc() {
    each_file gcc -std=c17 -O1 -fanalyzer -Wno-analyzer-shift-count-overflow $defines $modules -c -o /dev/null {}
}
# cppcheck reads no header of others: it is told which processor this is, and what returns.
# shellcheck disable=SC2086
run_cppcheck() {
    cppcheck -q -D__x86_64__ "-DPy_RETURN_NONE=return 0" --enable=warning,portability --inline-suppr --std=c11 -j "$jobs" \
        --template='{file}:{line}:{column}: {severity}: {message} [{id}]' $defines $files
}
# shellcheck disable=SC2086
run_tidy() {
    each_file clang-tidy -quiet "-checks=$checks" {} -- -std=c17 $defines $modules
}

# Lines of "file:line:column: kind: message" that are not on the list; a file may be
# named by its full path.
unknown_of() { # output
    sed "s|^$(pwd)/||; s|^\./||" "$1" | grep -E '^[^ :]+:[0-9]+:[0-9]+: (warning|error|portability)' |
        sort -u >"$work/found"
    cat "$work/found" >>"$work/all"
    awk -v known="$work/known" '
        BEGIN { while ((getline line < known) > 0) { at = index(line, ": ")
            file[++n] = substr(line, 1, at - 1) ":"; words[n] = substr(line, at + 2) } }
        { for (i = 1; i <= n; i++) if (index($0, file[i]) == 1 && index($0, words[i])) next; print }
    ' "$work/found"
}

report() { # tool
    "run_$1" >"$work/$1" 2>&1
    grep -E '^([^ ]+: )?(fatal )?error: |^Error ' "$work/$1" | grep -v '^[^ :]*:[0-9]*:[0-9]*: error' >"$work/broken"
    unknown_of "$work/$1" >"$work/new"
    if [ -s "$work/new" ] || [ -s "$work/broken" ]; then
        failed=$((failed + 1))
        echo "not ok $1"
        cat "$work/new" "$work/broken"
    else
        passed=$((passed + 1))
        echo "ok $1"
    fi
}

# Entries of the list that no tool reported; the tools must all have run.
unused() {
    while IFS= read -r line; do
        file=${line%%: *}
        grep "^$file:" "$work/all" | grep -qF "${line#*: }" || echo "$known: no longer found: $line"
    done <"$work/known"
}

grep -v '^#' "$known" >"$work/known"
: >"$work/all"
for t in $tools; do
    report "$t"
done
if [ "$tools" = "$all_tools" ] && [ -z "${ONLY:-}" ]; then
    unused >"$work/unused"
    if [ -s "$work/unused" ]; then
        failed=$((failed + 1))
        echo 'not ok list of known findings'
        cat "$work/unused"
    fi
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
