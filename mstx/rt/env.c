/* SPDX-License-Identifier: MIT
 *
 * env: the configuration, from environment variables set by `msprobe run` or by the user, and the
 * rank from the variables of the usual launchers.  secure_getenv hides them from a set-uid program,
 * which therefore cannot be made to write files.
 */
#include "mstx/rt/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HANG_S = 300,                       /* a call is reported as hung after so many seconds */
    SEGMENT_LEAST = 4 * MSTX_SEG_HEADER /* 384 records: the largest event, of 193, fits */
};

static const char *get_variable(const char *name)
{
    const char *v = secure_getenv(name);
    return v != NULL && *v != '\0' ? v : NULL;
}

static void copy(char *to, size_t cap, const char *name)
{
    const char *v = get_variable(name);
    to[0] = '\0';
    if (v != NULL && strlen(v) < cap)
        memcpy(to, v, strlen(v) + 1);
}

/* Parses digits, then k, m or g; 0 when text has another form. */
static uint64_t bytes_of(const char *text)
{
    uint64_t n = 0;
    if (text == NULL)
        return 0;
    for (; *text >= '0' && *text <= '9' && n < UINT64_MAX / 20; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    unsigned shift = 0;
    switch (*text) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case '\0':
        break;
    default:
        return 0;
    }
    return n > UINT64_MAX >> shift ? 0 : n << shift;
}

/* Parses seconds such as "12" or "0.5", independent of the locale's decimal point. */
static double seconds_of(const char *text)
{
    double v = 0, unit = 1;
    bool point = false;
    if (text == NULL)
        return 0;
    for (; *text != '\0'; text++) {
        if (*text == '.' && !point)
            point = true;
        else if (*text >= '0' && *text <= '9' && v < 1e9) {
            v = v * 10 + (*text - '0');
            unit *= point ? 10 : 1;
        } else
            return 0;
    }
    return v / unit;
}

static bool int_of(const char *text, int32_t *out)
{
    int32_t n = 0;
    if (text == NULL)
        return false;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (*text - '0');
    if (*text != '\0')
        return false;
    *out = n;
    return true;
}

/* Reads the rank. The innermost launcher comes first: torchrun under Slurm sets its own
 * variables. */
static void read_rank(struct rt_config *c)
{
    static const struct {
        const char *rank, *size, *local, *who;
    } from[] = {
        {"MSPROBE_RANK", "MSPROBE_WORLD_SIZE", "MSPROBE_LOCAL_RANK", "msprobe"},
        {"RANK", "WORLD_SIZE", "LOCAL_RANK", "torchrun"},
        {"RANK_ID", "RANK_SIZE", "DEVICE_ID", "MindSpore"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPICH"},
        {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIx"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "Slurm"},
    };
    c->rank = c->world_size = c->local_rank = -1;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        if (!int_of(get_variable(from[i].rank), &c->rank))
            continue;
        int_of(get_variable(from[i].size), &c->world_size);
        int_of(get_variable(from[i].local), &c->local_rank);
        snprintf(c->rank_from, sizeof c->rank_from, "%s", from[i].who);
        return;
    }
}

static bool is(const char *name, const char *value)
{
    const char *v = get_variable(name);
    return v != NULL && strcmp(v, value) == 0;
}

void rt_make_absolute(char path[RT_PATH])
{
    char here[RT_PATH];
    size_t n = strlen(path);
    if (n == 0 || path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return;
    size_t m = strlen(here);
    if (m + 1 + n >= RT_PATH)
        return;
    memmove(path + m + 1, path, n + 1);
    memcpy(path, here, m);
    path[m] = '/';
}

void rt_read_env(struct rt_config *c)
{
    memset(c, 0, sizeof *c);
    copy(c->out, sizeof c->out, "MSTX_OUT");
    copy(c->stage, sizeof c->stage, "MSTX_STAGE");
    rt_make_absolute(c->out);
    rt_make_absolute(c->stage);
    copy(c->include, sizeof c->include, "MSTX_DOMAIN_INCLUDE");
    copy(c->exclude, sizeof c->exclude, "MSTX_DOMAIN_EXCLUDE");
    copy(c->next_mstx, sizeof c->next_mstx, "MSTX_NEXT_PATH");
    c->policy = is("MSTX_POLICY", "drop") ? RT_DROP : RT_BLOCK;
    c->flight_s = seconds_of(get_variable("MSTX_FLIGHT"));
    c->hang_s = get_variable("MSTX_HANG_TIMEOUT") != NULL
                    ? seconds_of(get_variable("MSTX_HANG_TIMEOUT"))
                    : HANG_S;
    c->max_bytes = bytes_of(get_variable("MSTX_MAX_SIZE"));
    uint64_t seg = bytes_of(get_variable("MSTX_SEGMENT"));
    c->segment_bytes = seg == 0 ? 4u << 20 : seg > 64u << 20 ? 64u << 20 : (uint32_t)seg;
    if (c->segment_bytes < SEGMENT_LEAST)
        c->segment_bytes = SEGMENT_LEAST;
    c->segment_bytes &= ~(uint32_t)(MSTX_SEG_HEADER - 1);
    c->wait = is("MSTX_START", "off");
    c->no_nvtx = is("MSTX_NVTX", "0");
    c->quiet = is("MSTX_QUIET", "2") ? 2 : is("MSTX_QUIET", "1");
    c->tool_id = is("MSTX_TOOL_ID", "msprof") ? 0x1000 : 0x4D53;
    read_rank(c);
}
