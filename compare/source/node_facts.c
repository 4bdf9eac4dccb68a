/* SPDX-License-Identifier: MIT
 *
 * source_op: what an operator's name says about how differences pass through it.
 */
#include "compare/align_int.h"
#include "compare/source_int.h"

struct entry {
    const char *name; /* of the family */
    unsigned flags;
};

static const struct entry families[] = {
    {"relu", SOURCE__SWITCH | SOURCE__EXACT},
    {"relu6", SOURCE__SWITCH},
    {"leakyrelu", SOURCE__SWITCH},
    {"elu", SOURCE__SWITCH},
    {"hardswish", SOURCE__SWITCH},
    {"hardsigmoid", SOURCE__SWITCH},
    {"maxpool", SOURCE__SWITCH},
    {"adaptivemaxpool", SOURCE__SWITCH},
    {"clamp", SOURCE__SWITCH | SOURCE__EXACT},
    {"where", SOURCE__SWITCH | SOURCE__EXACT},
    {"abs", SOURCE__SWITCH | SOURCE__EXACT},
    {"topk", SOURCE__SWITCH},
    {"max", SOURCE__SWITCH},
    {"min", SOURCE__SWITCH},
    {"argsort", SOURCE__SWITCH},
    {"allreduce", SOURCE__COMM},
    {"allgather", SOURCE__COMM},
    {"reducescatter", SOURCE__COMM},
    {"alltoall", SOURCE__COMM},
    {"broadcast", SOURCE__COMM},
    {"send", SOURCE__SEND},
    {"recv", SOURCE__COMM | SOURCE__RECEIVE},
    {"p2p", SOURCE__COMM | SOURCE__SEND | SOURCE__RECEIVE},
    {"cast", SOURCE__CAST | SOURCE__EVEN},
    {"linear", SOURCE__WEIGHED},
    {"conv", SOURCE__WEIGHED | SOURCE__WILD},
    {"layernorm", SOURCE__WEIGHED | SOURCE__NORMS | SOURCE__WILD},
    {"batchnorm", SOURCE__WEIGHED | SOURCE__NORMS | SOURCE__WILD},
    {"groupnorm", SOURCE__WEIGHED | SOURCE__NORMS | SOURCE__WILD},
    {"instancenorm", SOURCE__WEIGHED | SOURCE__NORMS | SOURCE__WILD},
    {"rmsnorm", SOURCE__WEIGHED | SOURCE__NORMS | SOURCE__WILD},
    {"embedding", SOURCE__LOOKUP},
    {"dropout", SOURCE__DROPS},
    {"mask", SOURCE__MASKS | SOURCE__EXACT},
    {"add", SOURCE__ADDS | SOURCE__EXACT | SOURCE__EVEN},
    {"sub", SOURCE__EXACT | SOURCE__EVEN},
    {"mul", SOURCE__EXACT},
    {"neg", SOURCE__EXACT | SOURCE__EVEN},
    {"cat", SOURCE__EXACT},
    {"stack", SOURCE__EXACT},
    {"split", SOURCE__EXACT | SOURCE__EVEN},
    {"reshape", SOURCE__EXACT | SOURCE__EVEN},
    {"transpose", SOURCE__EXACT | SOURCE__EVEN},
    {"contiguous", SOURCE__EXACT | SOURCE__EVEN},
    {"biasadd", SOURCE__ADDS},
    {"sum", SOURCE__EVEN},
    {"mean", SOURCE__EVEN},
};

/* Other collectives of torch.distributed, in no family of the alignment. */
static bool is_distributed(struct ms_str api)
{
    return ms_str_starts(api, MS_STR("Distributed.")) ||
           ms_str_starts(api, MS_STR("MintDistributed.")) ||
           ms_str_starts(api, MS_STR("Functional_distributed."));
}

unsigned source__op_flags(struct ms_str api)
{
    const char *family = align__family_text(align__family_find(api));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].name, family) == 0)
            return families[i].flags;
    }
    return is_distributed(api) ? SOURCE__COMM : 0;
}
