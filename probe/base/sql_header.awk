# SPDX-License-Identifier: MIT
# Makes a C header from a file of named SQL statements: the text below "-- name: find_ops" becomes
# the string sql_find_ops.  Other comment lines are dropped.
function finish() { if (is_open) print ";" }
FNR == 1 { print "/* Made of " FILENAME "; change that. */" }
/^-- name: / {
    finish()
    printf "static const char sql_%s[] =", $3
    is_open = 1
    next
}
/^--/ || /^[[:space:]]*$/ { next }
{
    if (!is_open) {
        print FILENAME ":" FNR ": SQL without a name above it" >"/dev/stderr"
        exit_code = 1
        exit 1
    }
    sub(/^[[:space:]]+/, "")
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    printf "\n    \"%s \"", $0
}
END { if (!exit_code) finish() }
