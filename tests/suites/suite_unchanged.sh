#!/bin/sh
# SPDX-License-Identifier: MIT
# A recorded program does what it does without us: the same output, exit status and signal, for programs
# that fork, replace themselves, close what they do not know, run out of something, handle signals, lose
# threads, are traced, are static, change their user, have an allocator, a sanitizer, OpenMP or MPI of their own.
#   B=build
suite=unchanged
. tests/support/checks.sh
! is_sanitized || skip "a sanitizer takes signals, memory and descriptors of its own"
cc=${CC:-cc}
odd=$scratch/odd
$cc -w -O1 -fopenmp -I. -o "$odd" tests/programs/odd.c -lpthread -ldl 2>"$said" ||
    $cc -w -O1 -I. -o "$odd" tests/programs/odd.c -lpthread -ldl 2>"$said" || skip "no program could be compiled"
ends=$scratch/odd_ends
$cc -w -O1 -D_GNU_SOURCE -I. -o "$ends" tests/programs/odd_ends.c -lpthread -ldl 2>"$said" || ends=

# Output, status and what is said of a command, in $scratch/$1.*; a shell may say of a signal what it likes.
observe() { # NAME COMMAND...
    name_of=$1
    shift
    (
        ulimit -c 0
        timeout -k 5 60 "$@" >"$scratch/$name_of.out" 2>"$scratch/$name_of.err" </dev/null
        echo $? >"$scratch/$name_of.status"
    ) 2>/dev/null
}
said_by_others() { # numbers are addresses and processes; mstx and msprobe speak of themselves
    grep -v '^mstx: \|^msprobe: ' "$scratch/$1.err" | sed 's/0x[0-9a-f]*/N/g; s/+N[^)]*//; s/[0-9][0-9]*/N/g'
}
same() { # what it was without us and with us
    cmp "$scratch/plain.out" "$scratch/ours.out" || { diff "$scratch/plain.out" "$scratch/ours.out" | head -5; return 1; }
    is "$(cat "$scratch/ours.status")" "$(cat "$scratch/plain.status")" &&
        is "$(said_by_others ours)" "$(said_by_others plain)"
}
alike() { # COMMAND...: recorded and not; OPTIONS of run
    rm -rf "$run"
    observe plain "$@"
    # shellcheck disable=SC2086
    observe ours "$msprobe" run -o "$run" ${OPTIONS:-} -- "$@"
    same
}

# A shell makes of a signal that ends a program 128 and its number.
for way in $("$odd" list); do
    check "$way" alike sh -c '"$0" "$@"; exit $?' "$odd" "$way"
done
[ -n "$ends" ] || echo "skip odd_ends: this system has no such headers"
for way in $([ -z "$ends" ] || "$ends" list); do
    check "$way" alike sh -c '"$0" "$@"; exit $?' "$ends" "$way"
done
for more in odd_systems odd_kernel; do
    if $cc -w -O1 -D_GNU_SOURCE -I. -o "$scratch/more" "tests/programs/$more.c" -lpthread -ldl -lm 2>"$said"; then
        for way in $("$scratch/more" list); do
            check "$way" alike sh -c '"$0" "$@"; exit $?' "$scratch/more" "$way"
        done
    else
        echo "skip $more: this system has no such headers"
    fi
done
# A script that names its interpreter, an environment that is empty, and an auditor of the linker.
printf '#!/bin/sh\n"%s" "$1"; echo $?\nexec "%s" descriptors\n' "$odd" "$odd" >"$scratch/script"
chmod +x "$scratch/script"
check 'a script that replaces itself' alike "$scratch/script" forks
check 'without an environment' alike env -i "$odd" forks
printf 'unsigned la_version(unsigned v) { return v; }\n' >"$scratch/audit.c"
if $cc -w -fPIC -shared -o "$scratch/audit.so" "$scratch/audit.c" 2>"$said"; then
    check 'an auditor of the linker' alike env LD_AUDIT="$scratch/audit.so" "$odd" libraries_that_come_and_go
fi

# ---- programs that others wrote --------------------------------------------------------------------

with() { # COMMAND NAME WORDS...: recorded and not, where there is such a command
    with_command=$1 with_name=$2
    shift 2
    if command -v "$with_command" >/dev/null; then
        check "$with_name" alike "$@"
    else
        echo "skip $with_name: there is no $with_command"
    fi
}
with bash 'a script of bash' bash tests/programs/odd_shell.bash
with perl 'a script of Perl' perl tests/programs/odd_perl.pl
with python3 'pools of processes of Python' python3 tests/programs/odd_pools.py
printf 'all: a b c d\na b c d:\n\t@sleep 0.02\nfail:\n\t@exit 3\n' >"$scratch/makefile"
with make 'make with jobs' make -s -j3 -f "$scratch/makefile" all
with make 'make that fails' make -s -j3 -f "$scratch/makefile" fail
with awk 'commands of awk' awk 'BEGIN { while (("echo a; echo b" | getline l) > 0) print l; print system("exit 3"); print "x" | "cat" }'
with xargs 'xargs side by side' sh -c 'seq 20 | xargs -P4 -n3 sh -c "exit 0" _; echo $?; echo a | xargs false; echo $?'
with timeout 'limits of time' sh -c 'timeout 0.2 sleep 5; echo $?; timeout -s KILL 0.2 sleep 5; echo $?'
with setsid 'sessions and hang-ups' sh -c 'nohup sh -c "kill -HUP \$\$; echo lives" 2>/dev/null; setsid -w sh -c "exit 8"; echo $?'
with flock 'locks of files' flock "$scratch/lock" sh -c 'echo locked; exit 3'
with tar 'an archive through pipes' sh -c 'tar cf - tests/programs/odd.c | gzip -n | gzip -d | tar tf -'
with git 'a repository' sh -c 'cd "$0" && rm -rf r && git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%s' "$scratch"
with ldconfig 'a static program of the system' sh -c 'ldconfig -p | head -1'
with unshare 'another user in a namespace' unshare -r sh -c 'id -u; exit 4'
with unshare 'a container' unshare -rmpf --mount-proc sh -c 'echo $$; exit 4'
with python3 'few descriptors' sh -c 'ulimit -n 12; python3 -c "import os; print(os.listdir(\"/proc/self/fd\"))"; echo $?'
with python3 'little memory' sh -c 'ulimit -v 300000; python3 -c "bytearray(10 ** 9)" 2>/dev/null; echo $?'
with python3 'a small stack' sh -c 'ulimit -s 128; python3 -c "print(1)"; echo $?'
with dd 'small files' sh -c 'ulimit -f 1; dd if=/dev/zero of="$0/big" bs=4096 count=4 2>/dev/null; echo $?; rm -f "$0/big"' "$scratch"
with python3 'an allocator that looks for mistakes' env LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 MALLOC_PERTURB_=165 python3 -c 'print(1)'
OPTIONS="--nvtx --hook_dlsym --flight 5"
for way in forks descriptors dispositions closes_what_it_does_not_know takes_the_numbers_of_others lowest_numbers threads_that_die libraries_that_come_and_go no_more_files; do
    check "$way with every hook" alike sh -c '"$0" "$@"; exit $?' "$odd" "$way"
done
OPTIONS=
# Rank 0 of several hosts listens for their clocks.
check "lowest_numbers of a rank that compares clocks" alike env RANK=0 WORLD_SIZE=2 MSTX_CLOCK_SYNC=1 "$odd" lowest_numbers

# ---- programs that are made otherwise ------------------------------------------------------------

# ThreadSanitizer does not start where the kernel places memory too freely.
placed=
! setarch "$(uname -m)" -R true 2>/dev/null || placed="setarch $(uname -m) -R"
made() { # NAME WORDS OF THE COMPILER...: the same program, made so
    made_name=$1
    shift
    if "$cc" -w -O1 -g -I. "$@" -o "$scratch/made" tests/programs/odd.c -lpthread -ldl 2>/dev/null && "$scratch/made" list >/dev/null 2>&1; then
        for way in forks threads_that_die handlers_that_mark libraries_that_come_and_go functions_at_exit reads_nothing; do
            case $made_name-$way in static*-libraries*) continue ;; esac
            # shellcheck disable=SC2086
            check "$made_name $way" alike $placed sh -c '"$0" "$@"; exit $?' "$scratch/made" "$way"
        done
    else
        echo "skip $made_name: no such program can be made here"
    fi
}
made static -static
made static-pie -static-pie
made position-dependent -no-pie
ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=0"
made address-sanitizer -fsanitize=address
made leak-sanitizer -fsanitize=leak
made undefined-sanitizer -fsanitize=undefined
made thread-sanitizer -fsanitize=thread

# ---- what stands beside us -----------------------------------------------------------------------

allocated_by() { # NAME LIBRARY: the program brings an allocator, or finds it preloaded before us
    allocator_name=$1 preload=$2
    before() {
        observe plain env LD_PRELOAD="$preload" "$odd" "$way"
        rm -rf "$run"
        observe ours env LD_PRELOAD="$preload" "$msprobe" run -o "$run" -- "$odd" "$way"
        is "$(cat "$scratch/ours.status")" 0 && cmp "$scratch/plain.out" "$scratch/ours.out"
    }
    for way in forks threads_that_die libraries_that_come_and_go small_stacks no_more_threads; do
        check "$allocator_name: $way" alike env LD_PRELOAD="$preload" "$odd" "$way"
        check "$allocator_name that was preloaded before us: $way" before
    done
}
if $cc -w -O1 -fPIC -shared -fno-builtin -o "$scratch/allocator.so" tests/programs/allocator.c 2>"$said"; then
    allocated_by 'an allocator of its own' "$scratch/allocator.so"
else
    echo "skip allocators: none could be compiled"
fi
jemalloc=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | awk '/libjemalloc\.so\.2/ {print $NF; exit}')
if [ -n "$jemalloc" ]; then
    allocated_by jemalloc "$jemalloc"
else
    echo "skip jemalloc: there is no libjemalloc.so.2 here"
fi
beside() { # TRACER...: output and status of a recorded program under it
    rm -rf "$run"
    observe plain "$odd" forks
    observe ours "$@" "$msprobe" run -o "$run" -- "$odd" forks
    cmp "$scratch/plain.out" "$scratch/ours.out" && is "$(cat "$scratch/ours.status")" 0
}
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    check 'recorded while strace follows' beside strace -f -o /dev/null
else
    echo "skip strace: none here, or it may not trace"
fi
# Each stop of a breakpoint and the exit status are told on gdb's own output, which is the program's as well.
cat >"$scratch/gdb.script" <<'END'
set confirm off
set breakpoint pending on
set disable-randomization off
set print inferior-events off
set print thread-events off
handle all nostop noprint pass
break tell_status
commands
silent
printf "stopped\n"
continue
end
run
printf "exit %d\n", $_exitcode
END
debugged() { gdb -nx -q -batch -x "$scratch/gdb.script" --args "$@"; }
# What the program and the breakpoint say; where gdb finds things, and which process it is, are its own affair.
without_gdb() { grep -v '^Breakpoint 1 \|executing new program\|^\[\|libthread_db' "$scratch/$1.out"; }
within_gdb() { # WAY first|second: msprobe runs gdb, or gdb runs msprobe and follows it into the program
    rm -rf "$run"
    observe plain gdb -nx -q -batch -x "$scratch/gdb.script" --args "$odd" "$1"
    if [ "$2" = first ]; then
        observe ours "$msprobe" run -o "$run" -- gdb -nx -q -batch -x "$scratch/gdb.script" --args "$odd" "$1"
    else
        observe ours gdb -nx -q -batch -x "$scratch/gdb.script" --args "$msprobe" run -o "$run" -- "$odd" "$1"
    fi
    if [ "$2" = first ]; then
        is "$(without_gdb ours)" "$(without_gdb plain)"
    else # gdb places its breakpoint in msprobe, before there is the program
        is "$(without_gdb ours)" "$(without_gdb plain | grep -v '^stopped')"
    fi && is "$(cat "$scratch/ours.status")" "$(cat "$scratch/plain.status")" && grep -q '^exit ' "$scratch/ours.out"
}
if command -v gdb >/dev/null && debugged true 2>/dev/null </dev/null | grep -q 'exit 0'; then
    for way in forks spawns threads_that_die functions_at_exit libraries_that_come_and_go; do
        check "recorded within gdb: $way" within_gdb "$way" first
        check "gdb follows msprobe into the program: $way" within_gdb "$way" second
    done
    stops() { within_gdb forks first && grep -q '^stopped' "$scratch/ours.out"; }
    check 'a breakpoint of gdb stops a recorded program' stops
else
    echo "skip gdb: none here, or it may not trace"
fi
chain() { # the program behind three that replace each other
    alike sh -c 'exec env -u NONE sh -c "exec nice -n 0 \"\$0\" \"\$1\"" "$0" "$1"' "$odd" "$1"
}
for way in forks replaces_itself threads_that_die; do
    check "behind programs that replace each other: $way" chain "$way"
done

# ---- ranks of MPI --------------------------------------------------------------------------------

# What ranks say in any order, and the status of their launcher; what launchers say on stderr names processes.
# A launcher that loses a rank may fail in another way now and then, so there are three tries. MPICH's names on
# stdout the process that it lost, and the signal that ended the last one: SIGTERM, or SIGKILL if that one was slow.
ranks_alike() { # FLAVOUR WAY
    for try in 1 2 3; do
        rm -rf "$run"
        observe plain "mpirun.$1" -n 2 "$scratch/ranks.$1" "$2"
        observe ours "mpirun.$1" -n 2 "$msprobe" run -o "$run" -- "$scratch/ranks.$1" "$2"
        for one in plain ours; do
            grep -v '^=.* PID \|^= *EXIT CODE: ' "$scratch/$one.out" | sort >"$scratch/sorted"
            mv "$scratch/sorted" "$scratch/$one.out"
        done
        is "$(cat "$scratch/ours.status")" "$(cat "$scratch/plain.status")" &&
            cmp "$scratch/plain.out" "$scratch/ours.out" && return 0
        echo "differed at try $try:"
        diff "$scratch/plain.out" "$scratch/ours.out"
    done
    return 1
}
for flavour in mpich openmpi; do
    if ! command -v "mpirun.$flavour" >/dev/null ||
        ! "mpicc.$flavour" -w -O1 -I. -o "$scratch/ranks.$flavour" tests/programs/odd_ranks.c -lpthread -ldl 2>"$said"; then
        echo "skip ranks of $flavour: it is not here"
        continue
    fi
    for way in $("$scratch/ranks.$flavour" list); do
        check "a rank of $flavour: $way" ranks_alike "$flavour" "$way"
    done
done
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    set_user_id() {
        chmod 755 "$scratch"
        cp "$odd" "$scratch/set" && chmod 4755 "$scratch/set" || return 1
        rm -rf "$run"
        mkdir -m 777 "$run"
        observe plain setpriv --reuid 65534 --clear-groups "$scratch/set" forks
        observe ours setpriv --reuid 65534 --clear-groups "$msprobe" run -o "$run" -- "$scratch/set" forks
        is "$(cat "$scratch/ours.status")" "$(cat "$scratch/plain.status")" && cmp "$scratch/plain.out" "$scratch/ours.out"
    }
    check 'a program that takes another user runs as it would' set_user_id
else
    echo "skip programs that take another user: this needs root and setpriv"
fi
exit $rc
