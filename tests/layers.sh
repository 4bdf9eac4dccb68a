#!/bin/sh
# SPDX-License-Identifier: MIT
# Who may include whom (the picture in README.md), one home for each third-party
# header, functions that product code must not call, and its own that it never calls.
rc=0
bad() { echo "layers: $*"; rc=1; }

# Quoted includes are written from the top folder; only the headers of the mstx ABI name each other
# as they lie side by side in whatever folder they are installed.
allow() {
    grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[ch]' "$1" 2>/dev/null |
        grep -vE '^probe/cli/|^mstx/ms(tx|_tools_ext).*"ms_tools_ext_mem\.h"' | grep -vE "\"($2)/" | grep . && bad "wrong include in $1"
}
allow probe/base 'probe/base'
allow probe 'probe'
allow mstx 'probe/base|mstx'
allow compare 'probe|compare'
allow viz 'probe|mstx|compare|viz'
allow web 'probe|mstx|compare|viz|web'

home() {
    grep -rlE "include <(.*/)?$1>" --include='*.[ch]' probe mstx compare viz web 2>/dev/null |
        grep -vE "^$2" | grep . && bad "$1 belongs to $2"
}
home sqlite3.h 'probe/base/store(_vtab|_func)?\.c'
home cJSON.h '(probe/base/conf\.c|web/api_)'
home microhttpd.h 'web/'
home 'n?curses.h' 'viz/tui_'
home yaml.h 'compare/'
home xlsxwriter.h 'compare/'
home mpi.h '(probe/par_mpi\.c|mstx/hook_mpi)'
home expat.h 'compare/'
home zlib.h '(compare/xlsx_read|web/asset)\.c'

product=$(find probe mstx compare viz web -name '*.[ch]' 2>/dev/null)
banned='\b(gets|strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|strtod|system|setlocale|abort)[[:space:]]*\('
# shellcheck disable=SC2086
grep -nE "$banned" $product | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(\*|//|/\*)' | grep . &&
    bad 'banned function'
# Memory comes from ms_alloc, where it is counted and can be made to fail.
# shellcheck disable=SC2086
grep -nE '(^|[^_a-z>.])(malloc|calloc|realloc|free|strdup|strndup|asprintf|getline)\(' $product |
    grep -vE '^probe/base/mem\.c:|:[[:space:]]*(\*|//|/\*)' | grep . && bad 'allocation past ms_alloc'
# Only the program ends the process.
# shellcheck disable=SC2086
grep -nE '(^|[^_a-z>.])_?exit\(' $product | grep -v '^probe/cli/' | grep . && bad 'exit in a library'
# shellcheck disable=SC2086
for f in $product; do
    head -3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || bad "$f: no licence line"
done
# A function of a header that is no public one is called somewhere, or the list says what it is for.
list=tests/data/for_tests.known
public='^(probe/(probe|dumper|base/err)|mstx/(mstx|ms_tools_ext).*)\.h$'
# shellcheck disable=SC2046
uncalled() { awk -f tests/uncalled.awk mstx/exports.map $(printf '%s\n' "$product" | grep -vE "$public"); }
{ uncalled; grep -v '^#' "$list" | sed 's/:.*//'; } | sort | uniq -u | grep . &&
    bad "called by no product code and not in $list, or in it for nothing"
dup=$(printf '%s\n' $product | sed 's|.*/||' | sort | uniq -d)
[ -z "$dup" ] || bad "file names used twice: $dup"
exit $rc
