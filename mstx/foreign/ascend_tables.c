/* SPDX-License-Identifier: MIT
 *
 * ascend_tables: see the header.
 */
#include "mstx/foreign/ascend_tables.h"
#include "mstx/foreign/sql/ascend_tables.h"

#include "probe/base/store_vtab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- functions ---------------------------------------------------------------- */

/* Computes HCCL's number of a text: two 32-bit hashes side by side, in decimal. */
static void double_hash(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                        struct ms_value *out)
{
    uint32_t high = 0, low = 0;
    if (arg->type != MS_VALUE_TEXT)
        return;
    for (uint32_t i = 0; i < arg->s.n; i++) {
        high = high * 29 + (unsigned char)arg->s.p[i];
        low = low * 131 + (unsigned char)arg->s.p[i];
    }
    const int n = snprintf(scratch, MS_FUNCTION_SCRATCH, "%" PRIu64, (uint64_t)high << 32 | low);
    *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = {scratch, (uint32_t)n}};
}

/* Finds the digits of the group in the name of a transfer: hcom_send__233_58_1 -> 233. */
static void p2p_domain(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                       struct ms_value *out)
{
    static const char *const heads[] = {"hcom_send__", "hcom_Send__",    "hcom_recv__",
                                        "hcom_Recv__", "hcom_receive__", "hcom_Receive__"};
    struct ms_str rest = MS_STR_NONE, domain, number, last;
    (void)scratch;
    for (size_t i = 0; i < sizeof heads / sizeof *heads && arg->type == MS_VALUE_TEXT; i++) {
        if (ms_str_starts(arg->s, ms_str_of(heads[i])))
            rest = ms_str_sub(arg->s, (uint32_t)strlen(heads[i]), arg->s.n);
    }
    if (ms_str_split(&rest, '_', &domain) && ms_str_split(&rest, '_', &number) &&
        ms_str_split(&rest, '_', &last) && rest.p == NULL && ms_str_all_digits(domain) &&
        ms_str_all_digits(number) && ms_str_all_digits(last))
        *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = domain};
}

enum ms_rc mstx__ascend_functions(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(ms_store_add_statistics(s, err));
    MS_TRY(ms_store_add_function(s, "double_hash", 1, double_hash, err));
    return ms_store_add_function(s, "p2p_domain", 1, p2p_domain, err);
}

/* ---- tables that may be missing ------------------------------------------------------ */

static const struct {
    const char *name, *columns;
} known[] = {
    {"META_DATA", "name, value"},
    {"STRING_IDS", "id INTEGER PRIMARY KEY, value"},
    {"RANK_DEVICE_MAP", "rankId, deviceId"},
    {"HOST_INFO", "hostUid, hostName"},
    {"ENUM_HCCL_DATA_TYPE", "id INTEGER PRIMARY KEY, name"},
    {"STEP_TIME", "id, startNs, endNs"},
    {"MSTX_EVENTS", "startNs, endNs, eventType, message, globalTid, domainId, connectionId"},
    {"TASK", "startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId"},
    {"COMPUTE_TASK_INFO",
     "name, globalTaskId INTEGER PRIMARY KEY, taskType, opType, inputDataTypes,"
     " inputShapes, outputShapes"},
    {"COMMUNICATION_OP", "opName, startNs, endNs, connectionId, groupName, opId, dataType, count,"
                         " opType"},
    {"COMMUNICATION_TASK_INFO", "name, globalTaskId, taskType, groupName, srcRank, dstRank, opId"},
    {"COMMUNICATION_SCHEDULE_TASK_INFO",
     "name, globalTaskId INTEGER PRIMARY KEY, taskType, opType"},
    {"CANN_API", "startNs, endNs, type, connectionId INTEGER PRIMARY KEY, name"},
    {"ENUM_API_TYPE", "id INTEGER PRIMARY KEY, name"},
    {"PYTORCH_API", "startNs, endNs, connectionId, name"},
    {"CONNECTION_IDS", "id, connectionId"},
    {"AICORE_FREQ", "deviceId, timestampNs, freq"},
    {"CommAnalyzerTime", "hccl_op_name, group_name, start_timestamp, elapse_time, transit_time,"
                         " wait_time, synchronization_time, idle_time, step, type"},
    {"CommAnalyzerBandwidth",
     "hccl_op_name, group_name, transport_type, transit_size, transit_time,"
     " bandwidth, large_packet_ratio, package_size, count, total_duration,"
     " step, type"},
    {"CommAnalyzerMatrix", "hccl_op_name, group_name, src_rank, dst_rank, transport_type,"
                           " transit_size, transit_time, bandwidth, step, type, op_name"},
    {"StepTraceTime", "step, computing, communication_not_overlapped, overlapped, communication,"
                      " free, stage, bubble, communication_not_overlapped_and_exclude_receive,"
                      " preparing"},
};

enum ms_rc mstx__has_table(struct ms_store *s, const char *name, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql_find_table, err));
    ms_stmt_str(st, 1, ms_str_of(name));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__ascend_tables(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(mstx__ascend_functions(s, err));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char sql[512];
        bool has;
        MS_TRY(mstx__has_table(s, known[i].name, &has, err));
        if (has)
            continue;
        snprintf(sql, sizeof sql, "CREATE TEMP TABLE %s(%s)", known[i].name, known[i].columns);
        MS_TRY(ms_store_exec(s, sql, err));
    }
    return MS_OK;
}
