/* SPDX-License-Identifier: MIT
 *
 * mpi_handles: tables from handles to data of the hooks: types, reductions, statuses,
 * requests.
 */
#include "mstx/hook/mpi/mpi_hook.h"

#if defined(OPEN_MPI)
const char *const hook_mpi_owners[] = {"libmpi.so", NULL};
#else
const char *const hook_mpi_owners[] = {"libmpich.so", "libmpi.so.12", "libmpi_", NULL};
#endif

/* ---- tables ------------------------------------------------------------------------------------ */

uint64_t hook_table_search(const struct hook_table *t, hook_handle h)
{
    const uint64_t wanted = hook_table_key(h);
    for (size_t i = hook_table_place(wanted), n = 0; n < HOOK_TABLE;
         i = (i + 1) % HOOK_TABLE, n++) {
        uint64_t key = atomic_load_explicit(&t->slot[i].key, memory_order_acquire);
        if (HOOK_LIKELY(key == wanted))
            return atomic_load_explicit(&t->slot[i].value, memory_order_relaxed);
        if (key == 0)
            return 0;
    }
    return 0;
}

bool hook_table_put(struct hook_table *t, hook_handle h, uint64_t value)
{
    const uint64_t wanted = hook_table_key(h);
    size_t i = hook_table_place(wanted), free = HOOK_TABLE;
    hook_lock(&t->lock);
    for (size_t n = 0; n < HOOK_TABLE; i = (i + 1) % HOOK_TABLE, n++) {
        uint64_t key = atomic_load(&t->slot[i].key);
        if (key <= 1 && free == HOOK_TABLE)
            free = i;
        if (key == wanted)
            free = i;
        if (key == wanted || key == 0)
            break;
    }
    if (free != HOOK_TABLE) {
        atomic_store(&t->slot[free].value, value);
        atomic_store_explicit(&t->slot[free].key, wanted, memory_order_release);
    }
    hook_unlock(&t->lock);
    return free != HOOK_TABLE;
}

/* Marks slots of removed entries as free if a free one follows, as a search need not continue
 * beyond. */
static void sweep_table(struct hook_table *t, size_t i)
{
    if (atomic_load(&t->slot[(i + 1) % HOOK_TABLE].key) != 0)
        return;
    while (atomic_load(&t->slot[i].key) == 1) {
        atomic_store(&t->slot[i].key, 0);
        i = (i + HOOK_TABLE - 1) % HOOK_TABLE;
    }
}

uint64_t hook_table_take(struct hook_table *t, hook_handle h)
{
    const uint64_t wanted = hook_table_key(h);
    uint64_t value = 0;
    hook_lock(&t->lock);
    for (size_t i = hook_table_place(wanted), n = 0; n < HOOK_TABLE;
         i = (i + 1) % HOOK_TABLE, n++) {
        uint64_t key = atomic_load(&t->slot[i].key);
        if (key == wanted) {
            value = atomic_load(&t->slot[i].value);
            atomic_store(&t->slot[i].key, 1);
            sweep_table(t, i);
        }
        if (key == wanted || key == 0)
            break;
    }
    hook_unlock(&t->lock);
    return value;
}

/* ---- types and reductions ---------------------------------------------------------------------- */

/* In Open MPI a predefined handle is the address of a variable of the library, which may not be
 * loaded yet when this library is; in MPICH it is a number. */
#if defined(OPEN_MPI)
#define KNOWN(mpi, variable, ours)                                                                 \
    {                                                                                              \
        "ompi_" variable, MSTX_##ours                                                              \
    }
#define HOOK_TYPE_NULL ((MPI_Datatype)0)
struct known {
    const char *variable;
    int ours;
};
static hook_handle handle_of(const struct known *k)
{
    return HOOK_HANDLE(hook_find_variable(k->variable, hook_mpi_owners));
}
#else
#define KNOWN(mpi, variable, ours)                                                                 \
    {                                                                                              \
        HOOK_HANDLE(mpi), MSTX_##ours                                                              \
    }
#define HOOK_TYPE_NULL MPI_DATATYPE_NULL
struct known {
    hook_handle handle;
    int ours;
};
static hook_handle handle_of(const struct known *k)
{
    return k->handle;
}
#endif

/* clang-format off */
static const struct known known_types[] = {
    KNOWN(MPI_CHAR, "mpi_char", TYPE_INT8),
    KNOWN(MPI_SIGNED_CHAR, "mpi_signed_char", TYPE_INT8),
    KNOWN(MPI_UNSIGNED_CHAR, "mpi_unsigned_char", TYPE_UINT8),
    KNOWN(MPI_BYTE, "mpi_byte", TYPE_UINT8),
    KNOWN(MPI_SHORT, "mpi_short", TYPE_INT16),
    KNOWN(MPI_UNSIGNED_SHORT, "mpi_unsigned_short", TYPE_UINT16),
    KNOWN(MPI_INT, "mpi_int", TYPE_INT32),
    KNOWN(MPI_UNSIGNED, "mpi_unsigned", TYPE_UINT32),
    KNOWN(MPI_LONG, "mpi_long", TYPE_INT64),
    KNOWN(MPI_UNSIGNED_LONG, "mpi_unsigned_long", TYPE_UINT64),
    KNOWN(MPI_LONG_LONG, "mpi_long_long_int", TYPE_INT64),
    KNOWN(MPI_UNSIGNED_LONG_LONG, "mpi_unsigned_long_long", TYPE_UINT64),
    KNOWN(MPI_FLOAT, "mpi_float", TYPE_FP32),
    KNOWN(MPI_DOUBLE, "mpi_double", TYPE_FP64),
    KNOWN(MPI_LONG_DOUBLE, "mpi_long_double", TYPE_FP128),
    KNOWN(MPI_WCHAR, "mpi_wchar", TYPE_INT32),
    KNOWN(MPI_PACKED, "mpi_packed", TYPE_PACKED),
    KNOWN(MPI_INT8_T, "mpi_int8_t", TYPE_INT8),
    KNOWN(MPI_INT16_T, "mpi_int16_t", TYPE_INT16),
    KNOWN(MPI_INT32_T, "mpi_int32_t", TYPE_INT32),
    KNOWN(MPI_INT64_T, "mpi_int64_t", TYPE_INT64),
    KNOWN(MPI_UINT8_T, "mpi_uint8_t", TYPE_UINT8),
    KNOWN(MPI_UINT16_T, "mpi_uint16_t", TYPE_UINT16),
    KNOWN(MPI_UINT32_T, "mpi_uint32_t", TYPE_UINT32),
    KNOWN(MPI_UINT64_T, "mpi_uint64_t", TYPE_UINT64),
    KNOWN(MPI_AINT, "mpi_aint", TYPE_INT64),
    KNOWN(MPI_OFFSET, "mpi_offset", TYPE_INT64),
    KNOWN(MPI_COUNT, "mpi_count", TYPE_INT64),
    KNOWN(MPI_C_BOOL, "mpi_c_bool", TYPE_BOOL),
    KNOWN(MPI_CXX_BOOL, "mpi_cxx_bool", TYPE_BOOL),
    KNOWN(MPI_C_FLOAT_COMPLEX, "mpi_c_float_complex", TYPE_COMPLEX64),
    KNOWN(MPI_C_DOUBLE_COMPLEX, "mpi_c_double_complex", TYPE_COMPLEX128),
    KNOWN(MPI_FLOAT_INT, "mpi_float_int", TYPE_PAIR),
    KNOWN(MPI_DOUBLE_INT, "mpi_double_int", TYPE_PAIR),
    KNOWN(MPI_LONG_INT, "mpi_long_int", TYPE_PAIR),
    KNOWN(MPI_2INT, "mpi_2int", TYPE_PAIR),
    KNOWN(MPI_SHORT_INT, "mpi_short_int", TYPE_PAIR),
    KNOWN(MPI_LONG_DOUBLE_INT, "mpi_longdbl_int", TYPE_PAIR),
    KNOWN(MPI_CHARACTER, "mpi_character", TYPE_INT8),
    KNOWN(MPI_LOGICAL, "mpi_logical", TYPE_INT32),
    KNOWN(MPI_INTEGER, "mpi_integer", TYPE_INT32),
    KNOWN(MPI_INTEGER1, "mpi_integer1", TYPE_INT8),
    KNOWN(MPI_INTEGER2, "mpi_integer2", TYPE_INT16),
    KNOWN(MPI_INTEGER4, "mpi_integer4", TYPE_INT32),
    KNOWN(MPI_INTEGER8, "mpi_integer8", TYPE_INT64),
    KNOWN(MPI_REAL, "mpi_real", TYPE_FP32),
    KNOWN(MPI_REAL4, "mpi_real4", TYPE_FP32),
    KNOWN(MPI_REAL8, "mpi_real8", TYPE_FP64),
    KNOWN(MPI_DOUBLE_PRECISION, "mpi_dblprec", TYPE_FP64),
    KNOWN(MPI_COMPLEX, "mpi_cplex", TYPE_COMPLEX64),
    KNOWN(MPI_COMPLEX8, "mpi_complex8", TYPE_COMPLEX64),
    KNOWN(MPI_COMPLEX16, "mpi_complex16", TYPE_COMPLEX128),
    KNOWN(MPI_DOUBLE_COMPLEX, "mpi_dblcplex", TYPE_COMPLEX128),
};

static const struct known known_ops[] = {
    KNOWN(MPI_SUM, "mpi_op_sum", REDUCE_SUM),
    KNOWN(MPI_PROD, "mpi_op_prod", REDUCE_PROD),
    KNOWN(MPI_MAX, "mpi_op_max", REDUCE_MAX),
    KNOWN(MPI_MIN, "mpi_op_min", REDUCE_MIN),
    KNOWN(MPI_LAND, "mpi_op_land", REDUCE_LAND),
    KNOWN(MPI_BAND, "mpi_op_band", REDUCE_BAND),
    KNOWN(MPI_LOR, "mpi_op_lor", REDUCE_LOR),
    KNOWN(MPI_BOR, "mpi_op_bor", REDUCE_BOR),
    KNOWN(MPI_LXOR, "mpi_op_lxor", REDUCE_LXOR),
    KNOWN(MPI_BXOR, "mpi_op_bxor", REDUCE_BXOR),
    KNOWN(MPI_MAXLOC, "mpi_op_maxloc", REDUCE_MAXLOC),
    KNOWN(MPI_MINLOC, "mpi_op_minloc", REDUCE_MINLOC),
    KNOWN(MPI_REPLACE, "mpi_op_replace", REDUCE_REPLACE),
    KNOWN(MPI_NO_OP, "mpi_op_no_op", REDUCE_NONE),
};
/* clang-format on */

static struct hook_table types, ops; /* types: bytes << 16 | kind << 8 | 1; ops: kind << 8 | 1 */

static void put_type(hook_handle h, MPI_Datatype t, uint64_t kind)
{
    int bytes = 0;
    int (*size)(MPI_Datatype, int *) = HOOK_MPI(PMPI_Type_size);
    if (size != NULL && size(t, &bytes) == MPI_SUCCESS && bytes >= 0)
        hook_table_put(&types, h, (uint64_t)bytes << 16 | kind << 8 | 1);
}

/* Converts our number of a handle back to a handle of MPI. */
static MPI_Datatype type_of(hook_handle h)
{
    return (MPI_Datatype)(uintptr_t)h;
}

void hook_know_predefined(void)
{
    const hook_handle none = HOOK_HANDLE(0);
    for (size_t i = 0; i < sizeof known_types / sizeof *known_types; i++) {
        hook_handle h = handle_of(&known_types[i]);
        if (h != none && type_of(h) != HOOK_TYPE_NULL && hook_table_get(&types, h) == 0)
            put_type(h, type_of(h), (uint64_t)known_types[i].ours);
    }
    for (size_t i = 0; i < sizeof known_ops / sizeof *known_ops; i++) {
        hook_handle h = handle_of(&known_ops[i]);
        if (h != none)
            hook_table_put(&ops, h, (uint64_t)known_ops[i].ours << 8 | 1);
    }
}

HOOK_HOT void hook_type_find(MPI_Datatype t, uint32_t *bytes, uint8_t *dtype)
{
    const uint64_t v = hook_table_get(&types, HOOK_HANDLE(t));
    *bytes = (uint32_t)(v >> 16);
    *dtype = v != 0 ? (uint8_t)(v >> 8) : MSTX_TYPE_NA;
}

uint32_t hook_type_bytes(MPI_Datatype t)
{
    return (uint32_t)(hook_table_get(&types, HOOK_HANDLE(t)) >> 16);
}

void hook_type_made(MPI_Datatype t)
{
    if (hook_table_get(&types, HOOK_HANDLE(t)) == 0)
        put_type(HOOK_HANDLE(t), t, MSTX_TYPE_DERIVED);
}

void hook_type_gone(hook_handle t)
{
    hook_table_take(&types, t);
}

uint8_t hook_op_find(MPI_Op op)
{
    const uint64_t v = hook_table_get(&ops, HOOK_HANDLE(op));
    return v != 0 ? (uint8_t)(v >> 8) : MSTX_REDUCE_USER;
}

MPI_Datatype hook_byte_type(void)
{
    static _Atomic hook_handle byte;
    if (atomic_load(&byte) == 0) {
        static const struct known one[] = {KNOWN(MPI_BYTE, "mpi_byte", TYPE_UINT8)};
        atomic_store(&byte, handle_of(one));
    }
    return type_of(atomic_load(&byte));
}

uint64_t hook_status_bytes(const MPI_Status *s)
{
    MPI_Count n = 0;
    int (*elements)(const MPI_Status *, MPI_Datatype, MPI_Count *) = HOOK_MPI(PMPI_Get_elements_x);
    if (elements == NULL || elements(s, hook_byte_type(), &n) != MPI_SUCCESS || n < 0)
        return 0;
    return (uint64_t)n;
}

bool hook_status_is_cancelled(const MPI_Status *s)
{
    int flag = 0;
    int (*cancelled)(const MPI_Status *, int *) = HOOK_MPI(PMPI_Test_cancelled);
    return cancelled != NULL && cancelled(s, &flag) == MPI_SUCCESS && flag != 0;
}

/* ---- requests --------------------------------------------------------------- */

/* From a request to the range that ends with it.
 *
 * Requests are found by the value of their handle.  Both flavours return one and the same handle
 * for all operations that complete immediately, so a handle may denote several requests: the oldest
 * is found first. */

struct hook_request {
    hook_handle handle;
    uint64_t id; /* id of the open range; 0: none */
    /* Description of the range of a start; NULL: an ordinary request. */
    struct mstx_comm_call *prepared;
    struct hook_request *next;
    unsigned flags;
};

enum { BUCKETS = 1 << 13 };

struct hook_req_pool hook_req_pool;
static struct bucket {
    struct hook_request *first;
    /* Where the next entry is appended; NULL: the bucket was never used. */
    struct hook_request **end;
} buckets[BUCKETS];

static struct bucket *bucket_of(hook_handle h)
{
    return &buckets[h * 0x9E3779B97F4A7C15u >> 51];
}
static_assert(BUCKETS == 1 << 13, "the hash gives 13 bits");

/* ---- entries, under the lock ------------------------------------------------------------------ */

/* Changes the count of tracked requests. Caller holds the lock. */
static void add_tracked(uint32_t more)
{
    const uint32_t n = atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed);
    atomic_store_explicit(&hook_req_pool.tracked, n + more, memory_order_relaxed);
}

static struct hook_request *entry_new(bool is_prepared)
{
    struct hook_request **list = is_prepared ? &hook_req_pool.free_prepared : &hook_req_pool.free;
    struct hook_request *r = *list;
    if (r != NULL) {
        *list = r->next;
        return r;
    }
    r = hook_keep(sizeof *r);
    if (r != NULL && is_prepared) {
        r->prepared = hook_keep(sizeof *r->prepared);
        r = r->prepared != NULL ? r : NULL;
    }
    return r;
}

static void entry_free(struct hook_request *r)
{
    struct hook_request **list =
        r->prepared != NULL ? &hook_req_pool.free_prepared : &hook_req_pool.free;
    r->next = *list;
    *list = r;
}

static struct hook_request **look_up(hook_handle h)
{
    struct hook_request **at = &bucket_of(h)->first;
    while (*at != NULL && (*at)->handle != h)
        at = &(*at)->next;
    return at;
}

/* Appends an entry to its bucket. NULL: no memory. */
static struct hook_request *entry_add(const struct hook_request *like)
{
    struct hook_request *r = entry_new(like->prepared != NULL);
    struct bucket *b = bucket_of(like->handle);
    if (r == NULL)
        return NULL;
    struct mstx_comm_call *prepared = r->prepared;
    *r = *like;
    r->prepared = prepared;
    if (prepared != NULL)
        *prepared = *like->prepared;
    *(b->end != NULL ? b->end : &b->first) = r;
    b->end = &r->next;
    add_tracked(1);
    return r;
}

static void entry_take(struct hook_request **at)
{
    struct hook_request *r = *at;
    struct bucket *b = bucket_of(r->handle);
    *at = r->next;
    if (b->end == &r->next)
        b->end = at;
    entry_free(r);
    add_tracked(~0u);
}

/* ---- life of a request -------------------------------------------------------------------------- */

HOOK_HOT static bool add(const struct hook_request *like)
{
    hook_lock(&hook_req_pool.lock);
    const bool is_kept = entry_add(like) != NULL;
    hook_unlock(&hook_req_pool.lock);
    return is_kept;
}

HOOK_HOT void hook_req_add(MPI_Request request, uint64_t id, unsigned flags)
{
    if (id != 0 &&
        !add(&(struct hook_request){.handle = HOOK_HANDLE(request), .id = id, .flags = flags}))
        mstx_comm_end(id);
}

void hook_req_prepare(MPI_Request request, const struct mstx_comm_call *c, unsigned flags)
{
    struct mstx_comm_call prepared = *c;
    add(&(struct hook_request){
        .handle = HOOK_HANDLE(request), .prepared = &prepared, .flags = flags});
}

void hook_req_start(hook_handle h)
{
    hook_lock(&hook_req_pool.lock);
    struct hook_request *r = *look_up(h);
    if (r != NULL && r->prepared != NULL && r->id == 0)
        r->id = mstx_comm_begin(r->prepared);
    hook_unlock(&hook_req_pool.lock);
}

/* Ends a receive. The other fields of the status of a cancelled one are left over from other
 * requests. */
static void received(uint64_t id, const MPI_Status *s, int others_at)
{
    if (hook_status_is_cancelled(s))
        mstx_comm_end_received(id, 0, -1, -1);
    else
        mstx_comm_end_received(id, hook_status_bytes(s),
                               s->MPI_SOURCE + (s->MPI_SOURCE >= 0 ? others_at : 0), s->MPI_TAG);
}

HOOK_HOT void hook_req_done(hook_handle h, const MPI_Status *status)
{
    if (atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0)
        return;
    struct hook_request was = {0};
    hook_lock(&hook_req_pool.lock);
    struct hook_request **at = look_up(h);
    if (*at != NULL) {
        was = **at;
        (*at)->id = 0; /* a prepared request only becomes inactive */
        if (was.prepared == NULL)
            entry_take(at);
    }
    hook_unlock(&hook_req_pool.lock);
    if (was.id != 0 && status != NULL && (was.flags & HOOK_REQ_RECV) != 0)
        received(was.id, status, (int)(was.flags >> HOOK_REQ_OTHERS));
    else
        mstx_comm_end(was.id);
}

void hook_req_gone(hook_handle h)
{
    uint64_t id = 0;
    hook_lock(&hook_req_pool.lock);
    struct hook_request **at = look_up(h);
    if (*at != NULL) {
        id = (*at)->id;
        entry_take(at);
    }
    hook_unlock(&hook_req_pool.lock);
    mstx_comm_end(id);
}

uint64_t hook_req_range(hook_handle h)
{
    hook_lock(&hook_req_pool.lock);
    const struct hook_request *r = *look_up(h);
    const uint64_t id = r != NULL ? r->id : 0;
    hook_unlock(&hook_req_pool.lock);
    return id;
}

static __thread struct {
    hook_handle *p;
    int room;
} many __attribute__((tls_model("initial-exec")));

HOOK_HOT void hook_before_room(struct hook_before *b, int n)
{
    b->n = n > 0 ? n : 0;
    b->h = b->few;
    if (b->n <= HOOK_FEW)
        return;
    if (b->n > many.room) {
        many.p = hook_keep((size_t)b->n * 2 * sizeof *many.p);
        many.room = many.p != NULL ? b->n * 2 : 0;
    }
    b->h = many.p;
    b->n = many.p != NULL ? b->n : 0;
}

HOOK_HOT bool hook_req_is_null(MPI_Request r)
{
#if defined(OPEN_MPI)
    static hook_slot null;
    void *p = atomic_load_explicit(&null, memory_order_relaxed);
    if (p == NULL) {
        p = hook_find_variable("ompi_request_null", hook_mpi_owners);
        atomic_store_explicit(&null, p, memory_order_relaxed);
    }
    return HOOK_HANDLE(r) == HOOK_HANDLE(p);
#else
    return r == MPI_REQUEST_NULL;
#endif
}
