# SPDX-License-Identifier: MIT
# wrappers: makes the C text of hook functions from a table of the calls of a library.
#   awk -f wrappers.awk nccl_calls.txt >nccl_wrappers.inc
# mpi/ has a generator of its own, since its wrappers come in C and in Fortran, for two flavours.
#
# A table has these lines:
#
#   let NAME TEXT                     $NAME stands for TEXT from here on
#   WAY NAME [WORD...] (PARAMETERS)   a function, with its parameters as C declares them
#       C                             assignments to the members of c, where the call is recorded
#   <-  C                             runs before the call, whether it is recorded or not
#   ->  C                             runs after it; rc is the result of the library
#
# WAY             with the names that `let` defines for it
#   operation     of a communicator: WORDs are its kind of enum mstx_comm_op and, where a form
#                 NAMEConfig has a configuration as its last parameter, `config`     lib, missing
#   manage        makes or frees communicators or groups: kind, communicator or NULL lib, missing
#   pass          not recorded: a jump, with any parameters; WORD is the function that returns
#                 the library's error                                                 lib
#   count         as pass, but the call is recorded by its name: kind, function       lib
#   handle        makes or destroys streams: only <- and -> are run                   owners, missing
#   command       of an OpenCL queue q, stores an event in e; `kernel`: named by kernel k  owners, missing
#   map           as command, but returns an address, and the error in a parameter    owners

/^#/ || /^$/ { next }
/^let / { text = $0; sub(/^let [^ ]+ /, "", text); let[$2] = spell(text); next }
/^    / { facts = facts "    " spell($0) "\n"; next }
/^<-/ { sub(/^<-/, "  "); before = before spell($0) "\n"; next }
/^->/ { sub(/^->/, "  "); after = after spell($0) "\n"; next }
{ finish(); begin() }
END { finish() }

function spell(text,   at, rest, n) {
    rest = ""
    while ((at = index(text, "$")) > 0) {
        rest = rest substr(text, 1, at - 1)
        text = substr(text, at + 1)
        match(text, /^[A-Za-z_]+/)
        n = substr(text, 1, RLENGTH)
        if (RLENGTH < 1 || !(n in let)) die("no such name: $" n)
        rest = rest let[n]
        text = substr(text, RLENGTH + 1)
    }
    return rest text
}
function die(why) { print FILENAME ":" FNR ": " why > "/dev/stderr"; failed = 1; exit 1 }

function begin(   at, i, n, part) {
    facts = before = after = ""
    at = index($0, "(")
    params = at > 0 ? spell(substr($0, at + 1, length($0) - at - 1)) : ""
    n = split(at > 0 ? substr($0, 1, at - 1) : $0, part, " ")
    way = part[1]; name = part[2]
    for (i = 3; i < 6; i++) word[i - 2] = i <= n ? part[i] : ""
    if (way !~ /^(operation|manage|pass|count|handle|command|map)$/) die("no such way: " way)
}

function finish() {
    if (name == "" || failed) return
    if (way == "operation") {
        operation(name, params)
        if (word[2] == "config") operation(name "Config", params ", const void *config")
    } else if (way == "manage") manage()
    else if (way == "handle") handle_call()
    else if (way == "command" || way == "map") command()
    else jump()
    name = ""
}

# Returns the names of parameters: the last word of each declaration.
function arguments(p,   part, n, i, a) {
    if (p == "void") return ""
    n = split(p, part, /, */)
    for (i = 1; i <= n; i++) {
        sub(/\[\]$/, "", part[i])
        sub(/^.*[^A-Za-z0-9_]/, "", part[i])
        a = a (i > 1 ? ", " : "") part[i]
    }
    return a
}

function head(type, fn, p) {
    print "\nHOOK_API " type fn "(" p ");\nHOOK_API " type fn "(" p ")\n{"
}

# ---- collectives, transfers and communicators ---------------------------------------------------

function open_ccl(fn, p, comm) {
    head("int ", fn, p)
    print "    static struct hook_fn all;"
    print "    const unsigned copy = hook_ccl_copy(" let["lib"] ", " comm ", \"" fn "\", __builtin_return_address(0));"
    print "    int (*real)(" p ");"
    print "    *(void **)(void *)&real = hook_copy_fn((" let["lib"] ")->family, &all, \"" fn "\", copy);"
    print "    if (real == NULL)\n        return " let["missing"] ";"
    print "    if (hook_depth != 0)\n        return real(" arguments(p) ");"
    print "    hook_depth = 1;\n    hook_ccl_copy_now = copy;"
}
function close_ccl() {
    print "    hook_ccl_end(range);\n    hook_depth = 0;\n    return rc;\n}"
}

function operation(fn, p) {
    open_ccl(fn, p, "comm")
    print "    uint64_t range = 0;\n    if (hook_ccl_on()) {"
    print "        struct mstx_comm_call c = hook_ccl_plain(\"" fn "\", MSTX_COMM_" word[1] ");"
    printf "%s", facts
    print "        range = hook_ccl_begin(" let["lib"] ", comm, &c);"
    print "    } else {\n        hook_ccl_pass(comm, MSTX_COMM_" word[1] ");\n    }"
    print "    const int rc = real(" arguments(p) ");"
    close_ccl()
}

function manage() {
    open_ccl(name, params, word[2])
    print "    struct mstx_comm_call c = hook_ccl_plain(\"" name "\", MSTX_COMM_" word[1] ");"
    print "    const uint64_t range = hook_ccl_begin(" let["lib"] ", " word[2] ", &c);"
    printf "%s", before
    print "    const int rc = real(" arguments(params) ");"
    printf "%s", after
    close_ccl()
}

# Writes hook_real_NAME, which returns the address for the code that HOOK_JUMP makes.
function jump(   otherwise) {
    otherwise = way == "count" ? word[2] : word[1]
    print "\nvoid *hook_real_" name "(const void *caller);"
    print "__attribute__((used)) void *hook_real_" name "(const void *caller)\n{"
    print "    static struct hook_fn all;"
    print "    const unsigned copy = hook_copy_of((" let["lib"] ")->family, \"" name "\", caller);"
    print "    void *p = hook_copy_fn((" let["lib"] ")->family, &all, \"" name "\", copy);"
    if (way == "count")
        print "    if (p != NULL)\n        hook_ccl_count(" let["lib"] ", \"" name "\", MSTX_COMM_" word[1] ");"
    print "    return p != NULL ? p : (void *)(uintptr_t)" otherwise ";\n}"
    print "HOOK_JUMP(" name ");"
}

# ---- streams and queues ----------------------------------------------------------------------------

function open_real(type, p, otherwise) {
    head(type, name, p)
    print "    static hook_slot slot;\n    " type "(*real)(" p ");"
    print "    *(void **)(void *)&real = hook_real(&slot, \"" name "\", " let["owners"] ");"
    print "    if (real == NULL)\n        return " otherwise ";"
}

function handle_call() {
    open_real("int ", params, let["missing"])
    printf "%s", before
    print "    const int rc = real(" arguments(params) ");"
    printf "%s", after
    print "    return rc;\n}"
}

function command(   is_map, p) {
    is_map = way == "map"
    p = params ", uint32_t n, void *const *w, void **e" (is_map ? ", int32_t *error" : "")
    open_real(is_map ? "void *" : "int32_t ", p, is_map ? "keep_error(error)" : let["missing"])
    print "    struct command c;"
    if (word[1] == "kernel")
        print "    char text[NAME];\n    begin_command(&c, q, kernel_name(k, \"" name "\", text), e);"
    else
        print "    begin_command(&c, q, \"" name "\", e);"
    print "    hook_depth++;"
    if (is_map) print "    int32_t rc = 0;"
    print "    " (is_map ? "void *at" : "const int32_t rc") " = real(" arguments(params) ", n, w, c.event" (is_map ? ", &rc" : "") ");"
    print "    hook_depth--;\n    end_command(&c, q, rc);"
    if (is_map) print "    if (error != NULL)\n        *error = rc;"
    print "    return " (is_map ? "at" : "rc") ";\n}"
}
