/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_p2p: sends and receives, probes, the completion of requests, and one-sided calls.
 */
#include "mstx/hook_mpi.h"

/* ---- sends ------------------------------------------------------------------------------------ */

#define SEND_DESC hook_transfer(&x, n, t, peer, tag, true)
#define RECV_DESC hook_transfer(&x, n, t, peer, tag, false)

#define SEND(NAME, COUNT)                                                                          \
    HOOK_IF(NAME,                                                                                  \
            HOOK_LIGHT(NAME, true, HOOK_COUNT(c, SEND),                                            \
                       (const void *b, COUNT n, MPI_Datatype t, int peer, int tag, MPI_Comm c),    \
                       (b, n, t, peer, tag, c),                                                    \
                       HOOK_WATCHED(NAME, SEND, hook_comm_of(c), SEND_DESC,                        \
                                    real(b, n, t, peer, tag, c), hook_end(&x));))
#define ISEND(NAME, COUNT)                                                                         \
    HOOK_IF(NAME,                                                                                  \
            HOOK_LIGHT(NAME, true, HOOK_COUNT(c, SEND),                                            \
                       (const void *b, COUNT n, MPI_Datatype t, int peer, int tag, MPI_Comm c,     \
                        MPI_Request *r),                                                           \
                       (b, n, t, peer, tag, c, r),                                                 \
                       HOOK_WATCHED(NAME, SEND, hook_comm_of(c), SEND_DESC;                        \
                                    x.c.flags |= MSTX_CF_ASYNC, real(b, n, t, peer, tag, c, r),    \
                                    hook_begun(&x, rc, r, 0));))

#define PREPARED(NAME, OP, CONST, COUNT, DESC, FLAGS)                                              \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME(CONST void *b, COUNT n, MPI_Datatype t, int peer, int tag,         \
                                MPI_Comm c, MPI_Request *r) {                                      \
            struct mstx_comm_call later;                                                           \
            HOOK_BODY(NAME, REQUEST, hook_comm_of(c), DESC;                                        \
                      hook_prepare(&x, &later, MSTX_COMM_##OP, #NAME " started"),                  \
                      real(b, n, t, peer, tag, c, r), hook_prepared(&x, rc, r, &later, FLAGS));    \
        })
#define SEND_INIT(NAME, COUNT) PREPARED(NAME, SEND, const, COUNT, SEND_DESC, 0)

#define SEND_FORMS(lower, UPPER, Name, Iname)                                                      \
    SEND(MPI_##Name, int)                                                                          \
    SEND(MPI_##Name##_c, MPI_Count)                                                                \
    ISEND(MPI_##Iname, int)                                                                        \
    ISEND(MPI_##Iname##_c, MPI_Count)                                                              \
    SEND_INIT(MPI_##Name##_init, int)                                                              \
    SEND_INIT(MPI_##Name##_init_c, MPI_Count)
HOOK_SENDS(SEND_FORMS)

/* ---- receives ----------------------------------------------------------------------------------- */

/* Who sent and how much is asked when the caller lets us see, or when it is known no other way. */
static void received(const struct hook_call *x, int rc, const MPI_Status *status)
{
    if (x->id == 0 || rc != MPI_SUCCESS || status == MPI_STATUS_IGNORE)
        hook_end(x);
    else
        mstx_comm_end_received(x->id, hook_status_bytes(status), hook_member(x, status->MPI_SOURCE),
                               status->MPI_TAG);
}

/* A caller that throws it away lets us see it all the same. */
#define OWN_STATUS(s)                                                                              \
    MPI_Status own;                                                                                \
    if (s == MPI_STATUS_IGNORE && hook_depth == 0 && !hook_mpi_is_off())                           \
    s = &own

#define RECV(NAME, COUNT)                                                                          \
    HOOK_IF(NAME, HOOK_LIGHT(NAME, true, HOOK_COUNT(c, RECV),                                      \
                             (void *b, COUNT n, MPI_Datatype t, int peer, int tag, MPI_Comm c,     \
                              MPI_Status *s),                                                      \
                             (b, n, t, peer, tag, c, s), OWN_STATUS(s);                            \
                             HOOK_WATCHED(NAME, RECV, hook_comm_of(c), RECV_DESC,                  \
                                          real(b, n, t, peer, tag, c, s), received(&x, rc, s));))
#define IRECV(NAME, COUNT)                                                                         \
    HOOK_IF(NAME,                                                                                  \
            HOOK_LIGHT(                                                                            \
                NAME, true, HOOK_COUNT(c, RECV),                                                   \
                (void *b, COUNT n, MPI_Datatype t, int peer, int tag, MPI_Comm c, MPI_Request *r), \
                (b, n, t, peer, tag, c, r),                                                        \
                HOOK_WATCHED(NAME, RECV, hook_comm_of(c), RECV_DESC;                               \
                             x.c.flags |= MSTX_CF_ASYNC, real(b, n, t, peer, tag, c, r),           \
                             hook_begun(&x, rc, r, HOOK_REQ_RECV));))
RECV(MPI_Recv, int)
RECV(MPI_Recv_c, MPI_Count)
IRECV(MPI_Irecv, int)
IRECV(MPI_Irecv_c, MPI_Count)
PREPARED(MPI_Recv_init, RECV, , int, RECV_DESC, HOOK_REQ_RECV)
PREPARED(MPI_Recv_init_c, RECV, , MPI_Count, RECV_DESC, HOOK_REQ_RECV)

#define MATCHED(FORM)                                                                              \
    FORM(MPI_Mrecv, int, MPI_Status *s, s, received(&x, rc, s), 0)                                 \
    FORM(MPI_Mrecv_c, MPI_Count, MPI_Status *s, s, received(&x, rc, s), 0)                         \
    FORM(MPI_Imrecv, int, MPI_Request *s, s, hook_begun(&x, rc, s, HOOK_REQ_RECV), MSTX_CF_ASYNC)  \
    FORM(MPI_Imrecv_c, MPI_Count, MPI_Request *s, s, hook_begun(&x, rc, s, HOOK_REQ_RECV),         \
         MSTX_CF_ASYNC)
#define MRECV(NAME, COUNT, LAST, last, AFTER, FLAGS)                                               \
    HOOK_UNCOUNTED(NAME, RECV, NULL, (void *b, COUNT n, MPI_Datatype t, MPI_Message *m, LAST),     \
                   (b, n, t, m, last), hook_matched(&x, n, t);                                     \
                   x.c.flags |= FLAGS, AFTER)
MATCHED(MRECV)

/* ---- both at once ------------------------------------------------------------------------------- */

#define EXCHANGE_DESC                                                                              \
    SEND_DESC;                                                                                     \
    hook_exchange(&x, hook_bytes(rn, rt), from)
#define SENDRECV(NAME, COUNT, LAST, SEEN, AFTER, FLAGS)                                            \
    HOOK_IF(NAME,                                                                                  \
            HOOK_LIGHT(NAME, true, HOOK_COUNT(c, SENDRECV),                                        \
                       (const void *b, COUNT n, MPI_Datatype t, int peer, int tag, void *rb,       \
                        COUNT rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, LAST *last),    \
                       (b, n, t, peer, tag, rb, rn, rt, from, rtag, c, last), SEEN;                \
                       HOOK_WATCHED(NAME, SENDRECV, hook_comm_of(c), EXCHANGE_DESC;                \
                                    x.c.flags |= FLAGS,                                            \
                                    real(b, n, t, peer, tag, rb, rn, rt, from, rtag, c, last),     \
                                    AFTER);))
#define REPLACE(NAME, COUNT, LAST, SEEN, AFTER, FLAGS)                                             \
    HOOK_IF(NAME, HOOK_LIGHT(NAME, true, HOOK_COUNT(c, SENDRECV),                                  \
                             (void *b, COUNT n, MPI_Datatype t, int peer, int tag, int from,       \
                              int rtag, MPI_Comm c, LAST *last),                                   \
                             (b, n, t, peer, tag, from, rtag, c, last), const COUNT rn = n;        \
                             const MPI_Datatype rt = t; SEEN;                                      \
                             HOOK_WATCHED(NAME, SENDRECV, hook_comm_of(c), EXCHANGE_DESC;          \
                                          x.c.flags |= MSTX_CF_IN_PLACE | FLAGS,                   \
                                          real(b, n, t, peer, tag, from, rtag, c, last), AFTER);))
SENDRECV(MPI_Sendrecv, int, MPI_Status, OWN_STATUS(last), received(&x, rc, last), 0)
SENDRECV(MPI_Sendrecv_c, MPI_Count, MPI_Status, OWN_STATUS(last), received(&x, rc, last), 0)
SENDRECV(MPI_Isendrecv, int, MPI_Request, (void)0, hook_begun(&x, rc, last, HOOK_REQ_RECV),
         MSTX_CF_ASYNC)
SENDRECV(MPI_Isendrecv_c, MPI_Count, MPI_Request, (void)0, hook_begun(&x, rc, last, HOOK_REQ_RECV),
         MSTX_CF_ASYNC)
REPLACE(MPI_Sendrecv_replace, int, MPI_Status, OWN_STATUS(last), received(&x, rc, last), 0)
REPLACE(MPI_Sendrecv_replace_c, MPI_Count, MPI_Status, OWN_STATUS(last), received(&x, rc, last), 0)
REPLACE(MPI_Isendrecv_replace, int, MPI_Request, (void)0, hook_begun(&x, rc, last, HOOK_REQ_RECV),
        MSTX_CF_ASYNC)
REPLACE(MPI_Isendrecv_replace_c, MPI_Count, MPI_Request, (void)0,
        hook_begun(&x, rc, last, HOOK_REQ_RECV), MSTX_CF_ASYNC)

/* ---- partitioned -------------------------------------------------------------------------------- */

#define PARTITIONED(NAME, OP, CONST, IS_SEND, FLAGS)                                               \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME(CONST void *b, int parts, MPI_Count n, MPI_Datatype t, int peer,   \
                                int tag, MPI_Comm c, MPI_Info info, MPI_Request *r) {              \
            struct mstx_comm_call later;                                                           \
            HOOK_BODY(NAME, REQUEST, hook_comm_of(c), hook_one(&x, (int64_t)n *parts, t);          \
                      hook_p2p(&x, peer, tag, IS_SEND);                                            \
                      hook_prepare(&x, &later, MSTX_COMM_##OP, #NAME " started"),                  \
                      real(b, parts, n, t, peer, tag, c, info, r),                                 \
                      hook_prepared(&x, rc, r, &later, FLAGS));                                    \
        })
PARTITIONED(MPI_Psend_init, SEND, const, true, 0)
PARTITIONED(MPI_Precv_init, RECV, , false, HOOK_REQ_RECV)

/* Calls without anything to describe but themselves. */
#define PLAIN(NAME, OP, PARAMS, ARGS)                                                              \
    HOOK_UNCOUNTED(NAME, OP, NULL, PARAMS, ARGS, (void)0, hook_end(&x))
/* ... and those that only ask, with a flag for an answer. */
#define ASKS(NAME, OP, K, DESC, PARAMS, ARGS)                                                      \
    HOOK_UNCOUNTED(NAME, OP, K, PARAMS, ARGS, DESC;                                                \
                   hook_ask(&x), hook_asked(&x, rc != MPI_SUCCESS || *flag != 0))
PLAIN(MPI_Pready, REQUEST, (int part, MPI_Request r), (part, r))
PLAIN(MPI_Pready_range, REQUEST, (int low, int high, MPI_Request r), (low, high, r))
ASKS(MPI_Parrived, TEST, NULL, (void)0, (MPI_Request r, int part, int *flag), (r, part, flag))
#if defined(MPICH)
PLAIN(MPI_Pready_list, REQUEST, (int n, int list[], MPI_Request r), (n, list, r))
#else
PLAIN(MPI_Pready_list, REQUEST, (int n, const int list[], MPI_Request r), (n, list, r))
#endif

/* ---- probes ---------------------------------------------------------------------------------------- */

#define FOR_PEER hook_p2p(&x, peer, tag, false)
#define PROBE(NAME, PARAMS, ARGS)                                                                  \
    HOOK_UNCOUNTED(NAME, PROBE, hook_comm_of(c), PARAMS, ARGS, FOR_PEER, hook_end(&x))
PROBE(MPI_Probe, (int peer, int tag, MPI_Comm c, MPI_Status *s), (peer, tag, c, s))
PROBE(MPI_Mprobe, (int peer, int tag, MPI_Comm c, MPI_Message *m, MPI_Status *s),
      (peer, tag, c, m, s))
ASKS(MPI_Iprobe, PROBE, hook_comm_of(c), FOR_PEER,
     (int peer, int tag, MPI_Comm c, int *flag, MPI_Status *s), (peer, tag, c, flag, s))
ASKS(MPI_Improbe, PROBE, hook_comm_of(c), FOR_PEER,
     (int peer, int tag, MPI_Comm c, int *flag, MPI_Message *m, MPI_Status *s),
     (peer, tag, c, flag, m, s))

/* ---- completion -------------------------------------------------------------------------------------- */

static void remember(struct hook_before *b, int n, const MPI_Request *r)
{
    hook_before_room(b, r != NULL && hook_depth == 0 ? n : 0);
    for (int i = 0; i < b->n; i++)
        b->h[i] = HOOK_HANDLE(r[i]);
}

static void complete(const struct hook_before *b, int i, const MPI_Status *s, size_t at)
{
    if (i >= 0 && i < b->n)
        hook_req_done(b->h[i], s == MPI_STATUSES_IGNORE || s == MPI_STATUS_IGNORE ? NULL : s + at);
}

/* When one of many failed, those that are gone are done. */
static void complete_all(const struct hook_before *b, int rc, const MPI_Request *r,
                         const MPI_Status *s)
{
    for (int i = 0; i < b->n; i++) {
        if (rc == MPI_SUCCESS || hook_req_is_null(r[i]))
            complete(b, i, rc == MPI_SUCCESS ? s : MPI_STATUSES_IGNORE, (size_t)i);
    }
}

static void complete_some(const struct hook_before *b, int n, const int *index, const MPI_Status *s)
{
    for (int i = 0; n != MPI_UNDEFINED && i < n; i++)
        complete(b, index[i], s, (size_t)i);
}

/* DONE runs only when MPI has something to tell. */
#define COMPLETION_AS(NAME, OP, PARAMS, ARGS, COUNT, REQUESTS, DESC, AFTER)                        \
    HOOK_LIGHT(NAME, atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0,      \
               (void)0, PARAMS, ARGS, struct hook_before was;                                      \
               remember(&was, COUNT, REQUESTS);                                                    \
               HOOK_WATCHED(NAME, OP, NULL, x.c.count = (uint64_t)was.n; DESC, real ARGS, AFTER);)
#define COMPLETION(NAME, OP, PARAMS, ARGS, COUNT, REQUESTS, DONE)                                  \
    COMPLETION_AS(NAME, OP, PARAMS, ARGS, COUNT, REQUESTS, HOOK_WAITS(OP, was), DONE; hook_end(&x))
#define TEST(NAME, PARAMS, ARGS, COUNT, REQUESTS, FOUND, DONE)                                     \
    COMPLETION_AS(NAME, TEST, PARAMS, ARGS, COUNT, REQUESTS, hook_ask(&x),                         \
                  hook_asked(&x, !GOOD || FOUND);                                                  \
                  DONE)
#define GOOD (rc == MPI_SUCCESS)

/* clang-format off */
COMPLETION(MPI_Wait, WAIT, (MPI_Request *r, MPI_Status *s), (r, s), 1, r,
           if (GOOD || hook_req_is_null(*r)) complete(&was, 0, GOOD ? s : MPI_STATUS_IGNORE, 0))
TEST(MPI_Test, (MPI_Request *r, int *flag, MPI_Status *s), (r, flag, s), 1, r, *flag != 0,
     if (GOOD && *flag != 0) complete(&was, 0, s, 0))
COMPLETION(MPI_Waitall, WAIT, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s), n, r,
           complete_all(&was, rc, r, s))
TEST(MPI_Testall, (int n, MPI_Request r[], int *flag, MPI_Status s[]), (n, r, flag, s), n, r, *flag != 0,
     if (!GOOD || *flag != 0) complete_all(&was, rc, r, s))
COMPLETION(MPI_Waitany, WAIT, (int n, MPI_Request r[], int *at, MPI_Status *s), (n, r, at, s), n, r,
           if (GOOD && *at != MPI_UNDEFINED) complete(&was, *at, s, 0))
TEST(MPI_Testany, (int n, MPI_Request r[], int *at, int *flag, MPI_Status *s), (n, r, at, flag, s), n, r, *flag != 0,
     if (GOOD && *flag != 0 && *at != MPI_UNDEFINED) complete(&was, *at, s, 0))
COMPLETION(MPI_Waitsome, WAIT, (int n, MPI_Request r[], int *done, int at[], MPI_Status s[]),
           (n, r, done, at, s), n, r, if (GOOD) complete_some(&was, *done, at, s))
TEST(MPI_Testsome, (int n, MPI_Request r[], int *done, int at[], MPI_Status s[]), (n, r, done, at, s), n, r, *done != 0,
     if (GOOD) complete_some(&was, *done, at, s))
COMPLETION(MPI_Request_free, REQUEST, (MPI_Request *r), (r), 1, r,
           if (GOOD && was.n != 0) hook_req_gone(was.h[0]))
COMPLETION(MPI_Start, REQUEST, (MPI_Request *r), (r), 1, r, if (GOOD && was.n != 0) hook_req_start(was.h[0]))
COMPLETION(MPI_Startall, REQUEST, (int n, MPI_Request r[]), (n, r), n, r,
           for (int i = 0; GOOD && i < was.n; i++) hook_req_start(was.h[i]))
/* clang-format on */
PLAIN(MPI_Cancel, REQUEST, (MPI_Request * r), (r))
ASKS(MPI_Request_get_status, TEST, NULL, (void)0, (MPI_Request r, int *flag, MPI_Status *s),
     (r, flag, s))

/* ---- one-sided --------------------------------------------------------------------------------------- */

static inline const struct hook_comm *window(MPI_Win w)
{
    return hook_comm_find(HOOK_HANDLE(w), HOOK_WINDOW);
}
/* A call and its form with a request. */
#define ACCESS(NAME, RNAME, OP, PARAMS, ARGS, DESC)                                                \
    HOOK_UNCOUNTED(NAME, OP, window(w), PARAMS, ARGS, DESC, hook_end(&x))                          \
    HOOK_UNCOUNTED(RNAME, OP, window(w), (HOOK_BARE PARAMS, MPI_Request * r), (HOOK_BARE ARGS, r), \
                   DESC;                                                                           \
                   x.c.flags |= MSTX_CF_ASYNC, hook_begun(&x, rc, r, 0))
#define PUT(NAME, RNAME, OP, CONST, COUNT, GIVES)                                                  \
    ACCESS(NAME, RNAME, OP,                                                                        \
           (CONST void *b, COUNT n, MPI_Datatype t, int rank, MPI_Aint disp, COUNT tn,             \
            MPI_Datatype tt, MPI_Win w),                                                           \
           (b, n, t, rank, disp, tn, tt, w), hook_access(&x, n, t, rank, GIVES))
PUT(MPI_Put, MPI_Rput, PUT, const, int, true)
PUT(MPI_Put_c, MPI_Rput_c, PUT, const, MPI_Count, true)
PUT(MPI_Get, MPI_Rget, GET, , int, false)
PUT(MPI_Get_c, MPI_Rget_c, GET, , MPI_Count, false)

#define ACC(NAME, RNAME, COUNT)                                                                    \
    ACCESS(NAME, RNAME, ACCUMULATE,                                                                \
           (const void *b, COUNT n, MPI_Datatype t, int rank, MPI_Aint disp, COUNT tn,             \
            MPI_Datatype tt, MPI_Op op, MPI_Win w),                                                \
           (b, n, t, rank, disp, tn, tt, op, w), hook_accumulate(&x, n, t, rank, op, 0))
ACC(MPI_Accumulate, MPI_Raccumulate, int)
ACC(MPI_Accumulate_c, MPI_Raccumulate_c, MPI_Count)

#define GET_ACC(NAME, RNAME, COUNT)                                                                \
    ACCESS(NAME, RNAME, ACCUMULATE,                                                                \
           (const void *b, COUNT n, MPI_Datatype t, void *res, COUNT resn, MPI_Datatype rest,      \
            int rank, MPI_Aint disp, COUNT tn, MPI_Datatype tt, MPI_Op op, MPI_Win w),             \
           (b, n, t, res, resn, rest, rank, disp, tn, tt, op, w),                                  \
           hook_accumulate(&x, n, t, rank, op, hook_bytes(resn, rest)))
GET_ACC(MPI_Get_accumulate, MPI_Rget_accumulate, int)
GET_ACC(MPI_Get_accumulate_c, MPI_Rget_accumulate_c, MPI_Count)

HOOK_UNCOUNTED(MPI_Fetch_and_op, ACCUMULATE, window(w),
               (const void *b, void *res, MPI_Datatype t, int rank, MPI_Aint disp, MPI_Op op,
                MPI_Win w),
               (b, res, t, rank, disp, op, w),
               hook_accumulate(&x, 1, t, rank, op, hook_type_bytes(t)), hook_end(&x))
HOOK_UNCOUNTED(MPI_Compare_and_swap, ACCUMULATE, window(w),
               (const void *b, const void *cmp, void *res, MPI_Datatype t, int rank, MPI_Aint disp,
                MPI_Win w),
               (b, cmp, res, t, rank, disp, w), hook_access(&x, 1, t, rank, true);
               x.c.received = x.c.elem, hook_end(&x))

#define WINDOW(NAME, PARAMS, ARGS, DESC)                                                           \
    HOOK_UNCOUNTED(NAME, WINDOW, window(w), PARAMS, ARGS, DESC, hook_end(&x))
WINDOW(MPI_Win_fence, (int a, MPI_Win w), (a, w), (void)0)
WINDOW(MPI_Win_lock, (int type, int rank, int a, MPI_Win w), (type, rank, a, w), x.c.peer = rank)
WINDOW(MPI_Win_lock_all, (int a, MPI_Win w), (a, w), (void)0)
WINDOW(MPI_Win_unlock, (int rank, MPI_Win w), (rank, w), x.c.peer = rank)
WINDOW(MPI_Win_unlock_all, (MPI_Win w), (w), (void)0)
WINDOW(MPI_Win_flush, (int rank, MPI_Win w), (rank, w), x.c.peer = rank)
WINDOW(MPI_Win_flush_all, (MPI_Win w), (w), (void)0)
WINDOW(MPI_Win_flush_local, (int rank, MPI_Win w), (rank, w), x.c.peer = rank)
WINDOW(MPI_Win_flush_local_all, (MPI_Win w), (w), (void)0)
WINDOW(MPI_Win_sync, (MPI_Win w), (w), (void)0)
WINDOW(MPI_Win_post, (MPI_Group g, int a, MPI_Win w), (g, a, w), (void)0)
WINDOW(MPI_Win_start, (MPI_Group g, int a, MPI_Win w), (g, a, w), (void)0)
WINDOW(MPI_Win_complete, (MPI_Win w), (w), (void)0)
WINDOW(MPI_Win_wait, (MPI_Win w), (w), (void)0)
ASKS(MPI_Win_test, WINDOW, window(w), (void)0, (MPI_Win w, int *flag), (w, flag))
