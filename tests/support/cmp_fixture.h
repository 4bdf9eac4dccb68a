/* SPDX-License-Identifier: MIT
 *
 * cmp_fixture: a pair of small dumps in a scratch directory, compared.
 *
 *     dir/t/dump.json [stack.json dump_tensor_data/]     the target
 *     dir/b/dump.json                                    the golden side
 *     dir/n/dump.json                                    a second run of it
 */
#ifndef TESTS_SUPPORT_CMP_FIXTURE_H
#define TESTS_SUPPORT_CMP_FIXTURE_H

#include "compare/official/rules_official.h"
#include "compare/table/comparison.h"
#include "tests/support/check.h"

#include <stdarg.h>
#include <sys/stat.h>

struct fixture {
    char dir[64], t[96], b[96];
    struct cmp_conf conf;
    struct cmp *c;
    struct cmp_view v;
    struct ms_err err;
};

static inline void fixture_init(struct fixture *f)
{
    char path[128];
    *f = (struct fixture){.conf.rules = cmp_rules_of(CMP_CUR)};
    scratch_dir(f->dir);
    snprintf(f->t, sizeof f->t, "%s/t/dump.json", f->dir);
    snprintf(f->b, sizeof f->b, "%s/b/dump.json", f->dir);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%c", f->dir, "tbn"[i]);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        snprintf(path, sizeof path, "%s/%c/dump_tensor_data", f->dir, "tbn"[i]);
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
}

/* A file below the fixture's directory. */
static inline void fixture_write(const struct fixture *f, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    write_file(path, text, strlen(text));
}

/* A dump of the given task, framework and members of `data`. */
static inline void fixture_dump(const struct fixture *f, char side, const char *task,
                                const char *framework, const char *data)
{
    char name[16];
    size_t n = strlen(data) + 256;
    char *text = malloc(n);
    ck_assert_ptr_nonnull(text);
    snprintf(text, n,
             "{\"task\": \"%s\", \"level\": \"mix\", \"framework\": \"%s\",\n"
             " \"dump_data_dir\": null, \"data\": {%s}}",
             task, framework, data);
    snprintf(name, sizeof name, "%c/dump.json", side);
    fixture_write(f, name, text);
    free(text);
}

/* Statistics of PyTorch on both sides. */
static inline void fixture_pair(const struct fixture *f, const char *t, const char *b)
{
    fixture_dump(f, 't', "statistics", "pytorch", t);
    fixture_dump(f, 'b', "statistics", "pytorch", b);
}

static inline void fixture_close(struct fixture *f)
{
    if (f->c != NULL)
        cmp_view_free(&f->v);
    cmp_close(f->c);
    f->c = NULL;
}

static inline void fixture_open(struct fixture *f)
{
    fixture_close(f);
    ck_ok(cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err), f->err);
    ck_ok(cmp_measure(f->c, NULL, &f->err), f->err);
    ck_ok(cmp_view_init(&f->v, &f->err), f->err);
}

static inline void fixture_free(struct fixture *f)
{
    fixture_close(f);
    scratch_remove(f->dir);
}

/* The row whose target (or, without one, golden) name this is; fails the test when there is none.
 * It lives in f->v until the next call. */
static inline const struct cmp_row *fixture_row(struct fixture *f, const char *name)
{
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (size_t i = 0; i < f->v.rows.n; i++) {
            const struct cmp_row *row = &f->v.rows.p[i];
            if (ms_str_is(row->t.present ? row->t.name : row->b.name, name))
                return row;
        }
    }
    ck_abort_msg("no row %s", name);
    return NULL;
}

#define ck_str_is(s, z)                                                                            \
    ck_assert_msg(ms_str_is((s), (z)), "expected '%s', got '%.*s'", (z), MS_STR_ARG(s))

/* A tensor leaf with these statistics. */
#define TENSOR(max, min, mean, norm)                                                               \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,3],\"Max\":" max          \
    ",\"Min\":" min ",\"Mean\":" mean ",\"Norm\":" norm ",\"requires_grad\":false}"
#define SCALAR(type, value) "{\"type\":\"" type "\",\"value\":" value "}"

#endif
