/* SPDX-License-Identifier: MIT
 *
 * mpi_group: the identity of a communicator.
 *
 * Its identity is computed, never communicated: from its parent's identity, its world
 * ranks, how it was made, and how often the same was made before.  Every rank of the new
 * communicator has taken part in every earlier one of the same parent and members, so all of them
 * count alike.
 */
#include "mstx/hook/mpi/mpi_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hook_table hook_comms;
static struct hook_table windows;

static struct {
    struct hook_lock lock; /* protects everything below */
    struct hook_comm *free;
    hook_handle world; /* the handle MPI_COMM_WORLD; 0: MPI is not up */
    MPI_Group world_group;
    bool has_world;
    int32_t *ranks, *local; /* buffers for the members of one communicator, two of them */
    int32_t *other;         /* the other side of an intercommunicator */
    int room;
} own;

/* Counts how often a communicator of this identity was made before. */
struct count {
    uint64_t hash;
    uint32_t n;
    struct count *next;
};
enum { COUNTS = 1024 };
static struct count *counts[COUNTS];

static uint32_t count_up(uint64_t hash)
{
    struct count **at = &counts[hash % COUNTS];
    for (struct count *c = *at; c != NULL; c = c->next) {
        if (c->hash == hash)
            return c->n++;
    }
    struct count *c = hook_keep(sizeof *c);
    if (c != NULL) {
        *c = (struct count){hash, 1, *at};
        *at = c;
    }
    return 0;
}

HOOK_HOT const struct hook_comm *hook_comm_find(hook_handle h, enum hook_kind kind)
{
    const uint64_t v = hook_table_get(kind == HOOK_COMM ? &hook_comms : &windows, h);
    return (const struct hook_comm *)(uintptr_t)v;
}

void hook_pass_far(hook_handle comm, enum mstx_comm_class class)
{
    const struct hook_comm *k = hook_comm_find(comm, HOOK_COMM);
    if (k != NULL && k->sequences != NULL)
        atomic_fetch_add_explicit(&k->sequences[class], 1, memory_order_relaxed);
}

/* ---- members --------------------------------------------------------------------------------------- */

static bool make_room(int n)
{
    if (n <= own.room)
        return true;
    own.ranks = hook_keep((size_t)n * 2 * sizeof *own.ranks);
    own.local = hook_keep((size_t)n * 2 * sizeof *own.local);
    own.other = hook_keep((size_t)n * 2 * sizeof *own.other);
    own.room = own.ranks != NULL && own.local != NULL && own.other != NULL ? n * 2 : 0;
    return own.room != 0;
}

/* Writes the world ranks of a group into own.ranks; returns how many, or -1. Frees the group. */
static int world_ranks(MPI_Group *g)
{
    int n = -1;
    int (*size)(MPI_Group, int *) = HOOK_MPI(PMPI_Group_size);
    int (*translate)(MPI_Group, int, const int *, MPI_Group, int *) =
        HOOK_MPI(PMPI_Group_translate_ranks);
    int (*group_free)(MPI_Group *) = HOOK_MPI(PMPI_Group_free);
    if (size(*g, &n) != MPI_SUCCESS || !make_room(n))
        n = -1;
    for (int i = 0; i < n; i++)
        own.local[i] = i;
    if (n > 0 &&
        (!own.has_world || translate(*g, n, own.local, own.world_group, own.ranks) != MPI_SUCCESS))
        memcpy(own.ranks, own.local, (size_t)n * sizeof *own.ranks);
    for (int i = 0; i < n; i++)
        own.ranks[i] = own.ranks[i] == MPI_UNDEFINED ? -1 : own.ranks[i];
    group_free(g);
    return n;
}

static uint64_t hash_ranks(int n)
{
    return mstx_group_hash((uint64_t)n, own.ranks, (size_t)(n > 0 ? n : 0) * sizeof *own.ranks);
}

/* Members of a communicator. Those of an intercommunicator are both sides, in the same order on
 * both: the side with the lowest world rank comes first. */
struct members {
    uint64_t hash;
    int size, peers, rank; /* size of the local side and of the other, rank in the local side */
    int all, before;       /* size of both; number of members before the local side */
    int first;
    bool is_inter;
};

/* Joins the local side, in own.ranks, with the other, in own.other, in the order of struct
 * members. */
static void put_together(struct members *m)
{
    const bool is_first = m->peers == 0 || (m->size > 0 && own.ranks[0] < own.other[0]);
    const int32_t *low = is_first ? own.ranks : own.other, *high = is_first ? own.other : own.ranks;
    const int lows = is_first ? m->size : m->peers, highs = m->all - lows;
    m->before = is_first ? 0 : m->peers;
    memcpy(own.local, low, (size_t)lows * sizeof *low);
    memcpy(own.local + lows, high, (size_t)highs * sizeof *high);
    memcpy(own.ranks, own.local, (size_t)m->all * sizeof *own.ranks);
}

static bool make_room_for_both(MPI_Comm c)
{
    int (*local)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_size);
    int (*remote)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_remote_size);
    int n = 0, others = 0;
    return local(c, &n) == MPI_SUCCESS && remote(c, &others) == MPI_SUCCESS &&
           make_room(n + others);
}

/* Queries the members of a communicator, which are then in own.ranks. */
static bool ask_members(MPI_Comm c, struct members *m)
{
    MPI_Group g;
    int inter = 0;
    int (*test_inter)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_test_inter);
    int (*rank)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_rank);
    int (*group)(MPI_Comm, MPI_Group *) = HOOK_MPI(PMPI_Comm_group);
    int (*remote)(MPI_Comm, MPI_Group *) = HOOK_MPI(PMPI_Comm_remote_group);
    *m = (struct members){.rank = -1};
    if (test_inter(c, &inter) != MPI_SUCCESS || rank(c, &m->rank) != MPI_SUCCESS)
        return false;
    if (inter && (!make_room_for_both(c) || remote(c, &g) != MPI_SUCCESS))
        return false;
    if (inter) {
        m->peers = world_ranks(&g);
        memcpy(own.other, own.ranks, (size_t)(m->peers > 0 ? m->peers : 0) * sizeof *own.other);
    }
    if (group(c, &g) != MPI_SUCCESS)
        return false;
    m->size = world_ranks(&g);
    if (m->size < 0 || m->peers < 0)
        return false;
    m->is_inter = inter != 0;
    m->all = m->size + m->peers;
    if (inter)
        put_together(m);
    m->hash = hash_ranks(m->all);
    m->first = m->all > 0 ? own.ranks[0] : -1;
    m->peers = inter ? m->peers : m->size;
    return true;
}

static void ask_neighbours(MPI_Comm c, struct hook_comm *k)
{
    int kind = MPI_UNDEFINED, n = 0, weighted;
    int (*topo)(MPI_Comm, int *) = HOOK_MPI(PMPI_Topo_test);
    int (*cart)(MPI_Comm, int *) = HOOK_MPI(PMPI_Cartdim_get);
    int (*graph)(MPI_Comm, int, int *) = HOOK_MPI(PMPI_Graph_neighbors_count);
    int (*dist)(MPI_Comm, int *, int *, int *) = HOOK_MPI(PMPI_Dist_graph_neighbors_count);
    if (k->is_inter || topo(c, &kind) != MPI_SUCCESS)
        return;
    if (kind == MPI_CART && cart(c, &n) == MPI_SUCCESS)
        k->in = k->out = 2 * n;
    else if (kind == MPI_GRAPH && graph(c, k->rank, &n) == MPI_SUCCESS)
        k->in = k->out = n;
    else if (kind == MPI_DIST_GRAPH && dist(c, &k->in, &k->out, &weighted) != MPI_SUCCESS)
        k->in = k->out = 0;
}

/* ---- new communicators ---------------------------------------------------------------------- */

/* Caller holds own.lock. */
static struct hook_comm *take_free(void)
{
    struct hook_comm *k = own.free;
    if (k == NULL)
        return hook_keep(sizeof *k);
    own.free = k->next;
    return k;
}

/* Registers a communicator. Caller holds own.lock and has called ask_members. */
static void introduce(MPI_Comm c, MPI_Comm like, const struct members *m, uint64_t uid,
                      const char *name)
{
    struct hook_comm *k = take_free();
    if (k == NULL)
        return;
    *k = (struct hook_comm){
        .size = m->size, .peers = m->peers, .rank = m->rank, .is_inter = m->is_inter};
    k->others_at = m->is_inter && m->before == 0 ? m->size : 0;
    ask_neighbours(like, k);
    k->group = mstx_group_new(&(struct mstx_group_info){
        .uid = uid, .name = name, .size = m->all, .rank = m->before + m->rank, .world = own.ranks});
    k->sequences = mstx_group_sequences(k->group);
    if (!hook_table_put(&hook_comms, HOOK_HANDLE(c), (uint64_t)(uintptr_t)k))
        mstx_comm_note("more communicators than can be told apart; further ones have no name");
}

#if defined(OPEN_MPI)
static MPI_Comm predefined_comm(const char *variable)
{
    return (MPI_Comm)hook_find_variable(variable, hook_mpi_owners);
}
#define WORLD predefined_comm("ompi_mpi_comm_world")
#define SELF  predefined_comm("ompi_mpi_comm_self")
#define NONE  predefined_comm("ompi_mpi_comm_null")
#else
#define WORLD MPI_COMM_WORLD
#define SELF  MPI_COMM_SELF
#define NONE  MPI_COMM_NULL
#endif

MPI_Comm hook_world(void)
{
    return WORLD;
}

void hook_comm_start(void)
{
    static const char world[] = "MPI_COMM_WORLD", self[] = "MPI_COMM_SELF";
    int up = 0;
    struct members m;
    int (*initialized)(int *) = HOOK_MPI(PMPI_Initialized);
    int (*group)(MPI_Comm, MPI_Group *) = HOOK_MPI(PMPI_Comm_group);
    if (initialized == NULL || initialized(&up) != MPI_SUCCESS || !up)
        return;
    hook_lock(&own.lock);
    own.has_world = group(WORLD, &own.world_group) == MPI_SUCCESS;
    if (ask_members(WORLD, &m))
        introduce(WORLD, WORLD, &m, mstx_group_hash(m.hash, world, sizeof world), world);
    if (ask_members(SELF, &m))
        introduce(SELF, SELF, &m, mstx_group_hash(m.hash, self, sizeof self), self);
    hook_unlock(&own.lock);
}

static void name_it(char *out, size_t cap, MPI_Comm parent, const char *how, uint32_t n, int first)
{
    const struct hook_comm *k = hook_comm_of(parent);
    const char *from = k != NULL ? mstx_group_name(k->group) : "";
    const size_t len = strlen(from);
    /* long names of nested communicators keep their end */
    snprintf(out, cap, "%s%s%s%s.%u@%d", len > 80 ? "..." : "", len > 80 ? from + len - 77 : from,
             len != 0 ? "/" : "", how, n, first);
}

void hook_comm_made(MPI_Comm made, MPI_Comm parent, const char *how, int salt, MPI_Comm like)
{
    struct members m;
    char name[128];
    if (made == NONE || hook_comm_of(made) != NULL)
        return;
    hook_lock(&own.lock);
    if (ask_members(like, &m)) {
        /* The two sides make an intercommunicator from different parents, so no parent is used. */
        const MPI_Comm from = m.is_inter ? HOOK_NO_COMM : parent;
        const struct hook_comm *k = hook_comm_of(from);
        uint64_t uid = k != NULL ? mstx_group_uid(k->group) : 0;
        uid = mstx_group_hash(uid ^ m.hash, how, strlen(how));
        uid = mstx_group_hash(uid, &salt, sizeof salt);
        const uint32_t n = count_up(uid);
        uid = mstx_group_hash(uid, &n, sizeof n);
        name_it(name, sizeof name, from, how, n, m.first);
        introduce(made, like, &m, uid, name);
    }
    hook_unlock(&own.lock);
}

void hook_comm_named(MPI_Comm c, const char *name)
{
    const struct hook_comm *k = hook_comm_of(c);
    struct members m;
    if (k == NULL || name == NULL || *name == '\0')
        return;
    hook_lock(&own.lock);
    if (ask_members(c, &m))
        mstx_group_update(k->group, &(struct mstx_group_info){.uid = mstx_group_uid(k->group),
                                                              .name = name,
                                                              .size = m.all,
                                                              .rank = m.before + m.rank,
                                                              .world = own.ranks});
    hook_unlock(&own.lock);
}

void hook_window_made(MPI_Win w, MPI_Comm c)
{
    const struct hook_comm *from = hook_comm_of(c);
    hook_lock(&own.lock);
    struct hook_comm *k = from != NULL ? take_free() : NULL;
    if (k != NULL) {
        *k = *from;
        k->next = NULL;
        hook_table_put(&windows, HOOK_HANDLE(w), (uint64_t)(uintptr_t)k);
    }
    hook_unlock(&own.lock);
}

/* ---- freed communicators -------------------------------------------------------------------- */

struct hook_comm *hook_comm_take(hook_handle h, enum hook_kind kind)
{
    struct hook_table *t = kind == HOOK_COMM ? &hook_comms : &windows;
    hook_depth++;
    const uint64_t v = hook_table_take(t, h);
    hook_depth--;
    return (struct hook_comm *)(uintptr_t)v;
}

void hook_comm_put_back(hook_handle h, enum hook_kind kind, struct hook_comm *k)
{
    if (k != NULL)
        hook_table_put(kind == HOOK_COMM ? &hook_comms : &windows, h, (uint64_t)(uintptr_t)k);
}

/* Drops an entry. The group of a window belongs to its communicator, which may live on. */
void hook_comm_drop(struct hook_comm *k, enum hook_kind kind)
{
    if (k == NULL)
        return;
    if (kind == HOOK_COMM)
        mstx_group_end(k->group);
    hook_lock(&own.lock);
    k->next = own.free;
    own.free = k;
    hook_unlock(&own.lock);
}
