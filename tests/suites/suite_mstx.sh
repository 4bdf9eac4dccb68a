#!/bin/sh
# SPDX-License-Identifier: MIT
# The recorder as its users meet it: msprobe run and ctl, the libraries under the vendor's
# names, a next tool, Python, and what the libraries show of themselves.
#   B=build        what to test
suite=mstx
. tests/support/checks.sh
app=$build/tests/programs/app
export MSTX_QUIET=1
preloads=yes
can_preload || preloads=

same_symbols() { symbols_of "$1" | diff "tests/data/$2.symbols" -; }
if [ -n "$preloads" ]; then
    check 'libmstx.so shows the names of the interface alone' same_symbols "$build/libmstx.so" libmstx
    check 'libms_tools_ext.so shows the vendor'"'"'s names' \
        same_symbols "$build/dropin/libms_tools_ext.so" libms_tools_ext
    check 'libmspti.so shows the vendor'"'"'s names' same_symbols "$build/dropin/libmspti.so" libmspti
    check 'the program needs libc alone to run another' needs_only "$msprobe" libc.so.6
    check 'libmstx.so needs libc alone' needs_only "$build/libmstx.so" libc.so.6
    check 'the drop-ins need libc and the recorder' \
        needs_only "$build/dropin/libmspti.so" libc.so.6 libmstx.so.0
fi
static_tls() { readelf -dW "$build/libmstx.so" | grep -q STATIC_TLS; }
check 'its thread-local storage is of the initial-exec kind' static_tls

if [ -z "$preloads" ]; then
    echo "skip preloading: a sanitizer must be first in a process"
    exit $rc
fi

# ---- run --------------------------------------------------------------------------------

run_status() { # status command...
    want=$1
    shift
    "$msprobe" run -o "$run" "$@" >"$scratch/out" 2>"$said"
    is $? "$want"
}
check 'run hands on the exit status' run_status 42 "$app" exit 42
check 'run tells what was recorded and the next command' \
    sh -c "'$msprobe' run -o '$run' '$app' marks 100 2>&1 | grep 'records of 2 processes.*msprobe report'"
twice() {
    "$msprobe" run -o "$scratch/twice" "$app" marks 10 2>"$said"
    says 'earlier run' && return 1
    "$msprobe" run -o "$scratch/twice" "$app" marks 10 2>"$said"
    says 'twice holds 1 process of an earlier run'
}
check 'a folder that holds an earlier run is told of' twice
check 'options behind the program are the program'"'"'s' run_status 0 sh -c 'test "$1" = -o' sh -o
check 'a missing program is status 127' run_status 127 ./no-such-program
check 'a program that is no program is status 126' run_status 126 /etc/passwd
check 'a run that cannot be prepared is status 3' run_status 3 --dump no-such.json true
check 'without a program it is a usage error' run_status 2
check 'nor is an empty word a program' run_status 2 ''
check 'two domain lists are refused' run_status 2 --domain_include a --domain_exclude b true
control_status() { "$msprobe" ctl "$run" start "$@" 2>"$said"; is $? 2 && grep -q 'not both' "$said"; }
check 'and so they are while it runs' control_status --domain_include a --domain_exclude b
no_marks() {
    rm -rf "$run"
    "$msprobe" run -o "$run" ls / >"$scratch/with" 2>"$said" || return 1
    ls / | diff - "$scratch/with" && says 'made no mark' && [ ! -e "$run" ]
}
check 'a program without marks leaves nothing behind' no_marks
killed() {
    "$msprobe" run -o "$run" sh -c 'kill -TERM $$' 2>"$said"
    is $? 143
}
check 'death by a signal is 128 and its number' killed
# The old image of a process that became another program was not killed.
replaced() {
    rm -rf "$run"
    "$msprobe" run -o "$run" -- "$app" exec &&
        is "$("$msprobe" sql "$run" 'SELECT state FROM processes ORDER BY start_ns' | tail -n +2 | tr '\n' ' ')" 'replaced finished ' &&
        "$msprobe" report "$run" && ! says 'did not close'
}
check 'exec is not taken for a death' replaced
forwards() {
    "$msprobe" run -o "$run" sh -c 'trap "exit 9" USR1; echo up >"$0"; while :; do sleep 0.05; done' \
        "$scratch/up" 2>"$said" &
    pid=$!
    while [ ! -s "$scratch/up" ]; do sleep 0.05; done
    kill -USR1 $pid
    wait $pid
    is $? 9
}
check 'signals are forwarded' forwards
ranks() {
    rm -rf "$run"
    RANK=0 "$msprobe" run -o "$run" "$app" marks 2>"$said" || return 1
    RANK=5 WORLD_SIZE=8 "$msprobe" run -o "$run" "$app" marks 2>>"$said" || return 1
    [ -d "$run/rank_0" ] && [ -d "$run/rank_5" ] && is "$(wc -l <"$said")" 1
}
check 'each rank has its directory and rank 0 talks' ranks
nvtx() {
    rm -rf "$run"
    "$msprobe" run -o "$run" --nvtx "$build/tests/programs/nvtx_app" 2>"$said" && says 'records of 1 process'
}
check 'run --nvtx records NVTX' nvtx
third_party() {
    rm -rf "$run"
    seq 200000 >"$scratch/numbers"
    sort --parallel=2 -R --random-source="$scratch/numbers" "$scratch/numbers" >"$scratch/shuffled"
    sort --parallel=2 -n "$scratch/shuffled" >"$scratch/plain"
    "$msprobe" run -o "$run" --nvtx sort --parallel=2 -n "$scratch/shuffled" >"$scratch/recorded" 2>"$said" &&
        cmp "$scratch/plain" "$scratch/recorded"
}
check 'a threaded program of the system runs unchanged' third_party

# ---- ctl --------------------------------------------------------------------------------

records() { "$msprobe" ctl "$run" status | sed 's/.* \([0-9]*\) records.*/\1/'; }
control() {
    rm -rf "$run"
    "$msprobe" run -o "$run" --wait "$app" paced 20000 >"$scratch/out" 2>"$said" &
    pid=$!
    i=0
    until "$msprobe" ctl "$run" status >"$scratch/status" 2>/dev/null; do
        i=$((i + 1))
        [ $i -lt 200 ] || return 1
        sleep 0.05
    done
    grep -q stopped "$scratch/status" || return 1
    waiting=$(records)
    "$msprobe" ctl "$run" start >>"$said" || return 1
    sleep 0.5
    "$msprobe" ctl "$run" stop >>"$said" || return 1
    stopped=$(records)
    sleep 0.3
    [ "$stopped" -gt "$waiting" ] && is "$(records)" "$stopped" || return 1
    "$msprobe" ctl "$run" start --domain_exclude default >>"$said" || return 1
    sleep 0.3
    is "$(records)" "$stopped" || return 1
    "$msprobe" ctl --format json "$run" status >"$scratch/json" &&
        "$PYTHON" -c 'import json, sys
s = json.load(open(sys.argv[1]))
p, = s["processes"]
assert s["action"] == "status" and s["ended"] == 0 and p["rank"] == -1 and p["recording"], s
assert p["records"] == int(sys.argv[2]) and p["threads"] == 1 and p["directory"].startswith(sys.argv[3])' \
            "$scratch/json" "$stopped" "$run" >>"$said" 2>&1 || return 1
    "$msprobe" ctl "$run" snapshot >>"$said" && [ -d "$run/snapshots/001/rank_none" ] || return 1
    kill "$pid"
    wait "$pid"
    is $? 143 || return 1
    ! "$msprobe" ctl "$run" status 2>>"$said" && says 'has ended'
}
check 'ctl starts, stops, filters and takes snapshots' control
# The records of each process, one a line.
each() { "$msprobe" ctl "$run" status | sed 's/.* \([0-9]*\) records.*/\1/'; }
forked_while_stopped() {
    rm -rf "$run"
    "$msprobe" run -o "$run" --wait "$app" forked 3000 >"$scratch/out" 2>"$said" &
    pid=$!
    i=0
    until [ "$(each 2>/dev/null | wc -l)" = 2 ]; do
        i=$((i + 1))
        [ $i -lt 100 ] || return 1
        sleep 0.05
    done
    [ "$("$msprobe" ctl "$run" status | grep -c stopped)" = 2 ] || return 1
    before=$(each | sort -n | tail -1)
    "$msprobe" ctl "$run" start >>"$said" || return 1
    sleep 0.4
    for n in $(each); do
        [ "$n" -gt $((before + 20)) ] || { echo "only $n records"; return 1; }
    done
    wait "$pid"
}
check 'a process forked while recording was stopped can be started' forked_while_stopped
# Segments of a second or so: some are always being filled, prepared, moved or removed.
snapshots() { # stage
    rm -rf "$run"
    MSTX_STAGE="$1" MSTX_SEGMENT=32k "$msprobe" run -o "$run" "$app" paced 20000 20 >"$scratch/out" 2>"$said" &
    pid=$!
    i=0
    until "$msprobe" ctl "$run" status >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 200 ] || return 1
        sleep 0.05
    done
    for i in 1 2 3 4 5 6 7 8; do
        sleep 0.2
        before=$(records)
        "$msprobe" ctl "$run" snapshot >>"$said" 2>&1 || return 1
    done
    kill "$pid"
    wait "$pid"
    held=$("$msprobe" sql "$run/snapshots/008" 'SELECT count(*) FROM events' | tail -1)
    [ "$held" -ge "$before" ] || { echo "$held of $before records"; return 1; }
    "$msprobe" report "$run/snapshots/008" >"$scratch/report" 2>>"$said" && ! grep problem "$scratch/report"
}
check 'a snapshot can be taken at any moment and holds all' snapshots ''
check 'also when segments are staged' snapshots "$scratch/stage"
# Processes come and go while the capture is read again and again: eight rounds of them at most while it
# is read once, because a slow reader would otherwise never have read all.
read_live() { # stage
    rm -rf "$run"
    mkdir "$run"
    : >"$scratch/go"
    echo 0 >"$scratch/reads"
    round=0
    while [ -e "$scratch/go" ]; do
        round=$((round + 1))
        while [ -e "$scratch/go" ] && [ $round -gt $((8 + 8 * $(cat "$scratch/reads"))) ]; do sleep 0.02; done
        for args in 'marks 20000' 'many 3 3000' 'paced 30 30'; do
            MSTX_OUT="$run" MSTX_STAGE="$1" MSTX_QUIET=2 MSTX_SEGMENT=32k \
                MSTX_INJECTION_PATH="$build/libmstx.so" "$app" $args &
        done
        wait
    done &
    pid=$!
    while [ -z "$(ls "$run"/rank_none/*/r0001* 2>/dev/null)" ]; do sleep 0.02; done
    for i in 1 2 3 4 5 6; do
        echo "$i" >"$scratch/reads.new" && mv "$scratch/reads.new" "$scratch/reads"
        "$msprobe" import "$run" >>"$said" 2>&1 || break
        "$msprobe" sql --format json "$run" 'SELECT file, text FROM problems' >"$scratch/problems"
        is "$(cat "$scratch/problems")" '[]' || break
    done
    rm -f "$scratch/go"
    wait $pid
    is "$(cat "$scratch/problems")" '[]' && is "$i" 6
}
check 'a capture is read while processes come and go' read_live ''
check 'also when these stage their segments' read_live "$scratch/stage"
# What is on the stage of a killed program arrives, whatever the moment.
killed_on_stage() {
    for pause in 0.2 0.3 0.4 0.5; do
        rm -rf "$run"
        MSTX_STAGE="$scratch/stage" MSTX_SEGMENT=32k "$msprobe" run -o "$run" \
            sh -c "exec timeout -s KILL $pause '$app' paced 20000 30" >"$scratch/out" 2>>"$said"
        [ -z "$(find "$run" "$scratch/stage" -name staged -o -path "$scratch/stage/*.seg")" ] || return 1
    done
}
check 'the stage of a killed program is emptied' killed_on_stage
check 'ctl names its actions' sh -c "'$msprobe' ctl '$run' pause 2>&1 | grep 'start, stop, snapshot'"

# ---- other doors ------------------------------------------------------------------------

export MSTX_OUT="$run"
preloaded() { LD_PRELOAD="$sanitizer$build/dropin/libmspti.so" "$build/tests/programs/mspti_app" 2>"$said"; }
check 'markers are heard through libmspti.so' preloaded
chained() {
    MSTX_INJECTION_PATH=$build/libmstx.so MSTX_NEXT_PATH=$build/tests/programs/chain.so \
        "$app" ranges >"$scratch/heard" 2>"$said"
    printf 'next %s\n' 'start outer' 'domain loader' 'start inner' 'mark tick' 'end 78' 'end 77' \
        'start never ended' | diff - "$scratch/heard"
}
check 'marks are passed on to the next tool' chained
chained_memory() {
    MSTX_INJECTION_PATH=$build/libmstx.so MSTX_NEXT_PATH=$build/tests/programs/chain.so \
        "$app" memory >"$scratch/heard" 2>"$said"
    printf 'next %s\n' 'mark memory' 'domain pool' heap 'regions 2 of heap 1' 'unregion 1 0x4712' \
        'unregion 0 0x10040' 'unheap 1' 'domain ptaCaching' heap 'regions 2 of heap 1' \
        'regions 2 of heap 0' | diff - "$scratch/heard"
}
check 'so are memory calls, with the handles it gave' chained_memory
chained_nvtx() {
    NVTX_INJECTION64_PATH=$build/libmstx.so MSTX_NEXT_NVTX_PATH=$build/tests/programs/nvtx_next.so \
        "$build/tests/programs/nvtx_app" >"$scratch/heard" 2>"$said" &&
        diff tests/programs/nvtx_next.txt "$scratch/heard"
}
check 'NVTX calls are passed on to the next NVTX tool' chained_nvtx
keeps_nvtx() {
    rm -rf "$run"
    NVTX_INJECTION64_PATH=$build/tests/programs/nvtx_next.so "$msprobe" run -o "$run" --nvtx \
        "$build/tests/programs/nvtx_app" 2>"$said" | diff tests/programs/nvtx_next.txt - && says 'records of 1 process'
}
check 'run --nvtx keeps the NVTX tool that was there' keeps_nvtx
by_ctypes() {
    LD_PRELOAD=$sanitizer "$PYTHON" - "$build/dropin/libms_tools_ext.so" <<'END' 2>"$said"
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.mstxRangeStartA.restype = ctypes.c_uint64
lib.mstxRangeStartA.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
lib.mstxRangeEnd.argtypes = [ctypes.c_uint64]
r = lib.mstxRangeStartA(b"from ctypes", None)
lib.mstxRangeEnd(r)
sys.exit(0 if 0 < r < 1 << 32 else 1)
END
}
linked() {
    cat >"$scratch/old.c" <<'END'
#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"
int main(void) { mstxMarkA("linked", NULL); return mstxDomainCreateA("d") == NULL; }
END
    ${CC:-cc} -I. -o "$scratch/old" "$scratch/old.c" -L"$build/dropin" -lms_tools_ext 2>"$said" &&
        LD_PRELOAD=$sanitizer LD_LIBRARY_PATH="$build/dropin" "$scratch/old"
}
check 'a program linked against libms_tools_ext.so marks' linked
# With this header a signal handler may even interrupt the first call of all.
interrupted() {
    cat >"$scratch/first.c" <<'END'
#include "mstx/ms_tools_ext.h"
#include <signal.h>
#include <sys/time.h>
static volatile sig_atomic_t n;
static void on_alarm(int s) { (void)s; n++; mstxMarkA("handler", NULL); mstxRangeEnd(mstxRangeStartA("r", NULL)); }
int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    while (n < 20) mstxMarkA("main", NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    return 0;
}
END
    ${CC:-cc} -O1 -I. -o "$scratch/first" "$scratch/first.c" 2>"$said" || return 1
    for i in 1 2 3 4 5; do
        LD_PRELOAD=$sanitizer MSTX_INJECTION_PATH=$build/libmstx.so timeout 60 "$scratch/first" 2>"$said" || return 1
    done
}
check 'a signal handler may interrupt the first call' interrupted
# Threads that get their first ring while a timer fires: no mark of the handler is lost.
interrupted_opening() {
    cat >"$scratch/rings.c" <<'END'
#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static _Atomic int alarms;
static __thread volatile int mine;
static void on_alarm(int s) { (void)s; mstxMarkA("alarm", NULL); alarms++; mine++; }
static void *work(void *arg) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    do mstxMarkA("thread", NULL); while (mine < 2);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    return arg;
}
int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm;
    pthread_t t[64];
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 64; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 64; i++) pthread_join(t[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", alarms);
    return 0;
}
END
    ${CC:-cc} -O1 -I. -o "$scratch/rings" "$scratch/rings.c" -pthread -L"$build" -lmstx -Wl,-rpath,"$build" 2>"$said" || return 1
    rm -rf "$run"
    made=$(LD_PRELOAD=$sanitizer MSTX_OUT=$run timeout 60 "$scratch/rings") || return 1
    # A handler that comes while a thread changes from a full file to the next is counted instead.
    is "$("$msprobe" sql "$run" "SELECT (SELECT count(*) FROM events WHERE name = 'alarm') + sum(dropped) FROM processes" | tail -1)" "$made"
}
check 'and the opening of a ring, without a loss' interrupted_opening
disabled() {
    printf '#define MSTX_DISABLE\n#include "mstx/ms_tools_ext.h"\nint main(void){mstxMarkA("x",NULL);return (int)mstxRangeStartA("y",NULL);}\n' >"$scratch/none.c"
    ${CC:-cc} -I. -O1 -Wall -Wextra -Werror -std=c99 -o "$scratch/none" "$scratch/none.c" 2>"$said" &&
        "$scratch/none" && ! nm "$scratch/none" | grep -i mstx
}
check 'MSTX_DISABLE leaves no trace in a program' disabled
if [ -x "$PYTHON" ]; then
    check 'ctypes users get 32-bit range ids' by_ctypes
    if [ -e "$build/python/mstx.so" ]; then
        unset MSTX_OUT
        python_marks() { "$msprobe" run -o "$run" "$PYTHON" samples/mstx_python.py 2>"$said" | grep -q 'tool 0x4d53'; }
        check 'a Python program marks through the module' python_marks
        collections() { # a package of this name is enough
            mkdir -p "$scratch/fake/mpi4py" && : >"$scratch/fake/mpi4py/__init__.py"
            rm -rf "$run"
            PYTHONPATH="$scratch/fake" "$msprobe" run -o "$run" "$PYTHON" -c 'import gc, mpi4py, mstx; mstx.mark("x"); gc.collect()' 2>"$said"
            [ "$("$msprobe" sql "$run" "SELECT count(*) > 0 FROM events WHERE domain = 'python' AND name = 'garbage_collection'" | tail -1)" = 1 ]
        }
        check 'collections of garbage are marked in programs of mpi4py' collections
    else
        echo "skip Python module: not built, Python's headers are missing"
    fi
else
    echo "skip Python: $PYTHON is not there"
fi
exit $rc
