/* SPDX-License-Identifier: MIT
 *
 * graph_args: the options of `msprobe graph_visualize` and the check of their combinations.
 */
#include "compare/cmd/graph_args.h"

#define ORDER "tp-cp-ep-dp-pp"

static const char *const compats[] = {"cur", "strict", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};
static const char *const aligns[] = {"auto", "always", "exact", NULL};
static const char *const file_types[] = {"db", "json", NULL};
static const char *const batches[] = {"list", "first", "none", NULL};

const struct ms_opt graph_opts[] = {
    {"target_path", "tp", MS_OPT_PATH, offsetof(struct graph_args, target), "PATH",
     .dash = MS_DASH_FOLDER, .required = true,
     .help = "the run to show: directory of one rank, of ranks or of steps; or a .vis file of an "
             "earlier version, which is converted to a database"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct graph_args, golden), "PATH",
     .dash = MS_DASH_FOLDER,
     .may_be_empty = true, /* the official plugin passes an empty path when there is none */
     .help = "the run to compare with; without it the graph shows one run"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct graph_args, out), "DIR",
     .dash = MS_DASH_FOLDER, .required = true,
     .help = "directory for the database; created when missing"},
    {"layer_mapping", "lm", MS_OPT_OPTIONAL, offsetof(struct graph_args, layers), "FILE",
     .help = "match layers that have other names on the golden side, by the rules in FILE; "
             "without FILE by name"},
    {"fuzzy_match", "fm", MS_OPT_FLAG, offsetof(struct graph_args, fuzzy),
     .help = "match modules by name anywhere in the tree, and their operators by name and order"},
    {"align", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, align), "WHICH", .dflt = "auto",
     .choices = aligns,
     .help = "how nodes are matched. auto: by name where both sides have the same names, else by "
             "alignment; always: by alignment; exact: by name and ancestors"},
    {"overflow_check", "oc", MS_OPT_FLAG, offsetof(struct graph_args, overflow),
     .help =
         "give every node an overflow level: whether it makes NaN or infinity, or passes it on"},
    {"suspects", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, suspects), "WHICH", .dflt = "yes",
     .choices = yes_no,
     .help = "find the nodes that introduce the difference and write them to the table x_findings; "
             "no: skip this second pass over the dumps"},
    {"is_print_compare_log", "tensor_log", MS_OPT_FLAG, offsetof(struct graph_args, log_items),
     .help = "name on standard error each item whose tensors were compared"},
    {"is_print_progress_log", "progress_log", MS_OPT_FLAG, offsetof(struct graph_args, progress),
     .help = "print progress on standard output in lines that the TensorBoard plugin reads"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, compat), "WHICH", .dflt = "cur",
     .choices = compats,
     .help = "cur: with defects of the official tool repaired; strict: its database row for row"},
    {"compat_md5_index", NULL, MS_OPT_FLAG, offsetof(struct graph_args, md5_index),
     .help = "with digests, show operators that allocate uninitialized memory as errors, as the "
             "official tool does"},
    {"batch_p2p", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, batch), "HOW", .dflt = "list",
     .choices = batches,
     .help =
         "link batch_isend_irecv to other ranks by every member (list), by the first member, or "
         "not at all"},
    {.name = "Ranks put together again", .kind = MS_OPT_HEAD},
    {"rank_size", NULL, MS_OPT_LIST, offsetof(struct graph_args, rank_size), "N",
     .dash = MS_DASH_WORD, .min = 1, .max = 2,
     .help = "merge this many ranks into the model that they share: on the target, and on the "
             "golden side"},
    {"tp", NULL, MS_OPT_LIST, offsetof(struct graph_args, tp), "N", .dash = MS_DASH_WORD, .min = 1,
     .max = 2,
     .help = "size of tensor parallelism: ranks that hold parts of one tensor, for each side"},
    {"pp", NULL, MS_OPT_LIST, offsetof(struct graph_args, pp), "N", .dash = MS_DASH_WORD, .min = 1,
     .max = 2, .help = "size of pipeline parallelism: ranks that share the layers, for each side"},
    {"vpp", NULL, MS_OPT_LIST, offsetof(struct graph_args, vpp), "N", .dash = MS_DASH_WORD,
     .min = 1, .max = 2, .dflt = "1",
     .help = "virtual pipeline: number of chunks of layers on each rank, for each side"},
    {"order", NULL, MS_OPT_LIST, offsetof(struct graph_args, order), "ORDER", .dash = MS_DASH_WORD,
     .min = 1, .max = 2, .dflt = ORDER,
     .help = "order of the parallel dimensions in rank numbers, for each side; used where the "
             "communication does not show the groups"},
    {"file_type", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, file_type), "TYPE", .dflt = "db",
     .choices = file_types,
     .help = "db: a database; json: the merged ranks as dumps, step0/rank0/dump.json and so on"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct graph_args, format), "FORMAT", .dflt = "text",
     .choices = ms_formats, .help = "of what is said about it: text for people, json for programs"},
    {0}};

/* ---- ranks to be merged ------------------------------------------------------------ */

static enum ms_rc parse_size(const struct ms_opt_list *l, const char *name, unsigned side,
                             uint32_t *out, struct ms_err *err)
{
    uint64_t v;
    if (!ms_str_u64(ms_str_of(l->items[side]), &v) || v == 0 || v > 1 << 20)
        return ms_fail(err, MS_E_ARG, "--%s %s: a whole number from 1 on is wanted", name,
                       l->items[side]);
    *out = (uint32_t)v;
    return MS_OK;
}

/* Parses a number for each side; an option that is not required may be absent. */
static enum ms_rc parse_sizes(struct graph_args *a, unsigned sides, struct ms_err *err)
{
    const struct {
        const struct ms_opt_list *list;
        const char *name;
        size_t into;
        bool needed;
    } sizes[] = {{&a->rank_size, "rank_size", offsetof(struct graph_param, rank_size), true},
                 {&a->tp, "tp", offsetof(struct graph_param, tp), true},
                 {&a->pp, "pp", offsetof(struct graph_param, pp), true},
                 {&a->vpp, "vpp", offsetof(struct graph_param, vpp), false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct ms_opt_list *l = sizes[i].list;
        if (l->n == 0 && sizes[i].needed)
            return ms_fail(err, MS_E_ARG, "--rank_size needs --%s", sizes[i].name);
        if (l->n != sides && l->n != 0)
            return ms_fail(err, MS_E_ARG, "--%s takes %s here", sizes[i].name,
                           sides == 1 ? "one number" : "two numbers, target and golden side");
        for (unsigned side = 0; side < l->n; side++)
            MS_TRY(parse_size(l, sizes[i].name, side,
                              (uint32_t *)(void *)((char *)&a->merge[side] + sizes[i].into), err));
    }
    return MS_OK;
}

static enum ms_rc set_merge(struct graph_args *a, void (*note)(void *ctx, const char *line),
                            struct ms_err *err)
{
    unsigned sides = a->golden != NULL && a->golden[0] != '\0' ? 2 : 1;
    bool any = a->tp.n + a->pp.n + a->vpp.n + a->order.n != 0;
    a->merge[0] = a->merge[1] = (struct graph_param){.vpp = 1, .order = ORDER};
    if (a->file_type == 1 && sides == 2)
        return ms_fail(err, MS_E_ARG, "--file_type json writes one run: leave --golden_path out");
    if (a->rank_size.n == 0) {
        if (any)
            return ms_fail(err, MS_E_ARG, "--tp, --pp, --vpp and --order need --rank_size");
        if (a->file_type == 1)
            note(NULL, "--file_type json is for merged ranks, see --rank_size; writing a "
                       "database");
        a->file_type = 0;
        return MS_OK;
    }
    if (a->order.n != 0 && a->order.n != sides)
        return ms_fail(err, MS_E_ARG, "--order takes one text for each side");
    for (unsigned side = 0; side < a->order.n; side++)
        a->merge[side].order = a->order.items[side];
    return parse_sizes(a, sides, err);
}

enum ms_rc graph_args_check(struct graph_args *a, void (*note)(void *ctx, const char *line),
                            struct ms_err *err)
{
    if (a->fuzzy && a->align != 0)
        return ms_fail(err, MS_E_ARG,
                       "-fm says itself how nodes match; leave out --align beside it");
    return set_merge(a, note, err);
}
