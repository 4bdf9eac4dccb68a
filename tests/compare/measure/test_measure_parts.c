/* SPDX-License-Identifier: MIT
 *
 * measure_parts: processes that measure a share of the chunks each find together what one finds; and
 * outputs of which an operator wrote the head alone.
 */
#include "tests/support/cmp_fixture.h"

#include "compare/measure/measured.h"
#include "compare/table/comparison.h"
#include "probe/tensor/tensor.h"

#include <math.h>

enum { TENSORS = 5, PARTS = 4, LARGE = (4 << 20) + 5 };

static void write_tensor(const struct fixture *f, char side, const char *name, enum ms_dtype t,
                         const uint64_t *shape, uint32_t ndim, const void *data)
{
    char path[160];
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%s.pt", f->dir, side, name);
    ck_ok(probe_pt_write(path, t, shape, ndim, data, &err), err);
}

/* Bytes, so that the largest has more than one chunk. */
static void write_side(const struct fixture *f, char side)
{
    struct ms_buf text = {.max = 1 << 14};
    uint8_t *data = calloc(LARGE, 1);
    ck_assert_ptr_nonnull(data);
    for (int i = 0; i < TENSORS; i++) {
        const uint64_t n = i == 2 ? LARGE : (uint64_t)(2 + i);
        char name[8];
        for (uint64_t k = 0; k < n; k++)
            data[k] = (uint8_t)(k + (side == 't' && k % 7 == 0) + (unsigned)i);
        snprintf(name, sizeof name, "x%d", i);
        write_tensor(f, side, name, MS_DT_U8, &n, 1, data);
        ms_buf_printf(&text,
                      "%s\"Torch.a.%d.forward\":{\"output\":[{\"type\":\"torch.Tensor\",\"dtype\":"
                      "\"torch.uint8\",\"shape\":[%llu],\"Max\":1,\"Min\":0,\"Mean\":0.5,"
                      "\"Norm\":1,\"requires_grad\":false,\"data_name\":\"%s.pt\"}]}",
                      i != 0 ? "," : "", i, (unsigned long long)n, name);
    }
    fixture_dump(f, side, "tensor", "pytorch", ms_buf_z(&text));
    ms_buf_free(&text);
    free(data);
}

static struct cmp *opened(struct fixture *f)
{
    struct cmp *c;
    ck_ok(cmp_open(&c, &f->conf, f->t, f->b, NULL, &f->err), f->err);
    return c;
}

/* Each of so many processes measures its share; the last one joins them. */
static struct cmp *measured_by(struct fixture *f, unsigned parts, struct ms_buf packed[PARTS],
                               struct ms_str share[PARTS])
{
    struct cmp *c = NULL;
    for (unsigned p = 0; p < parts; p++) {
        cmp_close(c);
        c = opened(f);
        packed[p] = (struct ms_buf){.max = 1 << 20};
        ck_ok(cmp_measure_part(c, NULL, p, parts, &packed[p], &f->err), f->err);
        share[p] = (struct ms_str){packed[p].p, (uint32_t)packed[p].n};
    }
    return c;
}

static void free_shares(unsigned parts, struct ms_buf packed[PARTS])
{
    for (unsigned p = 0; p < parts; p++)
        ms_buf_free(&packed[p]);
}

START_TEST(shares_of_processes_are_the_whole)
{
    struct fixture f;
    struct ms_buf packed[PARTS];
    struct ms_str share[PARTS];
    fixture_init(&f);
    f.conf.ext = true;
    write_side(&f, 't');
    write_side(&f, 'b');
    fixture_open(&f);
    const struct cmp_measured *whole = &f.c->measured;
    for (unsigned parts = 1; parts <= PARTS; parts++) {
        struct cmp *c = measured_by(&f, parts, packed, share);
        uint32_t bytes = 0;
        for (unsigned p = 0; p < parts; p++) {
            bytes += share[p].n;
            ck_assert_uint_gt(share[p].n, 0);
        }
        ck_assert_uint_eq(bytes, share[0].n / ((TENSORS + 1 + parts - 1) / parts) * (TENSORS + 1));
        ck_ok(cmp_measure_join(c, share, parts, &f.err), f.err);
        ck_assert_uint_eq(c->measured.figures.n, whole->figures.n);
        ck_assert(memcmp(c->measured.figures.p, whole->figures.p,
                         whole->figures.n * sizeof *whole->figures.p) == 0);
        ck_assert_uint_eq(c->measured.bytes_read, whole->bytes_read);
        cmp_close(c);
        free_shares(parts, packed);
    }
    fixture_free(&f);
}
END_TEST

static void refuses(struct fixture *f, struct cmp *c, const struct ms_str *share, unsigned parts,
                    const char *why)
{
    ck_assert_int_eq(cmp_measure_join(c, share, parts, &f->err), MS_E_FORMAT);
    ck_says(f->err, why);
    ms_err_clear(&f->err);
}

START_TEST(shares_that_do_not_fit_are_refused)
{
    struct fixture f;
    struct ms_buf packed[PARTS];
    struct ms_str share[PARTS];
    fixture_init(&f);
    write_side(&f, 't');
    write_side(&f, 'b');
    struct cmp *c = measured_by(&f, 3, packed, share);
    const uint32_t one = share[0].n / 2; /* each process has two chunks */
    refuses(&f, c, share, 2, "no process has measured tensor pair 2");
    share[2].n -= one;
    refuses(&f, c, share, 3, "no process has measured tensor pair 4");
    share[2].n--;
    share[2].n += one;
    refuses(&f, c, share, 3, "half a chunk");
    share[2].n = one + 1;
    refuses(&f, c, share, 3, "half a chunk");
    share[2].n = 2 * one;
    memset(packed[0].p, 0xff, sizeof(uint32_t)); /* the pair of the first chunk */
    refuses(&f, c, share, 3, "other tensors");
    const uint32_t behind = TENSORS, last = TENSORS - 1;
    memcpy(packed[0].p, &behind, sizeof behind);
    refuses(&f, c, share, 3, "other tensors");
    memcpy(packed[0].p, &last, sizeof last); /* a pair that there is, but then one is missing */
    refuses(&f, c, share, 3, "no process has measured tensor pair 0");
    cmp_close(c);
    free_shares(3, packed);
    fixture_free(&f);
}
END_TEST

/* ---- heads of outputs ------------------------------------------------------------------------------ */

static void dump_grouped(const struct fixture *f, const char *op, const char *dtype,
                         const char *argument)
{
    char json[1024];
    for (int side = 0; side < 2; side++) {
        snprintf(json, sizeof json,
                 "\"NPU.%s.0.forward\":{\"input_kwargs\":{\"%s\":{\"type\":\"torch.Tensor\","
                 "\"dtype\":\"torch.%s\",\"shape\":[3],\"Max\":1,\"Min\":1,\"Mean\":1,\"Norm\":1,"
                 "\"requires_grad\":false,\"data_name\":\"sizes.pt\"}},\"output\":[{\"type\":"
                 "\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[5,2],\"Max\":1,\"Min\":0,"
                 "\"Mean\":0.5,\"Norm\":1,\"requires_grad\":false,\"data_name\":\"out.pt\"}]}",
                 op, argument, dtype);
        fixture_dump(f, "tb"[side], "tensor", "pytorch", json);
    }
}

/* The largest difference of an output of 5 rows of two, whose golden side is 0 behind row `golden` and
 * whose target is never 0. */
static double difference(struct fixture *f, enum ms_dtype t, const void *sizes, uint64_t n,
                         unsigned golden)
{
    static const float target[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const uint64_t shape[] = {1, 5, 2};
    float b[10] = {0};
    memcpy(b, target, golden * 2 * sizeof *b);
    for (int side = 0; side < 2; side++) {
        write_tensor(f, "tb"[side], "sizes", t, &n, 1, sizes);
        write_tensor(f, "tb"[side], "out", MS_DT_F32, shape, 3, side == 0 ? target : b);
    }
    fixture_open(f);
    const struct cmp_row *row = fixture_row(f, "out");
    ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
    return row->fig.metric[CMP_MAX_ABS];
}

START_TEST(rows_that_were_not_written_count_as_zeros)
{
    struct fixture f;
    static int64_t sizes[1200];
    static const int32_t few[] = {1, 0, 2};
    static const float singles[] = {1, 0, 2};
    fixture_init(&f);
    dump_grouped(&f, "npu_grouped_matmul", "int64", "group_list");
    for (unsigned rows = 0; rows <= 5; rows++) {
        sizes[0] = 1;
        sizes[1] = (int64_t)rows - 1;
        ck_assert(difference(&f, MS_DT_I64, sizes, 2, rows) == 0);
        if (rows < 5)
            ck_assert(difference(&f, MS_DT_I64, sizes, 2, rows + 1) == 2 * rows + 2);
    }
    sizes[0] = sizes[1] = 0;
    sizes[511] = sizes[512] = sizes[1199] = 1; /* sums go over blocks of 512 */
    ck_assert(difference(&f, MS_DT_I64, sizes, 1200, 3) == 0);
    ck_assert(difference(&f, MS_DT_I64, sizes, 1199, 2) == 0);
    ck_assert(difference(&f, MS_DT_I32, few, 3, 3) == 0);
    sizes[0] = -7; /* no number of rows */
    ck_assert(difference(&f, MS_DT_I64, sizes, 1200, 3) == 10);
    sizes[0] = 4;
    ck_assert(difference(&f, MS_DT_I64, sizes, 1200, 5) == 0); /* more than there are */
    ck_assert(difference(&f, MS_DT_F32, singles, 3, 3) == 10); /* no whole numbers */
    dump_grouped(&f, "npu_dequant_swiglu_quant", "int32", "group_index");
    ck_assert(difference(&f, MS_DT_I32, few, 3, 3) == 0);
    dump_grouped(&f, "npu_dequant_swiglu_quant", "int32", "group_list"); /* the other's argument */
    ck_assert(difference(&f, MS_DT_I32, few, 3, 3) == 10);
    dump_grouped(&f, "npu_other", "int32", "group_list");
    ck_assert(difference(&f, MS_DT_I32, few, 3, 3) == 10);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    dump_grouped(&f, "npu_grouped_matmul", "int32", "group_list");
    ck_assert(difference(&f, MS_DT_I32, few, 3, 5) == 0);
    fixture_free(&f);
}
END_TEST

TEST_MAIN("measure_parts", shares_of_processes_are_the_whole, shares_that_do_not_fit_are_refused,
          rows_that_were_not_written_count_as_zeros)
