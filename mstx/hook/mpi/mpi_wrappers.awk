# SPDX-License-Identifier: MIT
# mpi_wrappers: makes the C text of the wrappers of one flavour of MPI from mpi_calls.txt.
#   awk -v lang=c|fortran -v flavour=openmpi|mpich -f mpi_wrappers.awk mpi_have.h mpi_calls.txt
# A wrapper in C is made for each function in mpi_have.h, the functions that this mpi.h declares.
#
# A wrapper has two parts, side by side in the code: the light part, which costs some loads and a jump
# while nothing is recorded, and the watched part, which does everything else.

BEGIN {
    # KIND of a parameter: its type in C; with NAME where an array is declared
    split("buf:const void *@ out:void *@ aint:MPI_Aint @ type:MPI_Datatype @ op:MPI_Op @ comm:MPI_Comm @" \
          " win:MPI_Win @ group:MPI_Group @ info:MPI_Info @ int:int @ large:MPI_Count @" \
          " types:const MPI_Datatype @[] adispls:const MPI_Aint @[] infos:const MPI_Info @[]" \
          " errhandler:MPI_Errhandler @ message:MPI_Message *@ request:MPI_Request *@" \
          " requests:MPI_Request @[] handle_r:MPI_Request @ status:MPI_Status *@" \
          " received:MPI_Status *@ statuses:MPI_Status @[] int_out:int *@ index:int *@ ints:int @[]" \
          " c_ints:const int @[] comm_out:MPI_Comm *@ win_out:MPI_Win *@ type_out:MPI_Datatype *@" \
          " session_out:MPI_Session *@ text:const char *@ texts:char *@[] lists:char **@[]" \
          " argc:int *@ argv:char ***@ count:int @ counts:const int @[] displs:const int @[] unit:int @",
          list, " ")
    for (i = 1; i in list; i++) {
        if (list[i] ~ /^[a-z_]+:/) {
            kind = list[i]
            sub(/:.*/, "", kind)
            sub(/^[a-z_]+:/, "", list[i])
            ctype[kind] = list[i]
        } else
            ctype[kind] = ctype[kind] " " list[i]
    }
    ctype["ready_list"] = flavour == "mpich" ? "int @[]" : "const int @[]"
    # ... and its type in the variant NAME_c, where that differs
    large["count"] = "MPI_Count @"
    large["counts"] = "const MPI_Count @[]"
    large["displs"] = "const MPI_Aint @[]"
    large["unit"] = "MPI_Aint @"
    # in Fortran all other kinds are a number or a handle, passed by address
    fortran_is["buf"] = fortran_is["out"] = fortran_is["unit"] = "void *@"
    fortran_is["aint"] = fortran_is["adispls"] = "MPI_Aint *@"
    fortran_is["text"] = fortran_is["texts"] = fortran_is["lists"] = "char *@"
    # how C text accesses a value: in C, in Fortran
    split("request comm_out win_out type_out index", list, " ")
    for (i = 1; i in list; i++) c_value[list[i]] = "*@"
    split("count int large aint", list, " ")
    for (i = 1; i in list; i++) f_value[list[i]] = "*@"
    f_value["type"] = f_value["type_out"] = "type_of(*@)"
    f_value["types"] = "type_of(@)"
    f_value["comm"] = f_value["comm_out"] = "comm_of(@)"
    f_value["win"] = f_value["win_out"] = "win_of(@)"
    f_value["op"] = "op_of(@)"
    f_value["request"] = "request_of(*@)"
    f_value["index"] = "(*@ - 1)"
}

FILENAME ~ /mpi_have/ { sub(/^HAVE_/, "", $2); have[$2]; next }
/^#/ || /^$/ { next }
/^    / { desc = desc $0 "\n"; next }
/^<-/ { sub(/^<-/, "  "); before = before $0 "\n"; next }
/^->/ { sub(/^->/, "  "); after = after $0 "\n"; next }
{ finish(); begin() }
END { finish() }

# ---- one entry of the table ---------------------------------------------------------------------

function begin(   i, head, n, p, part) {
    for (i in attr) delete attr[i]
    for (i in kind_of) delete kind_of[i]
    desc = before = after = ""
    head = $0
    sub(/ *\([^()]*:[^()]*\)$| *\(\)$/, "", head)
    p = substr($0, length(head) + 1)
    gsub(/^ *\(|\)$/, "", p)
    params = p
    n = split(head, part, " ")
    way = part[1]; name = part[2]; op = part[3]
    for (i = 4; i <= n; i++) {
        p = index(part[i], "=")
        attr[substr(part[i], 1, p - 1)] = substr(part[i], p + 1)
    }
    n = split(params, part, " ")
    for (i = 1; i <= n; i++) kind_of[substr(part[i], 1, index(part[i], ":") - 1)] = substr(part[i], index(part[i], ":") + 1)
}

function finish(   forms, i, f) {
    if (name == "") return
    forms = ("forms" in attr) ? attr["forms"] : "b"
    for (i = 1; i <= length(forms); i++) {
        form = substr(forms, i, 1)
        if (lang == "c" && attr_of("fortran") != "openmpi") in_c()
        if (lang == "fortran" && ("fortran" in attr)) in_fortran(attr["fortran"])
    }
    name = ""
}

function attr_of(key) { return (key in attr) ? attr[key] : "" }

# Returns the name of this variant, without MPI_.
function form_name() {
    if ("name" in attr) return attr["name"]
    if (form == "i") return "I" tolower(name)
    if (form == "r") return "R" tolower(name)
    return form ~ /[pq]/ ? name "_init" : name
}
function form_params(   p, request) {
    p = params
    request = form ~ /[irp]/ ? "request:request" : form == "q" ? "info:info request:request" : ""
    return p (p != "" && request != "" ? " " : "") request
}

function in_c() {
    prefix = "prefix" in attr ? attr["prefix"] : "MPI"
    c_wrapper(prefix "_" form_name(), 0)
    c_wrapper(prefix "_" form_name() "_c", 1)
    if (form == "q") c_wrapper("MPIX_" form_name(), 0)
}

function in_fortran(kind,   lower, classic, x) {
    lower = "fname" in attr ? attr["fname"] : tolower(form_name())
    x = "prefix" in attr ? tolower(attr["prefix"]) : "mpi"
    if (flavour == "openmpi") {
        classic = form == "q" ? "mpix" : x
        if (kind != "modern") fortran_wrapper("o" classic "_" lower "_f", classic "_" lower "_", toupper(classic) "_" form_name())
        if (kind != "modern") fortran_names(classic "_" lower, "o" classic "_" lower "_f")
        if (kind == "logical") fortran_wrapper(x "_" lower "_f08_", x "_" lower "_f08_", toupper(x) "_" form_name())
    } else if (kind ~ /handle|logical|modern/) {
        fortran_wrapper(x "_" lower "_f08_", x "_" lower "_f08_", toupper(x) "_" form_name())
    }
}

# ---- text -----------------------------------------------------------------------------------------

# Replaces $n, $$n, #n and %n in C text by their form in the current language.
function spell(text,   out, tok, n, k, at, brackets) {
    out = ""
    while (match(text, /\$\$?[a-z]+(\[[^]]*\])?|#[a-z]+|%[a-z]+/)) {
        out = out substr(text, 1, RSTART - 1)
        tok = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        brackets = ""
        at = index(tok, "[")
        if (at) { brackets = substr(tok, at); tok = substr(tok, 1, at - 1) }
        n = tok
        gsub(/[$#%]/, "", n)
        if (tok ~ /^\$\$/) out = out (lang == "c" ? "(" n " == MPI_IN_PLACE)" : "is_in_place(" n ")")
        else if (tok ~ /^#/) out = out n ", sizeof *" n
        else if (tok ~ /^%/) out = out n ", " (lang == "c" ? "strlen(" n ")" : "n1")
        else out = out value(n, brackets)
    }
    return out text
}
function value(n, brackets,   how, k) {
    k = kind_of[n]
    how = lang == "c" ? ((k in c_value) ? c_value[k] : "@") : ((k in f_value) ? f_value[k] : "@")
    sub(/@/, n brackets, how)
    return how
}

# Writes the parameters and arguments for the current language into P and A.
function list_params(is_large,   part, n, i, p, k, t, texts) {
    P = A = L = LA = ""
    texts = 0
    n = split(form_params(), part, " ")
    for (i = 1; i <= n; i++) {
        p = substr(part[i], 1, index(part[i], ":") - 1)
        k = substr(part[i], index(part[i], ":") + 1)
        if (lang == "fortran" && k ~ /^arg[cv]$/) continue
        t = lang == "c" ? (is_large && (k in large) ? large[k] : ctype[k]) : ((k in fortran_is) ? fortran_is[k] : "F *@")
        if (t == "") { print "mpi_calls: " name ": no such kind: " k > "/dev/stderr"; exit 1 }
        sub(/@/, p, t)
        P = P (P != "" ? ", " : "") t
        A = A (A != "" ? ", " : "") p
        if (lang == "fortran" && k ~ /^(text|texts|lists)$/) {
            texts++
            L = L ", size_t n" texts
            LA = LA ", n" texts
        }
    }
    if (lang == "fortran") {
        P = P (P != "" ? ", " : "") "F *ierr" L
        A = A (A != "" ? ", " : "") "ierr" LA
    }
}

# Writes the watched part, except the search for and call of the real function, into PRE, DESC, POST.
function describe(shown,   on, has_status, n, part, i, op_now, parent) {
    on = ("on" in attr) ? spell(attr["on"]) : ("c" in kind_of) ? "hook_comm_of(" spell("$c") ")" : "NULL"
    has_status = params ~ /:received/ && form == "b"
    op_now = form ~ /[pq]/ ? "REQUEST" : op
    PRE = spell(before)
    DESC = spell(desc)
    POST = spell(after)
    if (way == "requests") {
        PRE = "    struct hook_before was;\n" PRE
        DESC = DESC "    x.c.count = (uint64_t)was.n;\n"
        if (op == "WAIT") DESC = DESC "    x.c.requests = was.h;\n"
    }
    if (form ~ /[pq]/) {
        PRE = "    struct mstx_comm_call later;\n" PRE
        DESC = DESC "    hook_prepare(&x, &later, MSTX_COMM_" op ", \"" shown " started\");\n"
    }
    if (form ~ /[ir]/) DESC = DESC "    x.c.flags |= MSTX_CF_ASYNC;\n"
    if ("asks" in attr) {
        DESC = DESC "    hook_ask(&x);\n"
        POST = "    hook_asked(&x, rc != MPI_SUCCESS || *" attr["asks"] " != 0);\n" POST
    }
    if (has_status) {
        if (lang == "c")
            PRE = PRE "    MPI_Status own; /* a caller that throws it away lets us see it all the same */\n" \
                  "    if (s == MPI_STATUS_IGNORE && !hook_mpi_is_off())\n        s = &own;\n"
        else
            DESC = DESC "    s = seen(s);\n"
        POST = POST "    received(&x, rc, s);\n"
    }
    if ("made" in attr) {
        parent = on == "NULL" ? "HOOK_NO_COMM" : spell("$c")
        POST = POST "    if (rc == MPI_SUCCESS)\n        hook_comm_made(" spell("$made") ", " parent ", \"" attr["made"] "\", " \
               (("salt" in attr) ? spell(attr["salt"]) : "0") ", " spell("$made") ");\n"
    }
    n = ("flags" in attr) ? attr["flags"] : "0"
    if (form ~ /[ir]/) POST = POST "    " (lang == "c" ? "hook_begun" : "begun") "(&x, rc, request, " n ");\n"
    else if (form ~ /[pq]/) POST = POST "    " (lang == "c" ? "hook_prepared" : "prepared") "(&x, rc, request, &later, " n ");\n"
    else if (!has_status && !("asks" in attr) && way != "quiet") POST = POST "    hook_end(&x);\n"
    if (way == "quiet") return
    gsub(/\n    /, "\n        ", DESC)
    OPEN = "    hook_mpi_here();\n    struct hook_call x;\n" \
           "    hook_open(&x, &SITE, \"" shown "\", MSTX_COMM_" op_now ", " on ");\n"
    if (DESC != "") OPEN = OPEN "    if (HOOK_LIKELY(x.on)) {\n    " DESC "    }\n"
    OPEN = OPEN "    hook_begin(&x);\n"
}

function is_light() { return form !~ /[pq]/ && way !~ /always|quiet/ }
# Returns the condition under which nothing is recorded and a call of the real function is enough.
function off_is_enough() {
    return "hook_mpi_is_off()" (way == "requests" ? " && none_is_tracked()" : "")
}
function pass() {
    return way == "counted" ? "    hook_pass(HOOK_HANDLE(" spell("$c") "), (enum mstx_comm_class)MSTX_CLASS_OF_" op ");\n" : ""
}
function out(text, fn) { gsub(/SITE/, fn "_site", text); printf "%s", text }

# ---- a wrapper in C ---------------------------------------------------------------------------------

function c_wrapper(fn, is_large,   body, beside) {
    if (!(fn in have)) return
    list_params(is_large)
    describe(fn)
    if (P == "") P = "void"
    beside = is_light() ? " HOOK_BESIDE(" fn ")" : ""
    out("\nstatic struct hook_site SITE;\n", fn)
    if (is_light()) print "static __attribute__((noinline))" beside " int " fn "_watched(" P ")\n{"
    else print "HOOK_API int " fn "(" P ")\n{"
    out("    __typeof__(&" fn ") real =\n        (__typeof__(real))hook_real(&SITE.real, \"" fn "\", hook_mpi_owners);\n" \
        "    if (real == NULL)\n        return MPI_ERR_INTERN;\n" \
        "    if (hook_depth != 0)\n        return real(" A ");\n    hook_depth++;\n", fn)
    out(PRE (way == "quiet" ? "" : OPEN), fn)
    print "    int rc = real(" A ");"
    printf "%s", POST
    print "    hook_depth--;\n    return rc;\n}"
    if (!is_light()) return
    print "HOOK_API" beside " int " fn "(" P ")\n{"
    out("    __typeof__(&" fn ") real =\n        (__typeof__(real))atomic_load_explicit(&SITE.real, memory_order_relaxed);\n", fn)
    print "    if (real == NULL || !(" off_is_enough() "))\n        return " fn "_watched(" A ");"
    printf "%s", pass()
    print "    return real(" A ");\n}"
}

# ---- a wrapper of Fortran's bindings ------------------------------------------------------------------

function fortran_wrapper(fn, real, shown) {
    list_params(0)
    describe(shown)
    out("\nstatic struct hook_site SITE;\n", fn)
    print "HOOK_API void " fn "(" P ");"
    if (is_light()) print "static __attribute__((noinline)) void " fn "_watched(" P ")\n{"
    else print "HOOK_API void " fn "(" P ")\n{"
    out("    __typeof__(&" fn ") real =\n        (__typeof__(real))hook_real(&SITE.real, \"" real "\", hook_fortran_owners);\n" \
        "    F own_error = MPI_ERR_INTERN;\n    if (ierr == NULL)\n        ierr = &own_error;\n    *ierr = MPI_ERR_INTERN;\n" \
        "    if (real == NULL)\n        return;\n" \
        "    if (hook_depth != 0) {\n        real(" A ");\n        return;\n    }\n    hook_depth++;\n", fn)
    out(PRE (way == "quiet" ? "" : OPEN), fn)
    print "    real(" A ");"
    if (POST ~ /rc/) print "    const int rc = *ierr;"
    printf "%s", POST
    print "    hook_depth--;\n}"
    if (!is_light()) return
    print "HOOK_API void " fn "(" P ")\n{"
    out("    __typeof__(&" fn ") real =\n        (__typeof__(real))atomic_load_explicit(&SITE.real, memory_order_relaxed);\n", fn)
    print "    if (real == NULL || !(" off_is_enough() ")) {\n        " fn "_watched(" A ");\n        return;\n    }"
    printf "%s", pass()
    print "    real(" A ");\n}"
}

# Writes aliases: the names that compilers and bindings use for the function ompi_x_f.
function fortran_names(lower, target,   list, i) {
    split(lower " " lower "_ " lower "__ " toupper(lower), list, " ")
    for (i = 1; i <= 4; i++)
        print "extern __typeof__(" target ") " list[i] " __attribute__((alias(\"" target "\"), visibility(\"default\")));"
}
