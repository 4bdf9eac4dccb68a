/* SPDX-License-Identifier: MIT
 *
 * fuzz pins: any bytes as a file of pins, and as a calibration, for two small dumps.
 * What is read of pins must hold in the alignment that comes out, and noise is never
 * below zero.
 */
#include "compare/pair/match.h"
#include "compare/table/comparison.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TENSOR(n)                                                                                  \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [4, " #n "],"           \
    " \"Max\": " #n ".5, \"Min\": -" #n ", \"Mean\": 0.5, \"Norm\": 1" #n "}"
#define OP(name, in, out) "\"" name ".forward\": {\"input_args\": [" in "], \"output\": [" out "]}"

static const char *const texts[2] = {
    "{\"task\": \"statistics\", \"level\": \"L1\", \"framework\": \"pytorch\","
    " \"dump_data_dir\": null, \"data\": {" OP("Torch.a.0", TENSOR(1), TENSOR(2)) "," OP(
        "Torch.b.0", TENSOR(2), TENSOR(3)) "," OP("Torch.c.0", TENSOR(3), TENSOR(4)) "}}",
    "{\"task\": \"statistics\", \"level\": \"L1\", \"framework\": \"mindspore\","
    " \"dump_data_dir\": null, \"data\": {" OP("Mint.a.0", TENSOR(1), TENSOR(2)) "," OP(
        "Mint.b.0", TENSOR(2), TENSOR(3)) "," OP("Mint.c.0", TENSOR(3), TENSOR(4)) "}}"};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void open_side(struct cmp__side *s, const char *text)
{
    struct ms_err err = {0};
    require(probe_dump_parse(&s->dump, "dump", ms_str_of(text), 0, NULL, &err) == MS_OK);
    require(ms_vec_reserve(&s->order, s->dump->rows.n + 1));
    for (uint32_t i = 0; i < s->dump->rows.n; i++)
        s->order.p[s->order.n++] = i;
}

static void check_pins(const struct cmp_rows *c, const struct cmp__pins *pins)
{
    const struct cmp_align_input t = {c->t.dump, NULL}, g = {c->b.dump, NULL};
    struct cmp_align *al;
    struct ms_err err = {0};
    require(cmp_align_new(&al, &t, &g, pins->nodes.p, pins->nodes.n, NULL, &err) == MS_OK);
    for (size_t i = 0; i < pins->nodes.n; i++) {
        const struct cmp_align_pin *pin = &pins->nodes.p[i];
        const struct cmp_align_pair *pairs;
        uint32_t node = probe_node_find(c->t.dump, pin->target);
        size_t n = cmp_align_of(al, node, &pairs);
        require(pin->golden.n != 0 || n == 0);
        bool found = pin->golden.n == 0;
        for (size_t k = 0; k < n; k++)
            found |= ms_str_eq(probe_node_name(c->b.dump, pairs[k].golden), pin->golden);
        require(found);
    }
    for (size_t i = 0; i < pins->rows.n; i++)
        require(pins->rows.p[i].target < c->t.dump->rows.n);
    cmp_align_free(al);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cmp_setup set = {.mode = PROBE_MODE_SUMMARY};
    struct cmp_rows c = {.set = &set};
    struct cmp_measured m = {.factors = NULL};
    struct cmp__pins pins = {.nodes = {.p = NULL}};
    struct ms_str text = {(const char *)data, (uint32_t)size};
    if (size > 1 << 16)
        return 0;
    open_side(&c.b, texts[0]);
    open_side(&c.t, texts[1]);
    if (cmp__pins_parse(&c, "pins", text, &pins, NULL) == MS_OK)
        check_pins(&c, &pins);
    if (cmp__parse_noise(&c, &m, "noise", text, NULL) == MS_OK) {
        require(m.noise.n == c.b.order.n);
        for (size_t i = 0; i < m.noise.n; i++)
            require(!(m.noise.p[i] < 0));
    }
    cmp__pins_free(&pins);
    ms_vec_free(&m.noise);
    cmp__problems_free(&c.problems);
    cmp__side_free(&c.t);
    cmp__side_free(&c.b);
    return 0;
}
