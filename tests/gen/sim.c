/* SPDX-License-Identifier: MIT
 *
 * sim: see the header.
 */
#include "tests/gen/sim.h"

#include "mstx/format/comm.h"
#include "tests/support/make_capture.h"

#include <math.h>

/* ---- chance ------------------------------------------------------------------- */

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}

static double uniform(void)
{
    return (double)(draw() >> 11) / 9007199254740992.0;
}

static int below(int n)
{
    return (int)(draw() >> 33) % n;
}

/* Of deviation 1 and with a heavier tail than the normal: one in 200 is ten times as far. */
static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return below(200) == 0 ? 10 * fabs(sum) : sum;
}

static double around(double value, double deviation)
{
    const double v = value * (1 + deviation * normal());
    return v > value / 4 ? v : value / 4;
}

/* ---- ranks --------------------------------------------------------------------- */

struct group {
    uint64_t uid;
    int n, *rank;
    double factor; /* of transfers */
};

enum { RANKS_MAX = 16384 };
/* Groups of a rank; BEFORE and NEXT are pairs of stages. */
enum { TENSOR, DATA, WORLD, BEFORE, NEXT, EXPERT, SLOTS };

struct player {
    struct maker m;
    double now;           /* ns of the true clock */
    double offset, slope; /* of its host's clock */
    int tp, pp, dp;       /* places */
    struct group *group[SLOTS];
    uint32_t seq[SLOTS], p2p[SLOTS];
    uint32_t name[4], step_name;
    uint16_t domain;
    uint64_t range;
    struct mstx_rec *rec;
    size_t n, cap;
};
static const char *const names[] = {"HcclAllReduce", "HcclSend", "HcclRecv", "HcclAlltoAll"};

static struct player *players;
static struct group *groups;
static int group_count;
static struct sim *run;

static int rank_of(int tp, int pp, int dp)
{
    return (pp * run->dp + dp) * run->tp + tp;
}

static struct group *new_group(int n)
{
    struct group *g = &groups[group_count++];
    *g = (struct group){0xC0DE0000u + (uint64_t)group_count, n, calloc((size_t)n, sizeof(int)), 1};
    return g;
}

static void place(struct group *g, int at, int rank, int slot)
{
    g->rank[at] = rank;
    players[rank].group[slot] = g;
}

static void make_groups(void)
{
    const struct sim *s = run;
    const int n = s->tp * s->pp * s->dp;
    groups = calloc((size_t)(4 * n + 1), sizeof *groups);
    group_count = 0;
    for (int p = 0; p < s->pp; p++) {
        for (int d = 0; s->tp > 1 && d < s->dp; d++) {
            struct group *g = new_group(s->tp);
            for (int t = 0; t < s->tp; t++)
                place(g, t, rank_of(t, p, d), TENSOR);
        }
        for (int t = 0; s->dp > 1 && t < s->tp; t++) {
            struct group *g = new_group(s->dp);
            for (int d = 0; d < s->dp; d++)
                place(g, d, rank_of(t, p, d), DATA);
        }
    }
    for (int i = 0; s->ep > 1 && i < n / s->ep; i++) {
        struct group *g = new_group(s->ep);
        const int t = i % s->tp, block = i / s->tp; /* of ep places in dp, stage by stage */
        for (int e = 0; e < s->ep; e++)
            place(g, e, rank_of(t, block * s->ep / s->dp, block * s->ep % s->dp + e), EXPERT);
    }
    struct group *world = new_group(n);
    for (int r = 0; r < n; r++)
        place(world, r, r, WORLD);
    for (int p = 0; p + 1 < s->pp; p++) {
        for (int d = 0; d < s->dp; d++) {
            for (int t = 0; t < s->tp; t++) {
                struct group *g = new_group(2);
                place(g, 0, rank_of(t, p, d), NEXT);
                place(g, 1, rank_of(t, p + 1, d), BEFORE);
            }
        }
    }
}

/* ---- records -------------------------------------------------------------------- */

static uint64_t ticks_of(const struct player *p, double t)
{
    return (uint64_t)(t * (1 + p->slope) + p->offset + 20e6);
}

static void put(struct player *p, const void *rec)
{
    if (p->n == p->cap) {
        p->cap = p->cap != 0 ? 2 * p->cap : 4096;
        p->rec = realloc(p->rec, p->cap * sizeof *p->rec);
        if (p->rec == NULL) {
            perror("sim");
            exit(1);
        }
    }
    memcpy(&p->rec[p->n++], rec, sizeof *p->rec);
}

struct call {
    int slot; /* of the group */
    uint8_t op;
    int name;
    int32_t peer;
    uint64_t count;
};

/* end < 0: it never came back. */
static void put_call(struct player *p, const struct call *c, double begin, double end)
{
    const bool is_p2p = c->op == MSTX_COMM_SEND || c->op == MSTX_COMM_RECV;
    const uint64_t from = TICKS_0 + ticks_of(p, begin), id = p->range++;
    const struct mstx_rec b = {from,        id, p->name[c->name], p->domain, MSTX_REC_BEGIN,
                               MSTX_F_MORE, 0};
    const struct mstx_rec_comm comm = {.count = c->count,
                                       .group = (uint32_t)c->slot + 1,
                                       .seq = is_p2p ? p->p2p[c->slot]++ : p->seq[c->slot]++,
                                       .peer = c->peer,
                                       .dtype = MSTX_TYPE_FP16,
                                       .reduce = is_p2p ? MSTX_REDUCE_NONE : MSTX_REDUCE_SUM,
                                       .type = MSTX_REC_COMM,
                                       .op = c->op,
                                       .lib = MSTX_LIB_MPI, /* whose calls return when it is done */
                                       .elem = 2};
    put(p, &b);
    put(p, &comm);
    if (end < 0)
        return;
    const struct mstx_rec e = {
        TICKS_0 + ticks_of(p, end), id, p->name[c->name], p->domain, MSTX_REC_END, 0, from};
    put(p, &e);
}

/* ---- what happens ---------------------------------------------------------------- */

static double step_ns;                        /* of a clean run, about */
static const double LAYER_NS = 4e6, BUS = 40; /* bytes per ns */

static void compute(int rank, double ns, int step, double per_step)
{
    struct player *p = &players[rank];
    const struct sim *s = run;
    double time = around(ns, s->jitter);
    if (p->pp == s->pp - 1)
        time *= 1 + s->imbalance;
    if ((s->fault == SIM_STRAGGLER || s->fault == SIM_FAIL_SLOW) && rank == s->rank &&
        step >= s->from_step)
        time += s->amount * step_ns * ns / per_step;
    p->now += time;
}

static void collective(struct group *g, int slot, uint64_t count, int step)
{
    const bool is_expert = slot == EXPERT;
    double last = 0;
    const bool fails = slot == WORLD && step == run->steps - 1;
    for (int i = 0; i < g->n; i++)
        last = fmax(last, players[g->rank[i]].now);
    const double end =
        last + around(20e3 + 4.0 * (double)count * (g->n - 1) / g->n / BUS, run->noise) * g->factor;
    for (int i = 0; i < g->n; i++) {
        struct player *p = &players[g->rank[i]];
        struct call c = {slot, is_expert ? MSTX_COMM_ALLTOALL : MSTX_COMM_ALLREDUCE,
                         is_expert ? 3 : 0, -1, count};
        const double out = end + 2e3 * uniform();
        if (run->fault == SIM_MISMATCH && slot == DATA && step == run->steps / 2 &&
            g->rank[i] == run->rank)
            c.count += 64;
        if (!(run->fault == SIM_HANG && fails))
            put_call(p, &c, p->now, out);
        else if (g->rank[i] != run->rank)
            put_call(p, &c, p->now, -1);
        p->now = out;
    }
}

static void send_on(struct group *g, uint64_t count)
{
    struct player *a = &players[g->rank[0]], *b = &players[g->rank[1]];
    const double begin = fmax(a->now, b->now);
    const double end = begin + around(10e3 + 2.0 * (double)count / BUS, run->noise) * g->factor;
    put_call(a, &(struct call){NEXT, MSTX_COMM_SEND, 1, 1, count}, a->now, end);
    put_call(b, &(struct call){BEFORE, MSTX_COMM_RECV, 2, 0, count}, b->now, end);
    a->now = b->now = end;
}

/* Tokens go to their experts: in all groups of a stage before anybody computes on. */
static void expert_layer(int stage, int step)
{
    for (int r = 0; r < run->tp * run->dp * run->pp; r++) {
        struct group *g = players[r].group[EXPERT];
        if (g != NULL && players[r].pp == stage && g->rank[0] == r)
            collective(g, EXPERT, 1 << 20, step);
    }
}

static void micro_batch(int step, double per_step)
{
    const struct sim *s = run;
    for (int p = 0; p < s->pp; p++) {
        for (int d = 0; d < s->dp; d++) {
            for (int l = 0; l < s->layers; l++) {
                for (int t = 0; t < s->tp; t++)
                    compute(rank_of(t, p, d), LAYER_NS, step, per_step);
                if (s->tp > 1)
                    collective(players[rank_of(0, p, d)].group[TENSOR], TENSOR, 8 << 20, step);
            }
        }
        if (s->ep > 1)
            expert_layer(p, step);
        for (int d = 0; d < s->dp; d++) {
            for (int t = 0; t < s->tp && p + 1 < s->pp; t++)
                send_on(players[rank_of(t, p, d)].group[NEXT], 4 << 20);
        }
    }
}

static void one_step(int step, int ranks)
{
    const struct sim *s = run;
    const double per_step = LAYER_NS * s->layers * s->micro;
    double begin[RANKS_MAX];
    char text[32];
    snprintf(text, sizeof text, "step %d", step);
    for (int r = 0; r < ranks; r++) {
        struct player *p = &players[r];
        begin[r] = p->now;
        p->step_name = maker_text(&p->m, text);
        const struct mstx_rec b = {
            TICKS_0 + ticks_of(p, p->now), p->range++, p->step_name, 0, MSTX_REC_BEGIN, 0, 0};
        put(p, &b);
    }
    uint64_t id[RANKS_MAX];
    for (int r = 0; r < ranks; r++)
        id[r] = players[r].range - 1;
    for (int i = 0; i < s->micro; i++)
        micro_batch(step, per_step);
    for (int i = 0; i < group_count; i++) {
        for (int b = 0; b < s->buckets && players[groups[i].rank[0]].group[DATA] == &groups[i]; b++)
            collective(&groups[i], DATA, 32 << 20, step);
    }
    collective(players[0].group[WORLD], WORLD, 1, step);
    for (int r = 0; r < ranks; r++) {
        struct player *p = &players[r];
        const struct mstx_rec e = {
            TICKS_0 + ticks_of(p, p->now),  id[r], p->step_name, 0, MSTX_REC_END, 0,
            TICKS_0 + ticks_of(p, begin[r])};
        put(p, &e);
    }
}

/* ---- files ---------------------------------------------------------------------- */

static void introduce(struct player *p, int slot)
{
    const struct group *g = p->group[slot];
    static const char *const kind[] = {"tensor", "data", "world", "pipe", "pipe", "expert"};
    unsigned char text[sizeof(struct mstx_comm_group) + RANKS_MAX * 4 + 32];
    struct mstx_comm_group h = {.uid = g->uid, .size = g->n, .rank = -1, .listed = (uint32_t)g->n};
    size_t n = sizeof h;
    memcpy(text, &h, sizeof h);
    for (int i = 0; i < g->n; i++) {
        const int32_t r = g->rank[i];
        memcpy(text + n, &r, sizeof r);
        n += sizeof r;
    }
    n += (size_t)snprintf((char *)text + n, 32, "%s_%d", kind[slot], (int)(g - groups));
    maker_entry(&p->m, MSTX_GROUP, 0, (uint64_t)slot + 1, text, (uint32_t)n);
}

static void begin_player(int r, const char *dir)
{
    struct player *p = &players[r];
    const struct sim *s = run;
    maker_begin(&p->m, dir, r, 1000 + (uint32_t)r);
    p->range = 1;
    p->tp = r % s->tp;
    p->dp = r / s->tp % s->dp;
    p->pp = r / s->tp / s->dp;
    p->domain = maker_domain(&p->m, MSTX_COMM_DOMAIN);
    for (int i = 0; i < 4; i++)
        p->name[i] = maker_text(&p->m, names[i]);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (p->group[slot] != NULL)
            introduce(p, slot);
    }
}

static void name_host(struct mstx_seg *h, int host)
{
    snprintf(h->host, sizeof h->host, "node%d", host);
    snprintf((char *)h->boot_id, sizeof h->boot_id, "boot-%d", host % 100000);
    h->world_size = run->tp * run->pp * run->dp;
}

static void end_player(int r)
{
    struct player *p = &players[r];
    name_host(&p->m.texts_head, r / run->per_host);
    maker_end(&p->m);
    maker_ring(&p->m, 1, 1, p->m.pid);
    name_host(&p->m.head, r / run->per_host);
    fwrite(p->rec, sizeof *p->rec, p->n, p->m.f);
    p->m.head.head = p->n;
    run->records += p->n;
    maker_end_ring(&p->m);
    free(p->rec);
}

/* A rank that left nothing has no directory. */
static void remove_player(int r)
{
    struct player *p = &players[r];
    char path[400];
    static const char *const files[] = {MSTX_STRINGS, "r0001.0001.seg"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", p->m.dir, files[i]);
        remove(path);
    }
    remove(p->m.dir);
}

static void choose(int ranks)
{
    struct sim *s = run;
    s->rank = below(ranks);
    s->other = -1;
    if (s->fault == SIM_FAIL_SLOW)
        s->from_step = s->steps / 2;
    if (s->fault != SIM_SLOW_GROUP && s->fault != SIM_SLOW_PAIR)
        return;
    struct group *g;
    do {
        g = &groups[below(group_count)];
    } while (g == players[0].group[WORLD] ||
             (players[g->rank[0]].group[NEXT] == g) != (s->fault == SIM_SLOW_PAIR));
    g->factor = 1 / (1 - s->amount);
    s->rank = g->rank[0];
    s->other = g->rank[g->n - 1];
}

void sim_write(struct sim *s, const char *dir)
{
    const int ranks = s->tp * s->pp * s->dp;
    run = s;
    state = s->seed * 0x9E3779B97F4A7C15u + 1;
    s->records = 0;
    players = calloc((size_t)ranks, sizeof *players);
    make_groups();
    choose(ranks);
    for (int r = 0; r < ranks; r++)
        begin_player(r, dir);
    for (int h = 0; h * s->per_host < ranks; h++) {
        const double offset = 2e6 * s->clock_ms * (uniform() - 0.5);
        const double slope = 2e-6 * s->drift_ppm * (uniform() - 0.5);
        for (int r = h * s->per_host; r < ranks && r < (h + 1) * s->per_host; r++) {
            players[r].offset = offset;
            players[r].slope = slope;
        }
    }
    step_ns =
        LAYER_NS * s->layers * s->micro * 1.2 * (s->pp > 1 ? 1 + (s->pp - 1.0) / s->micro : 1);
    for (int i = 0; i < s->steps; i++)
        one_step(i, ranks);
    for (int r = 0; r < ranks; r++) {
        end_player(r);
        if (s->fault == SIM_MISSING && r == s->rank)
            remove_player(r);
    }
    for (int i = 0; i < group_count; i++)
        free(groups[i].rank);
    free(groups);
    free(players);
}

void sim_draw(struct sim *s, uint64_t seed, enum sim_fault fault, double amount)
{
    static const int shapes[][3] = {{1, 1, 4}, {1, 1, 8}, {2, 1, 4}, {4, 1, 4},
                                    {2, 2, 4}, {1, 4, 4}, {2, 4, 2}, {4, 2, 4}};
    const bool needs_stages = fault == SIM_SLOW_PAIR, needs_groups = fault == SIM_SLOW_GROUP;
    state = seed * 0xD1342543DE82EF95u + 7;
    for (int i = 0; i < 8; i++)
        draw();
    const int *shape;
    do {
        shape = shapes[below(8)];
    } while ((needs_stages && shape[1] == 1) || (needs_groups && shape[0] * shape[1] < 4));
    *s = (struct sim){.tp = shape[0],
                      .pp = shape[1],
                      .dp = shape[2],
                      .steps = 12 + below(30),
                      .micro = 2 + below(3),
                      .layers = 2 + below(3),
                      .buckets = 1 + below(4),
                      .per_host = 4 << below(2),
                      .jitter = 0.005 + 0.015 * uniform(),
                      .noise = 0.01 + 0.04 * uniform(),
                      .imbalance = 0.1 * uniform(),
                      .clock_ms = 10,
                      .drift_ppm = 20,
                      .fault = fault,
                      .amount = amount,
                      .seed = seed};
}

void sim_draw_wide(struct sim *s, uint64_t seed, enum sim_fault fault, double amount)
{
    sim_draw(s, seed, fault, amount);
    const bool needs_stages = fault == SIM_SLOW_PAIR, needs_groups = fault == SIM_SLOW_GROUP;
    int ranks;
    do {
        s->tp = 1 << below(4);
        s->pp = 1 << below(3);
        s->dp = 1 << below(8);
        ranks = s->tp * s->pp * s->dp;
    } while (ranks < 2 || ranks > 512 || (needs_stages && (s->pp == 1 || s->tp * s->dp < 2)) ||
             (needs_groups && ranks / (s->tp > s->dp ? s->tp : s->dp) < 4));
    s->ep = s->dp % 4 == 0 ? 1 << below(3) : 1;
    s->steps = 5 + below(196);
    while (s->steps > 5 && s->steps * ranks > 8000)
        s->steps = 5 + below(s->steps - 5);
    s->per_host = 8;
    if (s->tp * s->dp == 1) /* nobody does the same work: a longer stage would be a slow rank */
        s->imbalance = 0;
}
