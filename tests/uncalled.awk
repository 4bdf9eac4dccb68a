# SPDX-License-Identifier: MIT
# Of .c and .h files and lists of what is exported: functions that a header declares and that are named
# nowhere but there and where they are defined.
{
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "")
    if (inside && !sub(/.*\*\//, "")) next
    inside = sub(/\/\*.*/, "")
    n = split($0, word, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= n; i++) named[word[i]]++
}
FILENAME ~ /\.h$/ && /^[a-z][^()=]*[ *][a-z][a-z0-9_]*\(/ && !/^(static|typedef|extern)/ {
    sub(/\(.*/, "")
    sub(/.*[ *]/, "")
    declared[$0]
}
END { for (f in declared) if (named[f] <= 2) print f }
