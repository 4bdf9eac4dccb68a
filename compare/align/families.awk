# SPDX-License-Identifier: MIT
# families: from families.txt, which explains itself, the C tables of likeness.c.
#   LC_ALL=C awk -f families.awk families.txt

function fail(text) {
    print FILENAME ":" FNR ": " text >"/dev/stderr"
    failed = 1
    exit 1
}

BEGIN { count = names = 0 }

# The initializer of a bit set: the families in list[from..to], those words that are no bar.
function bit_set(list, from, to,    i, f, words) {
    words[0] = words[1] = words[2] = "0"
    for (i = from; i <= to; i++) {
        if (list[i] == "|")
            continue
        if (!(list[i] in number))
            fail("no family " list[i])
        f = number[list[i]]
        words[int(f / 64)] = words[int(f / 64)] " | 1ull << " f % 64
    }
    return "{" words[0] ", " words[1] ", " words[2] "}"
}

# Takes the members and tails of a fused family apart.
function read_fused(family, text,    parts, members, tails, n, usual) {
    if (split(text, parts, ";") != 2 || !(family in number))
        fail("expected \"fused FAMILY: MEMBER...; TAIL...\" with a family that is known")
    n = split(parts[1], members, " ")
    member_set[family] = bit_set(members, 1, n)
    n = split(parts[2], tails, " ")
    for (usual = n; usual > 0 && tails[usual] != "|"; usual--)
        ;
    tail_set[family] = bit_set(tails, 1, n)
    usual_set[family] = bit_set(tails, usual ? usual + 1 : n, n)
}

function read_family(family, text,    list, n, i, at, name) {
    if (family in number)
        fail("family " family " a second time")
    families[count] = family
    number[family] = count++
    n = split(text, list, " ")
    for (i = 1; i <= n; i++) {
        name = list[i]
        gsub(/^_+|_+$/, "", name)
        if (name in owner)
            fail(name " is in family " owner[name] " too")
        owner[name] = family
        # sorted as it grows, by bytes
        for (at = names++; at > 0 && sorted[at - 1] > name; at--)
            sorted[at] = sorted[at - 1]
        sorted[at] = name
    }
}

/^#/ || NF == 0 { next }
!/^(fused )?[a-z0-9]+: / { fail("expected a family and a colon") }
{
    colon = index($0, ": ")
    text = substr($0, colon + 2)
    head = substr($0, 1, colon - 1)
}
head == "views" {
    for (i = 2; i <= NF; i++) {
        if (!($i in number))
            fail("no family " $i)
        is_view[$i] = 1
    }
    next
}
/^fused / {
    read_fused(substr(head, 7), text)
    next
}
{ read_family(head, text) }

END {
    if (failed)
        exit 1
    print "/* Made of " FILENAME " by families.awk; change that. */"
    print "enum {"
    for (i = 0; i < count; i++)
        print "    ALIGN__FAM_" toupper(families[i]) ","
    print "    ALIGN__FAM_COUNT\n};"
    print "static const struct align__family align__families[] = {"
    for (i = 0; i < count; i++) {
        f = families[i]
        none = "{0, 0, 0}"
        printf "    {\"%s\", %s, %s, %s, %s},\n", f, f in is_view ? "true" : "false", \
               f in member_set ? member_set[f] : none, f in tail_set ? tail_set[f] : none, \
               f in usual_set ? usual_set[f] : none
    }
    print "};"
    print "/* Sorted by name. */"
    print "static const struct {\n    const char *name;\n    uint16_t family;\n} align__family_names[] = {"
    for (i = 0; i < names; i++)
        print "    {\"" sorted[i] "\", ALIGN__FAM_" toupper(owner[sorted[i]]) "},"
    print "};"
}
