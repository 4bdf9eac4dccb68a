/* SPDX-License-Identifier: MIT
 *
 * pairing: several threads pair, measure and list what one does; run with a checker
 * of threads, too.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "compare/write/out.h"
#include "tests/gen/big_dump.h"

enum { RECORDS = 1500, THREADS = 4 };

static void write_big(const char *path, unsigned seed)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    big_dump_write(f, RECORDS, seed);
    ck_assert_int_eq(fclose(f), 0);
}

/* Open the pair with so many threads, measure it, and write its table. */
static struct ms_file compare_by(struct fixture *f, unsigned threads)
{
    struct ms_pool *pool;
    struct cmp_summary sum = {0};
    struct cmp_files files = {0};
    char stem[96];
    snprintf(stem, sizeof stem, "%s/by%u", f->dir, threads);
    ck_ok(ms_pool_new(&pool, threads, &f->err), f->err);
    ck_ok(cmp_open(&f->c, &f->conf, f->t, f->b, pool, &f->err), f->err);
    ck_ok(cmp_measure(f->c, pool, &f->err), f->err);
    ck_ok(cmp_write_csv(f->c, stem, pool, &sum, &files, &f->err), f->err);
    struct ms_file text;
    ck_ok(ms_file_map(&text, files.list.p[0], SIZE_MAX, &f->err), f->err);
    cmp_files_free(&files);
    ms_pool_free(pool);
    cmp_close(f->c);
    f->c = NULL;
    return text;
}

static void same_by_all(struct fixture *f)
{
    struct ms_file one = compare_by(f, 1), four = compare_by(f, THREADS);
    ck_assert_uint_eq(one.n, four.n);
    ck_assert(memcmp(one.p, four.p, one.n) == 0);
    ms_file_unmap(&one);
    ms_file_unmap(&four);
}

static void pair_big(const struct cmp_conf *conf)
{
    struct fixture f;
    fixture_init(&f);
    f.conf = *conf;
    write_big(f.t, 1);
    write_big(f.b, 2);
    same_by_all(&f);
    fixture_free(&f);
}

START_TEST(threads_pair_by_name_what_one_does)
{
    pair_big(&(struct cmp_conf){.rules = cmp_rules_of(CMP_STRICT)});
}
END_TEST

START_TEST(threads_pair_in_fuzzy_order_what_one_does)
{
    pair_big(&(struct cmp_conf){.fuzzy = true});
}
END_TEST

START_TEST(threads_pair_by_mappings_what_one_does)
{
    pair_big(&(struct cmp_conf){.cell.on = true});
}
END_TEST

/* Pairs of tensors, one of them of several chunks. */
START_TEST(threads_measure_what_one_does)
{
    enum { TENSORS = 12, LARGE = (4 << 20) + 4099 };
    struct fixture f;
    static char data[TENSORS * 300];
    size_t at = 0;
    int8_t *x = calloc(LARGE, 1);
    ck_assert_ptr_nonnull(x);
    fixture_init(&f);
    for (size_t i = 0; i < LARGE; i++)
        x[i] = (int8_t)(i * 2654435761U >> 24);
    for (unsigned i = 0; i < TENSORS; i++) {
        uint64_t n = i == 5 ? LARGE : 1000 + i;
        for (int s = 0; s < 2; s++) {
            char path[200];
            snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%u.npy", f.dir, "tb"[s], i);
            x[i]++;
            ck_ok(probe_npy_write(path, MS_DT_I8, &n, 1, x, &f.err), f.err);
        }
        at += (size_t)snprintf(data + at, sizeof data - at,
                               "%s\"Torch.x.%u.forward\": {\"output\": [{\"type\":\"torch.Tensor\","
                               "\"dtype\":\"torch.int8\",\"shape\":[%llu],\"Max\":1,\"Min\":0,"
                               "\"Mean\":0,\"Norm\":1,\"data_name\":\"%u.npy\"}]}",
                               i != 0 ? "," : "", i, (unsigned long long)n, i);
    }
    fixture_dump(&f, 't', "tensor", "pytorch", data);
    fixture_dump(&f, 'b', "tensor", "pytorch", data);
    same_by_all(&f);
    f.conf.ext = true;
    same_by_all(&f);
    free(x);
    fixture_free(&f);
}
END_TEST

TEST_MAIN("pairing", threads_pair_by_name_what_one_does, threads_pair_in_fuzzy_order_what_one_does,
          threads_pair_by_mappings_what_one_does, threads_measure_what_one_does)
