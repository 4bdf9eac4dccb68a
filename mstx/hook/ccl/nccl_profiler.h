/* SPDX-License-Identifier: MIT
 *
 * nccl_profiler: the profiler interface of NCCL, versions 1 to 6, as far as it is used here.
 *
 *     v1 2.23   v2 2.24   v3 2.26   v4 2.27   v5 2.28   v6 2.29
 *
 * A version is a table of five functions under the name ncclProfiler_vN.  Events are described
 * by a head and a body whose layout differs from version to version; the member with the kind of an
 * event has one byte up to v4, eight from v5 on.
 */
#ifndef MSTX_HOOK_CCL_NCCL_PROFILER_H
#define MSTX_HOOK_CCL_NCCL_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of events; also the bits by which a plugin requests them. */
enum {
    PLUGIN_GROUP = 1,
    PLUGIN_COLL = 2,
    PLUGIN_P2P = 4,
    PLUGIN_PROXY_OP = 8,
    PLUGIN_PROXY_STEP = 16,
    PLUGIN_PROXY_CTRL = 32,
    PLUGIN_KERNEL = 64,
    PLUGIN_NET = 128,
    PLUGIN_CE_COLL = 4096, /* v6: by copy engines, described as a collective, without a kernel */
};
enum { PLUGIN_KERNEL_STOP = 22 }; /* a state */

typedef void plugin_log(int level, unsigned long flags, const char *file, int line, const char *fmt,
                        ...);

/* ---- descriptions -------------------------------------------------------------- */

/* v1 numbers functions and types, later versions name them. */
struct plugin_coll_v1 {
    const char *name;
    uint64_t comm_hash, seq;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t datatype;
};
struct plugin_coll_v2 { /* and v3 */
    const char *name;
    uint64_t comm_hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
};
struct plugin_coll_v4 { /* and later */
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
};
struct plugin_p2p_v1 {
    const char *name;
    uint64_t comm_hash;
    uint8_t func;
    void *buff;
    uint8_t datatype;
    size_t count;
    int peer;
};
struct plugin_p2p_v2 { /* and v3 */
    const char *name;
    uint64_t comm_hash;
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
};
struct plugin_p2p_v4 { /* and later */
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
};
struct plugin_kernel_v4 { /* and later */
    uint8_t channel;
    uint64_t timer; /* ns of the device's global timer */
};

/* The head of v1 to v4, and of v5 and v6. */
struct plugin_descr_v1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct plugin_coll_v1 coll1;
        struct plugin_coll_v2 coll2;
        struct plugin_coll_v4 coll4;
        struct plugin_p2p_v1 p2p1;
        struct plugin_p2p_v2 p2p2;
        struct plugin_p2p_v4 p2p4;
        struct plugin_kernel_v4 kernel4;
    };
};
struct plugin_descr_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct plugin_coll_v4 coll4;
        struct plugin_p2p_v4 p2p4;
        struct plugin_kernel_v4 kernel4;
    };
};

/* v4 and later; in earlier versions a state has no member that is used here. */
union plugin_state_v4 {
    size_t transferred;
    int appended;
    void *data;
    uint64_t timer;
};

/* ---- tables ---------------------------------------------------------------------- */

#define PLUGIN_TABLE(version, ...)                                                                 \
    struct plugin_v##version {                                                                     \
        const char *name;                                                                          \
        int (*init)(__VA_ARGS__);                                                                  \
        int (*start_event)(void *context, void **event, void *descr);                              \
        int (*stop_event)(void *event);                                                            \
        int (*record_state)(void *event, int state, void *args);                                   \
        int (*finalize)(void *context);                                                            \
    }
PLUGIN_TABLE(1, void **context, int *mask); /* and v2, v3 */
PLUGIN_TABLE(4, void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
             int rank, plugin_log *log);
PLUGIN_TABLE(5, void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
             int rank, plugin_log *log); /* and v6 */

/* ---- identity of communicators -------------------------------------------------------------- */

/* Returns the identity that NCCL itself gave to a communicator of that size in which this process
 * has that rank, among those not returned before: the newest one, or with `only` the one if there
 * is exactly one. false: the profiler knows none. */
bool hook_plugin_claim(int ranks, int rank, bool only, uint64_t *id);

#endif
