/* SPDX-License-Identifier: MIT
 *
 * dumper_fixture: what the tests of probe/dumper.h share: a dumper into a
 * scratch directory, a small model, and what its files hold afterwards.
 */
#ifndef TESTS_SUPPORT_DUMPER_FIXTURE_H
#define TESTS_SUPPORT_DUMPER_FIXTURE_H

#include "probe/dump/dump.h"
#include "probe/write/dumper_state.h"

#include "tests/support/check.h"

static struct ms_err err;
static char dir[64];

static inline void begin(void)
{
    static const char *const ranks[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        unsetenv(ranks[i]);
    scratch_dir(dir);
    ms_err_clear(&err);
}

/* Rank 0, everything; the test changes what it is about. */
static inline struct probe_settings everything(void)
{
    return (struct probe_settings){.dump_path = dir, .rank_known = true, .risk = PROBE_RISK_ALL};
}

static inline struct probe_dumper *open_with(struct probe_settings s)
{
    struct probe_dumper *d;
    ck_ok(probe_dumper_open(&d, &s, &err), err);
    return d;
}

static inline void close_dumper(struct probe_dumper *d)
{
    ck_ok(probe_dumper_close(d, &err), err);
}

/* Text of a file below the scratch directory; "" when there is none. */
static inline const char *text_of(const char *name)
{
    static char text[1 << 16];
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return "";
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static inline bool exists(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* Names of the records of a step, joined by blanks. */
static inline const char *records_of(const char *name)
{
    static char text[1 << 16];
    struct probe_dump *dump;
    char path[300];
    size_t n = 0;
    text[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(probe_dump_open(&dump, path, 0, NULL, &err), err);
    for (size_t i = 0; i < dump->nodes.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", i != 0 ? " " : "",
                              MS_STR_ARG(probe_node_name(dump, (uint32_t)i)));
    probe_dump_close(dump);
    return text;
}

static inline void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "expected '%s' in '%s'", part, text);
}
static inline void has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "did not expect '%s' in '%s'", part, text);
}

static float numbers[6] = {1, 2, 3, 4, 5, 6};
static const uint64_t shape[2] = {2, 3};
static const struct probe_tensor_desc matrix = {
    .data = numbers, .dtype = "float32", .shape = shape, .ndim = 2};
static const struct probe_value x = {.kind = PROBE_TENSOR, .tensor = &matrix};

static inline void op(struct probe_dumper *d, const char *name)
{
    probe_op(d, "Functional", name, &x, 1, &x, 1);
}

#define STEP0 "step0/rank0/"

/* A module with an operator in it, and one more of each. */
static inline void run_model(struct probe_dumper *d)
{
    struct probe_call *a = probe_module_enter(d, "a", "A");
    probe_call_input(a, &x);
    op(d, "relu");
    probe_call_output(a, &x);
    probe_call_exit(a);
    op(d, "view");
    struct probe_call *b = probe_module_enter(d, "b", "B");
    op(d, "linear");
    probe_call_exit(b);
    struct probe_call *back = probe_op_enter_backward(d, "Functional", "linear", 0);
    probe_call_input(back, &x);
    probe_call_exit(back);
}

#define RELU   "Functional.relu.0.forward"
#define VIEW   "Functional.view.0.forward"
#define LINEAR "Functional.linear.0.forward"
#define BACK   "Functional.linear.0.backward"
#define A      "Module.a.A.forward.0"
#define B      "Module.b.B.forward.0"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
