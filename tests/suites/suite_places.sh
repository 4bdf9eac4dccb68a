#!/bin/sh
# SPDX-License-Identifier: MIT
# Where training runs: containers without /dev/shm, with a read-only root, process numbers and users of their own,
# ranks that torchrun starts again, and the samples for Slurm and Kubernetes, whose launchers are played by
# stand-ins that read the same words.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
build=$(realpath "$B")
tree=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-places-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$scratch"
cd "$scratch" || exit 1
if [ ! -e "$build/python/mstx.so" ]; then
    echo 'skip places: no Python module was built'
    exit 0
fi
if ldd "$build/msprobe" | grep -q 'libasan\|libtsan'; then
    echo 'skip places: the interpreters are built without the sanitizer'
    exit 0
fi
rc=0
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$scratch/said" | head -20
        rc=1
    fi
}
cat >marks.py <<'END'
import mstx

for i in range(20):
    mstx.range_end(mstx.range_start("step"))
END
record() { MSTX_CLOCK= "$build/msprobe" run -o "$1" -- "$PYTHON" "$scratch/marks.py"; }
holds() { # run  processes  events
    "$build/msprobe" report "$1" | tee "$scratch/report" | head -3
    grep -qE "^$1: $2 process(es)?, .* $3 events" "$scratch/report"
}

# ---- containers --------------------------------------------------------------------

# In mounts, and with the words before --, in further namespaces of its own; what is in it is one word.
inside() { # unshare's words... -- script
    words=
    while [ "$1" != -- ]; do
        words="$words $1"
        shift
    done
    # shellcheck disable=SC2086
    build=$build scratch=$scratch PYTHON=$PYTHON unshare -m $words sh -ec "$2"
}
run_it='"$build/msprobe" run -o "$scratch/$run" -- "$PYTHON" "$scratch/marks.py"'
without_shm() { run=shm inside -- "mount -t tmpfs -o ro,size=4k tmpfs /dev/shm; export run; $run_it" && holds "$scratch/shm" 1 20; }
read_only() {
    mkdir -p ro
    run=ro inside -- "mount -t tmpfs tmpfs $scratch/ro; mount -o remount,bind,ro / / ; export run HOME=/nonexistent
        ! touch /msprobe-was-here 2>/dev/null; $run_it; '$build/msprobe' report $scratch/ro" | grep '20 events'
}
# Both processes have the same number.
same_numbers() {
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 run=numbers inside -p -f -- "mount -t proc proc /proc; export run; $run_it" || return 1
    done
    holds "$scratch/numbers" 2 40
}
# A number that no password file knows, and a folder that others made.
stranger() {
    mkdir -p stranger && chmod 777 stranger
    setpriv --reuid 54321 --regid 54321 --clear-groups env -u HOME "$build/msprobe" run -o "$scratch/stranger" -- \
        "$PYTHON" "$scratch/marks.py" && holds "$scratch/stranger" 1 20
}

if unshare -m true 2>/dev/null; then
    check 'no /dev/shm: marks are recorded' without_shm
    check 'the root is read-only: marks are recorded and reported' read_only
    check 'two containers of one host whose processes have the same number: both are in the run' same_numbers
else
    echo 'skip containers: unshare is not allowed here'
fi
if setpriv --reuid 54321 --regid 54321 --clear-groups test -x "$build/msprobe" 2>/dev/null; then
    check 'a user id without a name: marks are recorded' stranger
else
    echo 'skip a user id without a name: not root, or the build is closed to others'
fi

# ---- shared file systems -------------------------------------------------------------

# A library that makes a disk be another machine's, or fail: tests/programs/broken_disk.c.
shim=$build/tests/programs/broken_disk.so
on_disk_of() { LD_PRELOAD=$shim record "$scratch/$run"; }
far_away() { run=far BROKEN_KIND=network on_disk_of && holds "$scratch/far" 1 20 && ! ls "$scratch/far" | grep 'tmp$'; }
# What the recorder could not keep is told, and the program ends as it would without it.
went_stale() {
    run=gone BROKEN_KIND=rename BROKEN_AFTER=2 BROKEN_ERRNO=116 on_disk_of 2>complaints
    status=$?
    cat complaints
    [ "$status" -eq 0 ] && grep 'Stale file handle; records are dropped' complaints
}
# The file server's clock is hours ahead of this machine's, or behind: a report is the same, and later records are seen.
skewed() { # how touch says when
    record "$scratch/skew" && "$build/msprobe" report "$scratch/skew" >straight || return 1
    find skew -type f -exec touch -d "$1" {} + && "$build/msprobe" report "$scratch/skew" >crooked || return 1
    grep -v ' in [0-9.]* [mu]*s' straight >a && grep -v ' in [0-9.]* [mu]*s' crooked | diff a - || return 1
    RANK=1 WORLD_SIZE=2 record "$scratch/skew" 2>/dev/null && holds "$scratch/skew" 2 40 && rm -rf skew
}
if [ -e "$shim" ]; then
    check 'a folder of another machine, without files that have no name: marks are recorded and reported' far_away
    check 'handles of files become stale: it is told, and the program does not notice' went_stale
else
    echo 'skip shared file systems: broken_disk.so was not built'
fi
check 'file times are 5 hours ahead: the report is the same, and what comes later is seen' skewed '5 hours'
check 'file times are 5 hours behind: the report is the same, and what comes later is seen' skewed '5 hours ago'

# ---- a rank that comes back ----------------------------------------------------------

comes_back() {
    for count in 0 1; do
        for rank in 0 1; do
            RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank TORCHELASTIC_RUN_ID=job TORCHELASTIC_RESTART_COUNT=$count \
                record "$scratch/back" 2>said.$count.$rank || return 1
        done
    done
    ! grep 'earlier run' said.1.* && holds "$scratch/back" 4 80 && ! ls -d "$scratch"/back/rank_[!01] 2>/dev/null
}
is_told() { record "$scratch/twice" 2>/dev/null && record "$scratch/twice" 2>&1 | grep 'earlier run'; }
check 'torchrun starts ranks again: they continue the run, and nothing is said of an earlier one' comes_back
check 'a second run by hand in the same folder is told' is_told

# ---- samples of launchers ------------------------------------------------------------

mkdir bin
cat >bin/scontrol <<'END'
#!/bin/sh
[ "$1 $2 $3" = "show hostnames node[1-2]" ] && printf 'node1\nnode2\n'
END
# srun's own words begin with a dash; what follows runs once for each task.
cat >bin/srun <<'END'
#!/bin/sh
while :; do case $1 in --kill-on-bad-exit=1) shift ;; -*) echo "srun: unknown option $1" >&2; exit 2 ;; *) break ;; esac; done
for task in 0 1 2 3; do SLURM_PROCID=$task SLURM_LOCALID=$((task % 2)) "$@" || exit; done
END
chmod +x bin/*
ln -s "$build/msprobe" bin/msprobe
# sbatch's words, one per line behind #SBATCH, before the first command.
sbatch_words() {
    awk '/^[^#]/ { exit } /^#SBATCH/ { print $2; if (NF != 2) print "more than one word: " $0 }' "$tree/samples/slurm.sh" >words
    [ "$(wc -l <words)" -ge 4 ] && ! grep -vE '^--(job-name|nodes|ntasks-per-node|cpus-per-task|time|output)=[^ ]+$' words
}
slurm() {
    env PATH="$scratch/bin:$PATH" SLURM_SUBMIT_DIR="$scratch" SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node[1-2]' SLURM_NTASKS=4 \
        bash "$tree/samples/slurm.sh" marks.py | tee slurm.out
    grep -q 'run-7: 4 processes, 4 tracks, 80 events' slurm.out && [ -d run-7/rank_3 ]
}
# The container's command, with what Kubernetes puts in its place, run by torchrun's stand-in.
cat >pods.py <<'END'
import subprocess, sys, yaml

out, marks, python, program, sample = sys.argv[1:]
service, job = yaml.safe_load_all(open(sample))
spec = job["spec"]["template"]["spec"]
assert (service["kind"], job["kind"]) == ("Service", "Job")
assert spec["subdomain"] == service["metadata"]["name"] and service["spec"]["selector"]["job-name"] == job["metadata"]["name"]
container, = spec["containers"]
assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in spec["volumes"]}
assert container["securityContext"]["readOnlyRootFilesystem"] and "/runs" in [m["mountPath"] for m in container["volumeMounts"]]
words = container["command"]
split = words.index("--no-python")
torchrun, program_words = words[:split + 1], words[split + 1:]
options = dict(w[2:].split("=", 1) for w in torchrun[1:-1])
assert set(options) <= {"nnodes", "nproc-per-node", "node-rank", "rdzv-backend", "rdzv-endpoint", "max-restarts"}, options
nodes, each = int(options["nnodes"]), 2
assert nodes == job["spec"]["completions"] == job["spec"]["parallelism"]
place = {"msprobe": program, "python3": python, "/app/train.py": marks, "--output_path=/runs/probed": f"--output_path={out}",
         "--stage=/tmp/msprobe": f"--stage={out}.stage"}
for rank in range(nodes * each):
    env = {"RANK": str(rank), "WORLD_SIZE": str(nodes * each), "LOCAL_RANK": str(rank % each), "PATH": "/usr/bin:/bin"}
    subprocess.run([place.get(w, w) for w in program_words], check=True, env=env)
END
kubernetes() { "$PYTHON" pods.py "$scratch/pods" "$scratch/marks.py" "$PYTHON" "$build/msprobe" "$tree/samples/kubernetes.yaml" && holds "$scratch/pods" 4 80; }

check 'the Slurm sample gives sbatch words that it knows' sbatch_words
check 'the Slurm sample records every task and reports the run' slurm
if "$PYTHON" -c 'import yaml' 2>/dev/null; then
    check 'the Kubernetes sample is whole, and its command records every process' kubernetes
else
    echo 'skip Kubernetes: no Python with yaml'
fi
exit $rc
