# SPDX-License-Identifier: MIT
# Makes a C header from a text file of tables.  The lines below "-- DECLARATION" become the
# elements of an array with that declaration: a word becomes a string, several words a struct of
# strings.  A word that begins with a digit stays a number.
function finish() { if (is_open) print "};" }
function value(word) { return word ~ /^-?[0-9]/ ? word : "\"" word "\"" }
FNR == 1 { print "/* Made of " FILENAME "; change that. */" }
/^#/ || NF == 0 { next }
/^-- / {
    finish()
    print substr($0, 4) " = {"
    is_open = 1
    next
}
!is_open {
    print FILENAME ":" FNR ": an element without a declaration above it" >"/dev/stderr"
    failed = 1
    exit 1
}
{
    text = value($1)
    for (i = 2; i <= NF; i++)
        text = text ", " value($i)
    print "    " (NF > 1 ? "{" text "}" : text) ","
}
END { if (!failed) finish() }
