#!/bin/sh
# SPDX-License-Identifier: MIT
# Who may include whom (the picture in README.md), one home for each third-party
# header, functions that product code must not call, and its own that it never calls.
rc=0
bad() { echo "layers: $*"; rc=1; }

# Quoted includes are written from the top folder; only the headers of the mstx ABI name each other
# as they lie side by side in whatever folder they are installed.  Commands belong to the program, so
# those of mstx and compare may use viz, whose words and places they show.
allow() {
    grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[ch]' "$1" 2>/dev/null |
        grep -vE '^probe/cli/|^(mstx|compare)/cmd/.*"viz/|^mstx/ms(tx|_tools_ext).*"ms_tools_ext_mem\.h"' | grep -vE "\"(($2)/|${3:-$2/}\")" | grep . && bad "wrong include in $1"
}
allow probe/base 'probe/base'
allow probe 'probe'
allow probe/dump 'probe/(base|dump|tensor)' 'probe/probe\.h'
allow probe/tensor 'probe/(base|tensor)'
allow probe/checkpoint 'probe/(base|tensor|checkpoint)'
allow probe/settings 'probe/(base|settings)'
allow probe/quantise 'probe/(base|quantise)'
allow probe/write 'probe/(base|dump|tensor|write)' 'probe/(probe|dumper)\.h'
allow probe/overflow 'probe/(base|dump|overflow)'
allow probe/trend 'probe/(base|dump|trend)'
allow probe/monitor 'probe/(base|tensor|monitor)' 'probe/write/typed\.h'
allow probe/python 'probe/(base|tensor|write|monitor|python)' 'probe/dumper\.h'
# A dump has one reader; conclude counts the operations of a step from it.
allow mstx 'probe/(base|settings)|mstx' 'probe/dump/(dump|tree)\.h'
allow mstx/read 'probe/base|mstx/(format|read)'
allow mstx/rundb 'probe/base|mstx/(format|rundb)'
allow mstx/cluster 'probe/base|mstx/(format|cluster)'
allow mstx/import 'probe/base|mstx/(format|read|rundb|cluster|import)'
allow mstx/conclude 'probe/base|mstx/(format|rundb|cluster|import|foreign|conclude)' 'probe/dump/dump\.h'
allow mstx/foreign 'probe/base|mstx/(foreign|import|rundb|cluster|read|format)'
allow mstx/launch 'probe/(base|settings)|mstx/(launch|format|read)'
allow mstx/official 'probe/base|mstx/(official|foreign|conclude|rundb)'
allow mstx/differ 'probe/base|mstx/(differ|conclude|rundb|format)'
allow mstx/memory 'probe/base|mstx/(memory|foreign|conclude|rundb|format)' 'probe/dump/(dump|tree)\.h'
allow mstx/cmd 'probe/(base|settings)|mstx/(cmd|launch|read|import|conclude|rundb|foreign|official|differ|memory)'
allow compare 'probe|compare'
# The stages of a comparison run one way; compare.h, which all include, lies beside them.
stages='probe'
heads='compare/compare\.h'
for room in read align pair measure judge table observe source write check run official; do
    stages="$stages|compare/$room"
    [ $room = official ] && heads='compare/(compare|graph/graph_rules)\.h' # its rules of a graph
    allow "compare/$room" "$stages" "$heads"
done
allow compare/config 'probe|compare/(read|write|config)'
allow compare/checkpoint 'probe|compare/(measure|checkpoint)'
allow compare/quantise 'probe|compare/(measure|quantise)'
allow compare/recompute 'probe/base|compare/recompute'
allow compare/blame 'probe|compare/(measure|pair|source|recompute|blame)' 'compare/compare\.h'
allow compare/reproduce 'probe|compare/(recompute|blame|reproduce)'
allow compare/bisect 'probe|compare/(recompute|blame|reproduce|bisect)'
heads='compare/(compare|graph/graph|graph/graph_rules)\.h'
graph='probe|compare/(read|pair|measure|judge|graph/build)'
allow compare/graph/build "$graph|compare/(source|table|write)" "$heads"
allow compare/graph/merge "$graph|compare/graph/merge" "$heads"
allow compare/graph/run "$graph|compare/graph/(merge|run)" "$heads"
allow compare/graph/view "$graph|compare/graph/view" "$heads"
allow viz 'probe|mstx|compare|viz'
shown='mstx/(rundb|conclude|foreign)|compare/graph/view' # what viewers show
allow viz/words 'probe/base|viz/words'
allow viz/model "probe/(base|dump|tensor|trend)|compare/write|$shown|mstx/(differ|memory)|viz/(words|model)"
allow viz/tui "probe/base|$shown|viz/(model|tui)"
allow viz/cmd 'probe/(base|cli)|viz/(model|tui)'
allow web 'probe|mstx|compare|viz|web'
allow web/api "probe/(base|trend)|$shown|viz/model|web/api"
allow web/serve 'probe/base|viz/model|web/(api|serve)'
allow web/cmd 'probe/(base|cli)|viz/model|web/serve'

# Of the recorder's rooms and those of its hooks single headers are named, and folders inside are other
# rooms.
room() {
    grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$1"/*.[ch] |
        grep -vE "\"($2)\"" | grep . && bad "wrong include in the room $1"
}
top='mstx/[a-z_]+\.h'
hooked='mstx/(format/comm|rt/comm_range|rt/hook_api|rt/clock_(sync|agree)|hook/real_function|hook/library_copy)\.h'
room mstx/format 'probe/base/[a-z]+\.h|mstx/format/[a-z_]+\.h'
room mstx/rt "probe/base/(assert|calm|compat|held)\.h|$top|mstx/(format|rt)/[a-z_]+\.h"
room mstx/rt/dev "$top|mstx/(format|rt|rt/dev)/[a-z_]+\.h"
room mstx/rt/nvtx 'mstx/(format|rt|rt/nvtx)/[a-z_]+\.h'
room mstx/hook "$top|$hooked"
room mstx/hook/mpi "$top|$hooked|mstx/hook/mpi/[a-z_]+\.h"
room mstx/hook/ccl "$top|$hooked|mstx/hook/ccl/[a-z_]+\.h"
room mstx/hook/alloc "$top|$hooked|mstx/format/memory_names\.h|mstx/hook/alloc/[a-z_]+\.h"

# A header *_int.h is for the files of its own room.
grep -rnE '^[[:space:]]*#[[:space:]]*include "[^"]*_int\.h"' --include='*.[ch]' probe mstx compare viz web 2>/dev/null |
    awk -F'[:"]' '{ from = $1; to = $4; sub("/[^/]*$", "", from); sub("/[^/]*$", "", to); if (from != to) print }' |
    grep . && bad 'an inner header is included outside of its room'

home() {
    grep -rlE "include <(.*/)?$1>" --include='*.[ch]' probe mstx compare viz web 2>/dev/null |
        grep -vE "^$2" | grep . && bad "$1 belongs to $2"
}
home sqlite3.h 'probe/base/store(_vtab|_guard|_pages)?\.c'
home cJSON.h '(probe/base/conf\.c|web/api/)'
home microhttpd.h 'web/'
home 'n?curses.h' 'viz/tui/'
home yaml.h 'compare/'
home xlsxwriter.h 'compare/'
home mpi.h '(probe/base/par_mpi\.c|mstx/hook/mpi/)'
home expat.h 'compare/'
home zlib.h '(compare/write/xlsx_read|compare/config/config_zip|web/serve/route|mstx/foreign/trace_source|mstx/rundb/fold_parts)\.c'

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
grep -nE '(^|[^_a-z>.])_?exit\(' $product | grep -vE '^probe/cli/|/cmd/' | grep . && bad 'exit in a library'
# shellcheck disable=SC2086
for f in $product; do
    head -3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || bad "$f: no licence line"
done
# A function of a header that is no public one is called somewhere, or the list says what it is for.
list=tests/data/for_tests.known
public='^(probe/(probe|dumper|base/err)|mstx/(mstx|ms_tools_ext).*)\.h$'
# shellcheck disable=SC2046
uncalled() { awk -f tests/uncalled.awk mstx/rt/exports.map mstx/hook/*_calls.txt mstx/hook/*/*_calls.txt mstx/hook/*.awk mstx/hook/*/*.awk $(printf '%s\n' "$product" | grep -vE "$public"); }
{ uncalled; grep -v '^#' "$list" | sed 's/:.*//'; } | sort | uniq -u | grep . &&
    bad "called by no product code and not in $list, or in it for nothing"
dup=$(printf '%s\n' $product | sed 's|.*/||' | sort | uniq -d)
[ -z "$dup" ] || bad "file names used twice: $dup"
exit $rc
