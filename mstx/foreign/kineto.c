/* SPDX-License-Identifier: MIT
 *
 * kineto: see the header.
 */
#include "mstx/foreign/kineto.h"

#include <stddef.h>

/* The names are those of the profiler's activity types; the capital ones of its first versions. */
static const struct {
    struct ms_str category;
    enum mstx_kineto_side side;
} sides[] = {
    {MS_STR("kernel"), MSTX_SIDE_DEVICE},
    {MS_STR("gpu_memcpy"), MSTX_SIDE_DEVICE},
    {MS_STR("gpu_memset"), MSTX_SIDE_DEVICE},
    {MS_STR("concurrent_kernel"), MSTX_SIDE_DEVICE},
    {MS_STR("mtia_ccp_events"), MSTX_SIDE_BESIDE},
    {MS_STR("mtia_workloadd"), MSTX_SIDE_BESIDE},
    {MS_STR("hpu_op"), MSTX_SIDE_DEVICE},
    {MS_STR("collective_comm"), MSTX_SIDE_DEVICE},
    {MS_STR("Kernel"), MSTX_SIDE_DEVICE},
    {MS_STR("Memcpy"), MSTX_SIDE_DEVICE},
    {MS_STR("Memset"), MSTX_SIDE_DEVICE},
    {MS_STR("gpu_user_annotation"), MSTX_SIDE_BESIDE},
    {MS_STR("cuda_sync"), MSTX_SIDE_BESIDE},
    {MS_STR("gpu_pm_counter"), MSTX_SIDE_BESIDE},
    {MS_STR("Trace"), MSTX_SIDE_TOOL},
};

enum mstx_kineto_side mstx__kineto_side(struct ms_str category)
{
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        if (ms_str_eq(sides[i].category, category))
            return sides[i].side;
    }
    return MSTX_SIDE_HOST;
}
