/* SPDX-License-Identifier: MIT
 *
 * Whole runs of several ranks, written in a few words each, with the operator
 * that is at fault known.  A line of a rank is
 *
 *     NAME IN OUT [key=value ...]
 *
 * IN and OUT have a letter for each tensor: g is good, n holds NaN, i infinity, m minus infinity alone,
 * N and I the same inside a nested list; - is nothing.  Keys: arg=3 a whole
 * number among the arguments, float=-Infinity a plain value, src= and dst= and
 * group_dst= keywords, group=0.1 a process group, is_nan=1, p2p=isend.PEER.g an
 * operation of a batch.
 */
#include "probe/overflow/overflow.h"

#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "tests/support/check.h"

#include <sys/stat.h>

enum { RANKS = 4 };

/* ---- writing dumps ---------------------------------------------------- */

static void put_tensor(FILE *f, char state)
{
    const char *max = state == 'n' || state == 'N'   ? "NaN"
                      : state == 'i' || state == 'I' ? "Infinity"
                                                     : "1.5";
    const char *min = state == 'n' || state == 'N' ? "NaN" : state == 'm' ? "-Infinity" : "-0.5";
    bool nested = state == 'N' || state == 'I';
    fprintf(f, "%s{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2],",
            nested ? "[[" : "");
    fprintf(f, " \"Max\": %s, \"Min\": %s, \"Mean\": 0.5, \"Norm\": 1.0}%s", max, min,
            nested ? "]]" : "");
}

static void put_list(FILE *f, const char *key, const char *states, const char *more)
{
    fprintf(f, "\"%s\": [", key);
    for (const char *s = states; *s != '\0' && *s != '-'; s++) {
        put_tensor(f, *s);
        fputs(s[1] != '\0' || *more != '\0' ? ", " : "", f);
    }
    fprintf(f, "%s]", more);
}

/* What the words of a line add to its record. */
struct words {
    char *args, *kwargs, *record;
    FILE *to_args, *to_kwargs, *to_record;
};

static void put_operation(FILE *f, const char *op, int peer, char state)
{
    fprintf(f, "[{\"class_type\": \"torch.distributed.P2POp\", \"tensor\": ");
    put_tensor(f, state);
    fprintf(f, ", \"op\": \"%s\", \"peer\": %d}]", op, peer);
}

static void put_group(FILE *f, char *ranks)
{
    for (char *c = ranks; *c != '\0'; c++)
        *c = *c == '.' ? ',' : *c;
    fprintf(f, "\"group\": {\"type\": \"torch.ProcessGroup\", \"group_ranks\": [%s]}", ranks);
}

static void add_word(struct words *w, const char *word)
{
    char value[64], op[16], state;
    int number, peer;
    const char *eq = strchr(word, '=');
    ck_assert_ptr_nonnull(eq);
    fputs(ftell(w->to_args) != 0 && strchr("afp", word[0]) != NULL ? ", " : "", w->to_args);
    fputs(ftell(w->to_kwargs) != 0 && strchr("gsd", word[0]) != NULL ? ", " : "", w->to_kwargs);
    if (sscanf(word, "arg=%d", &number) == 1)
        fprintf(w->to_args, "{\"type\": \"int\", \"value\": %d}", number);
    else if (sscanf(word, "float=%63s", value) == 1)
        fprintf(w->to_args, "{\"type\": \"float\", \"value\": %s}", value);
    else if (sscanf(word, "p2p=%15[a-z].%d.%c", op, &peer, &state) == 3)
        put_operation(w->to_args, op, peer, state);
    else if (sscanf(word, "is_nan=%d", &number) == 1)
        fprintf(w->to_record, ", \"is_nan\": %d", number);
    else if (sscanf(word, "group=%63s", value) == 1)
        put_group(w->to_kwargs, value);
    else
        fprintf(w->to_kwargs, "\"%.*s\": {\"type\": \"int\", \"value\": %s}", (int)(eq - word),
                word, eq + 1);
}

static struct words read_words(char *rest)
{
    struct words w = {0};
    size_t n[3];
    w.to_args = open_memstream(&w.args, &n[0]);
    w.to_kwargs = open_memstream(&w.kwargs, &n[1]);
    w.to_record = open_memstream(&w.record, &n[2]);
    for (char *word = strtok(rest, " "); word != NULL; word = strtok(NULL, " "))
        add_word(&w, word);
    fclose(w.to_args);
    fclose(w.to_kwargs);
    fclose(w.to_record);
    return w;
}

static void put_record(FILE *f, const char *line, bool first)
{
    char name[128], in[16], out[16], rest[256];
    int used = 0;
    ck_assert_int_eq(sscanf(line, "%127s %15s %15s%n", name, in, out, &used), 3);
    snprintf(rest, sizeof rest, "%s", line + used);
    struct words w = read_words(rest);
    bool backward = strstr(name, "backward") != NULL;
    fprintf(f, "%s\"%s\": {", first ? "" : ",\n", name);
    put_list(f, backward ? "input" : "input_args", in, w.args);
    fprintf(f, ", \"input_kwargs\": {%s}, ", w.kwargs);
    put_list(f, "output", out, "");
    fprintf(f, "%s}", w.record);
    free(w.args);
    free(w.kwargs);
    free(w.record);
}

/* Lines of one rank as dir/step0/rankR/dump.json. */
static void put_rank(const char *dir, int rank, const char *lines)
{
    char path[160], line[512];
    snprintf(path, sizeof path, "%s/step0", dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/step0/rank%d", dir, rank);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/step0/rank%d/dump.json", dir, rank);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", "
               "\"dump_data_dir\": null, \"data\": {");
    bool first = true;
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, lines);
        put_record(f, line, first);
        first = false;
        lines += n + (lines[n] == '\n');
    }
    fprintf(f, "}}");
    ck_assert_int_eq(fclose(f), 0);
}

/* ---- runs ------------------------------------------------------------- */

#define F(op)   "Functional." op ".forward "
#define D(op)   "Distributed." op ".forward "
#define BEFORE  PROBE_OVERFLOW_BEFORE
#define BETWEEN PROBE_OVERFLOW_BETWEEN
#define AFTER   PROBE_OVERFLOW_AFTER
#define PRESENT PROBE_OVERFLOW_PRESENT
#define NOTHING (-1)

static const struct run {
    const char *what;
    const char *ranks[RANKS];
    int phase, rank;
    const char *node;
} runs[] = {
    {"a clean run", {F("a.0") "g g\n" D("all_reduce.0") "g g"}, NOTHING, 0, NULL},
    {"one rank", {F("a.0") "g g\n" F("b.0") "gg n\n" F("c.0") "n n"}, BEFORE, 0, "b.0"},
    {"infinity", {F("a.0") "g i"}, BEFORE, 0, "a.0"},
    {"a mask excludes places with minus infinity",
     {F("masked_fill.0") "g m float=-Infinity\n" F("softmax.0") "m g"},
     NOTHING,
     0,
     NULL},
    {"a row that is masked whole",
     {F("masked_fill.0") "g m float=-Infinity\n" F("softmax.0") "m n\n" F("b.0") "n n"},
     BEFORE,
     0,
     "softmax.0"},
    {"minus infinity in a gradient", {"Functional.a.0.backward g m"}, BEFORE, 0, "a.0"},
    {"nested output", {F("a.0") "g gN\n" F("b.0") "n n"}, BEFORE, 0, "a.0"},
    {"nested input", {F("a.0") "gN n\n" F("b.0") "g i"}, BEFORE, 0, "b.0"},
    {"empty tensors hold anything",
     {"Torch.empty.0.forward - n\nTorch.fill_.0.forward g n\n" F("a.0") "g n"},
     BEFORE,
     0,
     "a.0"},
    {"before communication, on the second rank",
     {F("a.0") "g g\n" D("all_reduce.0") "g n", F("a.0") "g n\n" D("all_reduce.0") "n n"},
     BEFORE,
     1,
     "a.0"},
    {"backward", {"Functional.a.0.backward g n"}, BEFORE, 0, "a.0"},
    {"handed to an all_reduce",
     {F("a.0") "g g\n" D("all_reduce.0") "g g\n" F("b.0") "g g\n" D("all_reduce.1") "g n",
      F("a.0") "g g\n" D("all_reduce.0") "g g\n" F("b.0") "g n\n" D("all_reduce.1") "n n"},
     BETWEEN,
     1,
     "b.0"},
    {"the receiver of a send is not to blame",
     {D("barrier.0") "- -\n" D("recv.0") "- n arg=1\n" F("b.0") "n n",
      D("all_reduce.0") "g g\n" F("x.0") "g g\n" F("b.0") "g n\n" D("send.0") "n - arg=0"},
     BETWEEN,
     1,
     "b.0"},
    {"through a pipeline of sends",
     {D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("send.0") "n n arg=1",
      D("all_reduce.0") "g g\n" D("recv.0") "- n arg=0\n" F("a.0") "n n\n" D("send.0") "n n arg=2",
      D("all_reduce.0") "g g\n" D("recv.0") "- n arg=1\n" F("a.0") "n n"},
     BETWEEN,
     0,
     "a.0"},
    {"isend is matched by recv, and by keyword",
     {D("all_reduce.0") "g g\n" D("irecv.0") "- n src=1\n" D("send.0") "n - dst=2",
      D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("isend.0") "n - dst=0",
      D("all_reduce.0") "g g\n" D("recv.0") "- n src=0"},
     BETWEEN,
     1,
     "a.0"},
    {"a rank by its number in the group",
     {D("all_reduce.0") "g g\n" F("z.0") "g g",
      D("all_reduce.0") "g g\n" F("p.0") "g g\n" F("a.0") "g n\n" D(
          "send.0") "n - group_dst=1 group=1.3",
      D("all_reduce.0") "g g",
      D("all_reduce.0") "g g\n" D("recv.0") "- n group_src=0 group=1.3\n" F("b.0") "n n\n" D(
          "all_reduce.1") "n n"},
     BETWEEN,
     1,
     "a.0"},
    {"a batch of sends and receives",
     {D("all_reduce.0") "g g\n" F("a.0") "g n\n" D(
          "batch_isend_irecv.0") "- - p2p=isend.1.n p2p=irecv.1.g",
      D("all_reduce.0") "g g\n" D("batch_isend_irecv.0") "- - p2p=irecv.0.n p2p=isend.0.g\n" F(
          "b.0") "g n\n" D("all_reduce.1") "n n"},
     BETWEEN,
     0,
     "a.0"},
    {"only the source of a broadcast counts",
     {D("all_reduce.0") "g g\n" F("q.0") "g g\n" F("a.0") "g n\n" D("broadcast.0") "n n arg=0",
      D("all_reduce.0") "g g\n" F("junk.0") "g i\n" D("broadcast.0") "n n arg=0"},
     BETWEEN,
     0,
     "a.0"},
    {"the gathering rank contributes too",
     {D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("gather.0") "n n dst=0",
      D("all_reduce.0") "g g\n" D("gather.0") "g - dst=0"},
     BETWEEN,
     0,
     "a.0"},
    {"a buffer to be filled is no input",
     {D("all_gather_into_tensor.0") "ng g\n" D("all_gather_into_tensor.1") "ng n",
      D("all_gather_into_tensor.0") "ng g\n" F("a.0") "g n\n" D("all_gather_into_tensor.1") "gn n"},
     BETWEEN,
     1,
     "a.0"},
    {"the communication itself",
     {D("all_reduce.0") "g g\n" D("all_reduce.1") "g i",
      D("all_reduce.0") "g g\n" D("all_reduce.1") "g i"},
     BETWEEN,
     0,
     "all_reduce.1"},
    {"groups that run side by side",
     {D("all_reduce.0") "g g group=0.1\n" D("all_reduce.1") "g g group=0.2\n" F("x.0") "n n",
      D("all_reduce.0") "g g group=0.1\n" F("late.0") "g n\n" D("all_reduce.1") "n n group=1.3",
      D("all_reduce.0") "g g group=2.3\n" D("all_reduce.1") "g g group=0.2",
      D("all_reduce.0") "g g group=2.3\n" D("all_reduce.1") "g n group=1.3"},
     BETWEEN,
     1,
     "late.0"},
    {"the earlier of two layers",
     {D("all_reduce.0") "g g\n" D("all_reduce.1") "g n\n" F("b.0") "g n\n" D("all_reduce.2") "n n",
      D("all_reduce.0") "g g\n" F("y.0") "g g\n" F("a.0") "g n\n" D("all_reduce.1") "n n\n" D(
          "all_reduce.2") "g n"},
     BETWEEN,
     1,
     "a.0"},
    {"from further back than the last communication",
     {D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("all_reduce.1") "g g\n" F("b.0") "n n\n" D(
         "all_reduce.2") "n n"},
     BETWEEN,
     0,
     "a.0"},
    {"never handed on",
     {D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("all_reduce.1") "g g"},
     BETWEEN,
     0,
     "a.0"},
    {"after the last communication",
     {D("all_reduce.0") "g g\n" F("a.0") "g g", D("all_reduce.0") "g g\n" F("a.0") "g n"},
     AFTER,
     1,
     "a.0"},
    {"there from the start", {F("a.0") "n n\n" F("b.0") "n n"}, PRESENT, 0, "a.0"},
    {"there from the start on the second rank, received by the first",
     {D("all_reduce.0") "g n\n" F("c.0") "n n", F("b.0") "n n\n" D("all_reduce.0") "n n"},
     PRESENT,
     1,
     "b.0"},
    {"a mask is meant so",
     {F("mask.0") "g i float=-Infinity\n" F("softmax.0") "i g\n" F("div.0") "g n"},
     BEFORE,
     0,
     "div.0"},
    {"a scale that overflowed is told when nothing else is",
     {F("a.0") "g g\n" F("mul.0") "g i float=Infinity\n" F("sum.0") "i n"},
     BEFORE,
     0,
     "mul.0"},
    {"what nan_check says",
     {F("a.0") "- - is_nan=0\n" F("b.0") "- - is_nan=1\n" F("c.0") "- - is_nan=1"},
     BEFORE,
     0,
     "b.0"},
    {"what nan_check says between communication",
     {D("all_reduce.0") "- - is_nan=0\n" F("b.0") "- - is_nan=1\n" D("all_reduce.1") "- - is_nan=1",
      D("all_reduce.0") "- - is_nan=0\n" D("all_reduce.1") "- - is_nan=1"},
     BETWEEN,
     0,
     "b.0"},
    /* Each rank sends before it receives: the two messages wait for each other. */
    {"an exchange of messages",
     {D("all_reduce.0") "g g\n" D("isend.0") "g - arg=1\n" D("irecv.0") "- n arg=1",
      D("all_reduce.0") "g g\n" F("a.0") "g n\n" D("isend.0") "n - arg=0\n" D(
          "irecv.0") "- g arg=0"},
     BETWEEN,
     1,
     "a.0"},
};

static void find_in(struct probe_overflow *o, const struct run *run, struct ms_pool *pool)
{
    char dir[64];
    struct ms_err err = {0};
    scratch_dir(dir);
    for (int r = 0; r < RANKS && run->ranks[r] != NULL; r++)
        put_rank(dir, r, run->ranks[r]);
    const struct probe_overflow_conf conf = {.path = dir};
    ck_ok(probe_overflow_find(o, &conf, pool, &err), err);
    scratch_remove(dir);
}

START_TEST(the_operator_at_fault_is_named)
{
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct probe_overflow o;
        find_in(&o, &runs[i], NULL);
        if (runs[i].phase == NOTHING) {
            ck_assert_msg(o.answers.n == 0, "%s: %.*s", runs[i].what,
                          MS_STR_ARG(o.answers.p[0].node));
        } else {
            ck_assert_msg(o.answers.n == 1, "%s: %zu answers", runs[i].what, o.answers.n);
            const struct probe_overflow_answer *a = &o.answers.p[0];
            ck_assert_msg(a->place->rank == runs[i].rank &&
                              ms_str_find_str(a->node, ms_str_of(runs[i].node)) >= 0,
                          "%s: rank %d %.*s", runs[i].what, (int)a->place->rank,
                          MS_STR_ARG(a->node));
            ck_assert_msg((int)a->phase == runs[i].phase, "%s: phase %d", runs[i].what, a->phase);
        }
        probe_overflow_free(&o);
    }
}
END_TEST

START_TEST(threads_do_not_change_the_answer)
{
    struct ms_pool *pool;
    struct ms_err err = {0};
    ck_ok(ms_pool_new(&pool, 4, &err), err);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct probe_overflow one, many;
        find_in(&one, &runs[i], NULL);
        find_in(&many, &runs[i], pool);
        ck_assert_uint_eq(one.answers.n, many.answers.n);
        for (size_t a = 0; a < one.answers.n; a++) {
            ck_assert(ms_str_eq(one.answers.p[a].node, many.answers.p[a].node));
            ck_assert_int_eq(one.answers.p[a].place->rank, many.answers.p[a].place->rank);
        }
        probe_overflow_free(&one);
        probe_overflow_free(&many);
    }
    ms_pool_free(pool);
}
END_TEST

START_TEST(outside_of_communication_every_rank_has_its_answer)
{
    const struct run run = {"", {F("a.0") "g n", F("a.0") "g g\n" F("b.0") "g i"}, 0, 0, NULL};
    struct probe_overflow o;
    find_in(&o, &run, NULL);
    ck_assert_uint_eq(o.answers.n, 2);
    ck_assert_int_eq(o.answers.p[1].place->rank, 1);
    ck_assert(ms_str_is(o.answers.p[1].node, "Functional.b.0.forward"));
    probe_overflow_free(&o);
}
END_TEST

START_TEST(what_a_user_ignores_is_no_answer)
{
    char dir[64];
    struct ms_err err = {0};
    struct probe_overflow o;
    const char *const words[] = {"exp", "nothing_has_this"};
    const struct probe_overflow_conf conf = {
        .path = scratch_dir(dir), .ignore = words, .nignore = 2};
    put_rank(dir, 0, F("exp.0") "g i\n" F("log.0") "g n");
    ck_ok(probe_overflow_find(&o, &conf, NULL, &err), err);
    ck_assert_uint_eq(o.answers.n, 1);
    ck_assert(ms_str_is(o.answers.p[0].node, "Functional.log.0.forward"));
    probe_overflow_free(&o);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_rank_that_cannot_be_read_does_not_stop_the_others)
{
    char dir[64], path[128];
    struct ms_err err = {0};
    struct probe_overflow o;
    const struct probe_overflow_conf conf = {.path = scratch_dir(dir)};
    put_rank(dir, 0, F("a.0") "g g");
    put_rank(dir, 1, F("a.0") "g n");
    snprintf(path, sizeof path, "%s/step0/rank0/dump.json", dir);
    write_file(path, "{\"data\": {", 10);
    ck_ok(probe_overflow_find(&o, &conf, NULL, &err), err);
    ck_assert_uint_eq(o.failures.n, 1);
    ck_says(o.failures.p[0].err, "rank0/dump.json");
    ck_assert_uint_eq(o.read, 1);
    ck_assert_int_eq(o.answers.p[0].place->rank, 1);
    probe_overflow_free(&o);

    snprintf(path, sizeof path, "%s/step0/rank1/dump.json", dir);
    write_file(path, "{", 1);
    ck_assert_int_eq(probe_overflow_find(&o, &conf, NULL, &err), MS_E_FORMAT);
    ck_says(err, "rank0/dump.json");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_cut_off_dump_is_searched_when_asked_for)
{
    static const char cut[] =
        "{\"task\": \"statistics\", \"data\": {\"Functional.a.0.forward\": "
        "{\"input_args\": [], \"output\": [{\"type\": \"torch.Tensor\", "
        "\"dtype\": \"torch.float32\", \"shape\": [1], \"Max\": NaN}]}, \"Fun";
    char dir[64], path[128];
    struct ms_err err = {0};
    struct probe_overflow o;
    struct probe_overflow_conf conf = {.path = scratch_dir(dir)};
    put_rank(dir, 0, F("a.0") "g g");
    snprintf(path, sizeof path, "%s/step0/rank0/dump.json", dir);
    write_file(path, cut, sizeof cut - 1);
    ck_assert_int_eq(probe_overflow_find(&o, &conf, NULL, &err), MS_E_FORMAT);
    ms_err_clear(&err);
    conf.tolerant = true;
    ck_ok(probe_overflow_find(&o, &conf, NULL, &err), err);
    ck_assert(ms_str_is(o.answers.p[0].node, "Functional.a.0.forward"));
    probe_overflow_free(&o);
    scratch_remove(dir);
}
END_TEST

/* ---- the result file -------------------------------------------------- */

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/step0/rank0/%s", dir, name);
    write_file(path, text, strlen(text));
}

static char *read_all(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static char *result_of(const char *dir, struct ms_err *err)
{
    struct ms_buf path = {.max = 4096};
    struct probe_overflow o;
    const struct probe_overflow_conf conf = {.path = dir};
    ck_ok(probe_overflow_find(&o, &conf, NULL, err), *err);
    ck_ok(probe_overflow_write(&o, dir, &path, err), *err);
    char *text = read_all(ms_buf_z(&path));
    ms_buf_free(&path);
    probe_overflow_free(&o);
    return text;
}

START_TEST(the_result_file_is_in_the_official_form)
{
    static const char wanted[] = "{\n"
                                 "  \"rank_0\": [\n"
                                 "    {\n"
                                 "      \"op_name\": \"Functional.a.0.forward\",\n"
                                 "      \"data_info\": {\n"
                                 "        \"input_args\": [\n"
                                 "          {\n"
                                 "            \"type\": \"int\",\n"
                                 "            \"value\": 3\n"
                                 "          }\n"
                                 "        ],\n"
                                 "        \"input_kwargs\": {},\n"
                                 "        \"output\": [\n"
                                 "          {\n"
                                 "            \"type\": \"torch.Tensor\",\n"
                                 "            \"dtype\": \"torch.float32\",\n"
                                 "            \"shape\": [\n"
                                 "              2\n"
                                 "            ],\n"
                                 "            \"Max\": NaN,\n"
                                 "            \"Min\": NaN,\n"
                                 "            \"Mean\": 0.5,\n"
                                 "            \"Norm\": 1.0\n"
                                 "          }\n"
                                 "        ]\n"
                                 "      },\n"
                                 "      \"construct_info\": [\n"
                                 "        \"Module.b.B.forward.0\",\n"
                                 "        \"Module.b.c.C.forward.0\",\n"
                                 "        \"Functional.a.0.forward\"\n"
                                 "      ],\n"
                                 "      \"stack_info\": [\n"
                                 "        \"File /w/n.py, line 1, in f, \\n x\"\n"
                                 "      ]\n"
                                 "    }\n"
                                 "  ]\n"
                                 "}";
    char dir[64];
    struct ms_err err = {0};
    scratch_dir(dir);
    put_rank(dir, 0, F("a.0") "- n arg=3");
    write_text(dir, "construct.json",
               "{\"Functional.a.0.forward\": [\"Module.b.c.C.forward.0\", 0], "
               "\"Module.b.c.C.forward.0\": \"Module.b.B.forward.0\", "
               "\"Module.b.B.forward.0\": null, \"megatron_micro_step_number\": 1}");
    write_text(dir, "stack.json",
               "{\"0\": [[\"Functional.a.0.forward\"], "
               "[\"File /w/n.py, line 1, in f, \\n x\"]]}");
    ck_assert_str_eq(result_of(dir, &err), wanted);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_backward_record_has_the_stack_of_its_forward)
{
    char dir[64];
    struct ms_err err = {0};
    scratch_dir(dir);
    put_rank(dir, 0, "Functional.a.0.backward g n");
    write_text(dir, "stack.json", "{\"0\": [[\"Functional.a.0.forward\"], [\"FRAME\"]]}");
    const char *text = result_of(dir, &err);
    ck_assert_ptr_nonnull(strstr(text, "\"FRAME\""));
    ck_assert_ptr_nonnull(strstr(text, "\"input\": [\n          {"));
    ck_assert_ptr_null(strstr(text, "input_args"));
    scratch_remove(dir);
}
END_TEST

START_TEST(construct_and_stack_may_be_absent)
{
    char dir[64];
    struct ms_err err = {0};
    scratch_dir(dir);
    put_rank(dir, 0, F("a.0") "g n");
    const char *text = result_of(dir, &err);
    ck_assert_ptr_nonnull(
        strstr(text, "\"construct_info\": [\n        \"Functional.a.0.forward\"\n      ]"));
    ck_assert_ptr_nonnull(strstr(text, "\"stack_info\": {}"));
    scratch_remove(dir);
}
END_TEST

START_TEST(memory_is_all_given_back)
{
    ms_trace_reset();
    size_t live = ms_mem_live();
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct probe_overflow o;
        find_in(&o, &runs[i], NULL);
        probe_overflow_free(&o);
    }
    ms_trace_reset();
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    char dir[64];
    struct ms_err err = {0};
    const struct probe_overflow_conf conf = {.path = scratch_dir(dir)};
    put_rank(dir, 0, D("all_reduce.0") "g g group=0.1\n" F("a.0") "g n\n" D("send.0") "n - arg=1");
    put_rank(dir, 1, D("all_reduce.0") "g g group=0.1\n" D("recv.0") "- n arg=0");
    for (uint64_t n = 1;; n++) {
        ms_trace_reset();
        size_t live = ms_mem_live();
        struct probe_overflow o;
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_overflow_find(&o, &conf, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK)
            probe_overflow_free(&o);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(without_memory_no_result_file_is_left)
{
    char dir[64];
    struct ms_err err = {0};
    struct probe_overflow o;
    const struct probe_overflow_conf conf = {.path = scratch_dir(dir)};
    put_rank(dir, 0, F("a.0") "g n arg=3");
    write_text(dir, "construct.json", "{\"Functional.a.0.forward\": \"Module.b.B.forward.0\"}");
    write_text(dir, "stack.json", "{\"0\": [[\"Functional.a.0.forward\"], [\"FRAME\\n\"]]}");
    ck_ok(probe_overflow_find(&o, &conf, NULL, &err), err);
    for (uint64_t n = 1;; n++) {
        struct ms_buf path = {.max = 4096};
        ms_trace_reset();
        size_t live = ms_mem_live();
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_overflow_write(&o, dir, &path, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(rc == MS_OK || rc == MS_E_NOMEM);
        ck_assert(rc == MS_OK || path.n == 0 || access(ms_buf_z(&path), F_OK) != 0);
        ms_buf_free(&path);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
    }
    probe_overflow_free(&o);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("overflow", the_operator_at_fault_is_named, threads_do_not_change_the_answer,
          outside_of_communication_every_rank_has_its_answer, what_a_user_ignores_is_no_answer,
          a_rank_that_cannot_be_read_does_not_stop_the_others,
          a_cut_off_dump_is_searched_when_asked_for, the_result_file_is_in_the_official_form,
          a_backward_record_has_the_stack_of_its_forward, construct_and_stack_may_be_absent,
          memory_is_all_given_back, without_memory_it_fails_cleanly,
          without_memory_no_result_file_is_left)
