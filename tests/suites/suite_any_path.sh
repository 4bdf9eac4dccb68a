#!/bin/sh
# SPDX-License-Identifier: MIT
# Every command on every kind of path says a sentence that helps, or does what it is for; a path alone is opened,
# a folder is listed, and a path of another kind is named with the command that reads it.
#   B=build  SEED=WORD    one of four parts of all pairs is run, dealt by WORD; PATHS=all: all
suite=any_path
. tests/support/checks.sh
part=1/4:${SEED:-}
[ "${PATHS:-}" != all ] || part=1/1:
"$PYTHON" tests/suites/any_path.py "$build" --part "$part" || rc=1

"$PYTHON" tests/suites/completions.py "$msprobe" || rc=1

here=$scratch/here
mkdir -p "$here/runs"
"$B/tests/tool_sim" "$here/runs/one" straggler 0.05 7 >/dev/null
mkdir -p "$here/dump/step0/rank0"
printf '%s' '{"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": null, "data": {}}' >"$here/dump/step0/rank0/dump.json"
printf '%s' '[1]' >"$here/list.json"
said_of() { (cd "$here" && "$msprobe" "$@" 2>&1); }
names() { said_of "$@" | sed 's/ [0-9][0-9-]* [0-9:]* / /; s/  */ /g; s/^ //' | grep msprobe | head -1; }
check 'a run that stat cannot read is named' is "$(said_of stat runs/one)" \
    "msprobe stat: runs/one: is a recorded run, which this command does not read; 'msprobe report runs/one' does"
check 'a dump that report cannot read is named' is "$(said_of report dump)" \
    "msprobe report: dump: is a dump, which this command does not read; 'msprobe check dump' does"
check 'a folder is listed' is "$(names)" 'dump a dump msprobe check dump'
check 'a path below it likewise' is "$(names runs)" 'runs/one a recorded run msprobe report runs/one'
one_below() { # nothing is written where the user meant no run
    for command in report import whatif; do
        said_of $command runs >"$said"
        grep -q 'is no run, but holds one; name that: runs/one' "$said" || return 1
    done
    [ ! -e "$here/runs/run.db" ]
}
check 'a folder in which a run lies is none' one_below
several() {
    cp -r "$here/runs/one" "$here/runs/two" && said_of report runs >"$said"
    grep -q 'holds several runs, such as runs/one and runs/two; name one' "$said" && [ ! -e "$here/runs/run.db" ] && rm -r "$here/runs/two"
}
check 'nor is one with several' several
opens() { said_of runs/one | grep -q '^runs/one: 16 processes'; }
check 'a path without a command is opened' opens
check 'a name that is nothing' is "$(said_of ./nothing)" 'msprobe: ./nothing: no such file or directory'
check 'a script as a program' is "$(said_of run -o out -- ./list.json)" \
    'msprobe run: ./list.json: Permission denied; name its interpreter before it, or make it executable: chmod +x ./list.json'
tar -czf "$here/dump.tar.gz" -C "$here" dump
check 'an archive is named, and what unpacks it' is "$(said_of check dump.tar.gz)" \
    "msprobe check: dump.tar.gz: is a tar archive, which this command does not read; 'tar -xf dump.tar.gz' unpacks it"
printf '#!/bin/sh\n' >"$here/train.sh"
check 'a program is named, and what records it' is "$(said_of ./train.sh)" \
    "msprobe: ./train.sh: is a program, which msprobe does not open; 'msprobe run -- ./train.sh' records it"
rm "$here/dump.tar.gz" "$here/train.sh"
kept() { mkdir -p "$here/mine" && ! said_of run -o mine -- ./nothing >/dev/null && [ -d "$here/mine" ]; }
check 'an empty folder of the user stays' kept
check 'what is no configuration of a dump' is "$(said_of run -o out --dump list.json -- true)" \
    'msprobe run: --dump list.json: is no config.json, which is an object such as {"task": "statistics", "level": "L1"}'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    locked() { # a rank that cannot be read is told of, and the others are
        chmod -R a+rX "$scratch" && chmod 700 "$here/runs/one/rank_3" && mkdir -m 777 "$here/db" &&
            (cd "$here" && setpriv --reuid 65534 --clear-groups "$msprobe" import -o db/r.db runs/one) >"$said" 2>&1 &&
            grep -q '15 processes' "$said" && said_of report db/r.db | grep -q 'rank_3: Permission denied'
    }
    check 'a rank that may not be read is told of' locked
    locked_dump() { # its line, and a status; the other ranks are shown
        cp -r "$here/dump/step0/rank0" "$here/dump/step0/rank1" && chmod -R a+rX "$here/dump" && chmod 700 "$here/dump/step0/rank0"
        (cd "$here" && setpriv --reuid 65534 --clear-groups "$msprobe" stat dump) >"$said" 2>&1
        is $? 3 && grep -q 'rank0/dump.json: Permission denied' "$said" && grep -q '96 B  statistics, L0, pytorch' "$said"
    }
    check 'so is a rank of a dump' locked_dump
    refused() { # COMMAND...: a file that may not be read is no file of another kind
        (cd "$here" && setpriv --reuid 65534 --clear-groups "$msprobe" "$@" ./locked.json) >"$said" 2>&1
        is $? 3 && grep -q 'locked.json: Permission denied$' "$said"
    }
    printf '{}' >"$here/locked.json" && chmod 600 "$here/locked.json"
    check 'a file that may not be read, alone' refused
    check 'a file that may not be read, as a record of memory' refused memory
else
    echo "skip a rank that may not be read: this needs root and setpriv"
fi
exit $rc
