#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the manual: every page is clean source, has the sections that people
# look for, every command and option of the program has its place in a page, in
# msprobe-COMMAND.1 or, what all commands share, in msprobe.1, says there what it
# says in the list of commands, and every public function is in one page of section 3.
#   B=build        which program to ask
B=${B:-build}
rc=0
ok() { echo "ok $*"; }
bad() {
    echo "not ok $*"
    rc=1
}

pages=$(ls -- */*.[135] */*/*.[135] 2>/dev/null)

# The text as a reader sees dashes: roff writes \- where the output shall have one.
plain() { sed 's/\\-/-/g' "$@" 2>/dev/null; }

check_source() { # page
    macros=-man
    ! grep -q '^\.Dd' "$1" || macros=-mdoc
    said=$(groff "$macros" -ww -z -Tutf8 "$1" 2>&1)
    if [ -n "$said" ]; then
        bad "source $1"
        printf '%s\n' "$said" | head -5
    else
        ok "source $1"
    fi
}

check_sections() { # page
    missing=
    for s in NAME SYNOPSIS DESCRIPTION EXAMPLES 'SEE ALSO'; do
        grep -qE "^\.S[Hh] \"?$s\"?\$" "$1" || missing="$missing '$s'"
    done
    if [ -n "$missing" ]; then bad "sections $1: without$missing"; else ok "sections $1"; fi
}

# Every function that a header shows to programs is in the SYNOPSIS of exactly one page of section 3.
check_functions() { # header
    missing=
    for f in $(sed -n '/^MS_API/s/.*[ *]\([a-z_0-9]*\)(.*/\1/p' "$1"); do
        n=$(cat -- */*.3 */*/*.3 2>/dev/null | sed '/^\.Sh DESCRIPTION/,/^\.Sh NAME/d' |
            grep -cE "^\.Fn $f( |\$)")
        [ "$n" -eq 1 ] || missing="$missing $f"
    done
    if [ -n "$missing" ]; then bad "functions of $1: not in one page:$missing"; else ok "functions of $1"; fi
}

# A word of its own: --no is not documented by --no_color, nor -d by --d.
has_option() { # text option
    printf '%s\n' "$1" | grep -qE -- "(^|[^a-zA-Z0-9_-])$2([^a-zA-Z0-9_-]|\$)"
}

check_command() { # command
    shared=$(plain probe/cli/msprobe.1)
    if printf '%s\n' "$shared" | grep -qE "^\.(B|BR|It .*Cm) \"?$1\b"; then
        ok "command $1"
    else
        bad "command $1: not in probe/cli/msprobe.1"
    fi
    text=$shared$(plain -- */*/msprobe-"$1".1)
    missing=
    for o in $(printf '%s\n' "$list" | sed -n "s/^$1 //p"); do
        has_option "$text" "$o" || missing="$missing $o"
    done
    if [ -n "$missing" ]; then bad "options of $1: no page has$missing"; else ok "options of $1"; fi
}

# A command is the same sentence in its page and in the list of commands, and stands at the same place.
check_brief() { # page
    command=${1##*/msprobe-}
    command=${command%.1}
    brief=$(printf '%s\n' "$help" | sed -n "s/^  $command  *//p")
    if plain "$1" | sed -n '/^\.SH NAME/{n;p;}' | grep -qxF "msprobe-$command - $brief"; then
        ok "brief $1"
    else
        bad "brief $1: not 'msprobe-$command - $brief'"
    fi
}

check_order() {
    listed=$(printf '%s\n' "$help" | sed -n '/^commands:/,/^$/s/^  \([a-z0-9_-]*\) .*/\1/p')
    paged=$(sed -n '/^\.SH COMMANDS/,/^\.SH [^C]/s/^\.BR\{0,1\} "\{0,1\}\([a-z][a-z0-9_-]*\).*/\1/p' probe/cli/msprobe.1)
    if [ "$listed" = "$paged" ]; then ok 'order of commands'; else bad 'order of commands: not that of msprobe help'; fi
}

if command -v groff >/dev/null; then
    for p in $pages; do check_source "$p"; done
else
    echo "skip source of the pages: no groff here"
fi
for p in $pages; do check_sections "$p"; done
for h in $(grep -lE '^MS_API' -- */*.h */*/*.h 2>/dev/null); do check_functions "$h"; done
help=$("$B/msprobe" help)
for p in */*/msprobe-*.1; do check_brief "$p"; done
check_order
list=$("$B/msprobe" completion --list) || bad "$B/msprobe does not list its options"
for c in $(printf '%s\n' "$list" | grep -v ' '); do check_command "$c"; done
exit $rc
