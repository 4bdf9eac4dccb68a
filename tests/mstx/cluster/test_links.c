/* SPDX-License-Identifier: MIT
 *
 * Drawn transfers and collectives against a slow second answer: the paths that they take, how long they
 * take on each, and which paths are slower than those that are alike.
 */
#include "mstx/cluster/links.h"

#include "mstx/cluster/join.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

enum { CASES = 800, RANKS = 6, GROUPS = 4, PATHS = 400, TIMES = 64 };

static uint64_t state;
static struct mstx_cluster c;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- drawn calls ------------------------------------------------------------------------------- */

static const uint64_t sizes[] = {65535, 65536, 1 << 20};
static const uint8_t ops[] = {MSTX_COMM_ALLREDUCE, MSTX_COMM_BROADCAST};
static int64_t slowness[GROUPS + RANKS * RANKS]; /* hundredths by communicator or pair of ranks */

static void draw_groups(bool is_open)
{
    for (uint32_t g = 1; g <= GROUPS; g++) {
        int32_t world[RANKS];
        for (int32_t i = 0; i < RANKS; i++)
            world[i] = (i + (int32_t)g) % RANKS;
        mstx__cluster_group(&c, g, MS_STR("group"), RANKS, world, g % 2 == 0 ? RANKS : 0);
        struct mstx_cl_group *of = &c.group.p[g - 1];
        for (uint32_t r = 0; r < 2 + g % 2; r++)
            *(uint32_t *)ms_vec_push(&of->members) = r + g % 3;
        of->hosts = 1 + (below(4) == 0);
        of->place = is_open ? 5 : 0;
        of->seqs = 100;
    }
    c.from = is_open ? 10 : 0;
    c.to = 10000;
}

static int64_t draw_time(size_t path)
{
    const uint32_t usual = 100000 + below(4000);
    return below(30) == 0 ? 0 : (int64_t)usual * slowness[path] / 100;
}

static void draw_joins(void)
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t n = below(40); n > 0; n--) {
            struct mstx_cl_join *j = ms_vec_push(&c.join);
            *j = (struct mstx_cl_join){.group = g,
                                       .ranks = 2 + (below(6) == 0),
                                       .transfer_ns = below(20) == 0 ? -1 : draw_time(g),
                                       .bytes = sizes[below(5) == 0 ? below(3) : 1],
                                       .op = ops[below(6) == 0]};
        }
    }
}

static void push_call(uint32_t process, uint32_t group, uint8_t op, int32_t peer, uint64_t bytes,
                      int64_t ns)
{
    struct mstx_cl_call *k = ms_vec_push(&c.p2p);
    *k = (struct mstx_cl_call){.dur_ns = ns + below(5000),
                               .bytes = below(25) == 0 ? bytes + 1 : bytes,
                               .group = group,
                               .process = process,
                               .peer = below(60) == 0   ? -1
                                       : below(60) == 0 ? RANKS
                                                        : peer,
                               .op = op,
                               .flags = below(40) == 0 ? MSTX_CF_ASYNC : 0,
                               .unfinished = below(40) == 0};
}

/* Peers are ranks of the communicator, in which the world may stand in another order. */
static int32_t peer_of(uint32_t group, int32_t rank)
{
    return (group + 1) % 2 == 0 ? (rank - (int32_t)group - 1 + RANKS) % RANKS : rank;
}

static void draw_transfers(void)
{
    for (uint32_t n = below(120); n > 0; n--) {
        const uint32_t src = below(RANKS), dst = (src + 1 + below(2)) % RANKS, g = below(2);
        const int64_t ns = draw_time(GROUPS + src * RANKS + dst);
        const uint64_t bytes = sizes[below(8) == 0 ? 0 : 2];
        if (below(30) != 0)
            push_call(src, g, MSTX_COMM_SEND, peer_of(g, (int32_t)dst), bytes, ns);
        if (below(30) != 0)
            push_call(dst, g, MSTX_COMM_RECV, peer_of(g, (int32_t)src), bytes, ns);
        if (below(30) == 0)
            push_call(dst, g, MSTX_COMM_WAIT, peer_of(g, (int32_t)src), bytes, ns);
    }
}

static void draw_cluster(uint64_t seed)
{
    state = seed;
    c = (struct mstx_cluster){0};
    for (int32_t r = 0; r < RANKS; r++) {
        struct mstx_cl_process *p = ms_vec_push(&c.process);
        *p = (struct mstx_cl_process){.rank = r, .host = (uint32_t)r / 3};
    }
    for (size_t i = 0; i < sizeof slowness / sizeof *slowness; i++)
        slowness[i] = below(6) == 0 ? 100 + below(90) : 100;
    draw_groups(seed % 4 == 0);
    draw_joins();
    draw_transfers();
}

/* ---- the second answer ---------------------------------------------------------------------------- */

struct path {
    struct mstx_cl_link key;
    double ns[TIMES];
    size_t n, alike;
    double ratio, z;
};

static struct path path[PATHS];
static size_t paths;

static bool are_alike(const struct mstx_cl_link *a, const struct mstx_cl_link *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->ranks == b->ranks && a->hosts == b->hosts;
}

static bool is_same(const struct mstx_cl_link *a, const struct mstx_cl_link *b)
{
    return are_alike(a, b) && a->src == b->src && a->dst == b->dst && a->group == b->group;
}

static void add_time(const struct mstx_cl_link *key, int64_t ns)
{
    size_t i = 0;
    while (i < paths && !is_same(&path[i].key, key))
        i++;
    ck_assert_uint_lt(i, PATHS);
    if (i == paths)
        path[paths++] = (struct path){.key = *key};
    ck_assert_uint_lt(path[i].n, TIMES);
    path[i].ns[path[i].n++] = (double)ns;
}

static int by_size(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a > *b ? 1 : *a < *b ? -1 : 0;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static void find_collectives(void)
{
    for (size_t i = 0; i < c.join.n; i++) {
        const struct mstx_cl_join *j = &c.join.p[i];
        const struct mstx_cl_link key = {.src = -1,
                                         .dst = -1,
                                         .group = j->group,
                                         .ranks = j->ranks,
                                         .hosts = c.group.p[j->group].hosts,
                                         .bytes = j->bytes,
                                         .op = j->op};
        if (j->transfer_ns > 0)
            add_time(&key, j->transfer_ns);
    }
}

/* The n-th call of one rank that sends to another, or receives from it, in a communicator. */
static const struct mstx_cl_call *nth_call(uint8_t op, uint32_t group, int32_t own, int32_t other,
                                           size_t n)
{
    for (size_t i = 0; i < c.p2p.n; i++) {
        const struct mstx_cl_call *k = &c.p2p.p[i];
        const bool is_listed = k->peer >= 0 && (c.group.p[group].world.n == 0 || k->peer < RANKS);
        if (k->op != op || k->group != group || (int32_t)k->process != own || !is_listed)
            continue;
        const int32_t peer =
            c.group.p[group].world.n != 0 ? c.group.p[group].world.p[k->peer] : k->peer;
        if (peer == other && n-- == 0)
            return k;
    }
    return NULL;
}

static void find_pair(uint32_t group, int32_t src, int32_t dst)
{
    const struct mstx_cl_call *a, *b;
    for (size_t n = 0; (a = nth_call(MSTX_COMM_SEND, group, src, dst, n)) != NULL &&
                       (b = nth_call(MSTX_COMM_RECV, group, dst, src, n)) != NULL;
         n++) {
        const struct mstx_cl_link key = {.src = src,
                                         .dst = dst,
                                         .group = group,
                                         .ranks = 2,
                                         .hosts = src / 3 != dst / 3 ? 2 : 1,
                                         .bytes = a->bytes,
                                         .op = MSTX_COMM_SEND};
        const int64_t ns = a->dur_ns < b->dur_ns ? a->dur_ns : b->dur_ns;
        if (((a->flags | b->flags) & MSTX_CF_ASYNC) == 0 && !a->unfinished && !b->unfinished &&
            a->bytes == b->bytes && a->bytes >= 65536 && ns > 0)
            add_time(&key, ns);
    }
}

static double time_of(struct path *p)
{
    return floor(median(p->ns, p->n));
}

static void compare_alike(struct path *p)
{
    double v[PATHS];
    p->alike = 0;
    for (size_t i = 0; i < paths; i++) {
        if (are_alike(&path[i].key, &p->key))
            v[p->alike++] = time_of(&path[i]);
    }
    const double middle = median(v, p->alike);
    for (size_t i = 0; i < p->alike; i++)
        v[i] = fabs(v[i] - middle);
    const double spread = fmax(1.4826 * median(v, p->alike), 0.02 * middle);
    p->ratio = time_of(p) / middle;
    p->z = (time_of(p) - middle) / spread;
}

static bool is_slow(const struct path *p)
{
    return p->alike >= 3 && p->n >= 5 && p->key.bytes >= 65536 && p->ratio >= 1.12 && p->z >= 4;
}

/* Entries of one pair of ranks, or of one communicator, are one path to somebody who repairs it. */
static bool is_one_place(const struct mstx_cl_link *a, const struct mstx_cl_link *b)
{
    return a->src == b->src && a->dst == b->dst && (a->src >= 0 || a->group == b->group);
}

static void check_links(void)
{
    ck_assert_uint_eq(c.link.n, paths);
    for (size_t i = 0; i < c.link.n; i++) {
        size_t k = 0;
        while (k < paths && !is_same(&path[k].key, &c.link.p[i]))
            k++;
        ck_assert_uint_lt(k, paths);
        ck_assert_int_eq(c.link.p[i].calls, (int64_t)path[k].n);
        ck_assert_int_eq(c.link.p[i].transfer_ns, (int64_t)time_of(&path[k]));
        ck_assert_double_eq_tol(c.link.p[i].ratio, path[k].ratio, 1e-9);
        ck_assert_double_eq_tol(c.link.p[i].z, path[k].z, 1e-6);
    }
}

/* The rank that a note of a path names: the sender, or the first member. */
static int32_t rank_of(const struct path *p)
{
    return p->key.src >= 0 ? p->key.src : c.process.p[c.group.p[p->key.group].members.p[0]].rank;
}

static bool says(const struct mstx_cl_note *n, const char *name, int64_t v)
{
    char want[64];
    snprintf(want, sizeof want, "\"%s\": %lld", name, (long long)v);
    const char *at = strstr(n->message.args, want);
    return at != NULL && (at[strlen(want)] == ',' || at[strlen(want)] == '}');
}

/* The sentence has the size, the number of the others, and both ends or the communicator. */
static bool says_all(const struct mstx_cl_note *n, const struct path *p)
{
    if (!says(n, "bytes", (int64_t)p->key.bytes) || !says(n, "alike", (int64_t)p->alike - 1))
        return false;
    if (p->key.src >= 0)
        return says(n, "src", p->key.src) && says(n, "dst", p->key.dst);
    const struct mstx_cl_group *g = &c.group.p[p->key.group];
    return says(n, "ranks", (int64_t)g->members.n) &&
           says(n, "first_rank", c.process.p[g->members.p[0]].rank) &&
           says(n, "last_rank", c.process.p[g->members.p[g->members.n - 1]].rank);
}

static void check_notes(void)
{
    size_t places = 0;
    for (size_t i = 0; i < paths; i++) {
        const struct path *worst = &path[i];
        bool is_first = is_slow(worst);
        for (size_t k = 0; k < paths && is_first; k++) {
            if (!is_slow(&path[k]) || !is_one_place(&path[k].key, &path[i].key))
                continue;
            is_first = k >= i;
            worst = path[k].z > worst->z ? &path[k] : worst;
        }
        if (!is_first)
            continue;
        places++;
        bool found = false;
        for (size_t n = 0; n < c.note.n; n++)
            found |= c.note.p[n].rank == rank_of(worst) && says_all(&c.note.p[n], worst) &&
                     fabs(c.note.p[n].value - worst->ratio) < 1e-9 &&
                     strcmp(c.note.p[n].kind, "slow_link") == 0 &&
                     strcmp(c.note.p[n].severity, worst->ratio >= 1.5 ? "error" : "warning") == 0;
        ck_assert_msg(found, "rank %d, %g", rank_of(worst), worst->ratio);
    }
    ck_assert_uint_eq(places, c.note.n);
}

START_TEST(paths_and_slow_ones_are_those_of_the_second_answer)
{
    size_t notes = 0;
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_cluster(seed);
        mstx__cluster_paths(&c);
        mstx__cluster_links(&c);
        ck_assert(!c.no_memory);
        paths = 0;
        find_collectives();
        for (uint32_t g = 0; g < GROUPS; g++) {
            for (int32_t pair = 0; pair < RANKS * RANKS; pair++)
                find_pair(g, pair / RANKS, pair % RANKS);
        }
        for (size_t i = 0; i < paths; i++)
            compare_alike(&path[i]);
        check_links();
        check_notes();
        notes += c.note.n;
        mstx__cluster_free(&c);
    }
    ck_assert_uint_gt(notes, CASES / 4);
}
END_TEST

TEST_MAIN("links", paths_and_slow_ones_are_those_of_the_second_answer)
