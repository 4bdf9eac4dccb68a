/* SPDX-License-Identifier: MIT
 *
 * compare_args: the options of `msprobe compare` and the check of their combinations.
 */
#include "compare/cmd/compare_args.h"

static const char *const compats[] = {"cur", "old", "strict", NULL};
static const char *const backends[] = {"none", "fsdp", "megatron", NULL};
static const char *const aligns[] = {"auto", "always", "exact", "fuzzy", NULL};
static const char *const modes[] = {"auto",          "offline_data", "torchair",
                                    "offline_model", "atb",          NULL};

const struct ms_opt compare_opts[] = {
    {"target_path", "tp", MS_OPT_PATH, offsetof(struct compare_args, target), "PATH",
     .help = "the dump to check: dump.json, debug.json, or a rank, step or dump directory"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct compare_args, golden), "PATH",
     .help = "the dump to compare the target with"},
    {"output_path", "o", MS_OPT_OPTIONAL, offsetof(struct compare_args, output), "DIR",
     .dash = MS_DASH_FOLDER, .dflt = "./output",
     .help = "directory for the results; created when missing"},
    {"input_path", "i", MS_OPT_PATH, offsetof(struct compare_args, input), "FILE",
     .help = "JSON with npu_path and bench_path, as in msprobe 1, instead of -tp and -gp"},
    {"xlsx", NULL, MS_OPT_FLAG, offsetof(struct compare_args, xlsx),
     .help = "write coloured workbooks (xlsx) instead of csv"},
    {"fuzzy_match", "fm", MS_OPT_FLAG, offsetof(struct compare_args, fuzzy),
     .help = "pair rows in order, ignoring call numbers and module classes; for runs of one "
             "framework whose names differ"},
    {"cell_mapping", "cm", MS_OPT_OPTIONAL, offsetof(struct compare_args, cell), "FILE",
     .help = "pair MindSpore's Cell with PyTorch's Module by name; FILE is YAML of the names "
             "that differ"},
    {"api_mapping", "am", MS_OPT_OPTIONAL, offsetof(struct compare_args, api), "FILE",
     .help = "pair MindSpore's operators with PyTorch's by the built-in table; FILE is YAML of "
             "additional operators"},
    {"data_mapping", "dm", MS_OPT_PATH, offsetof(struct compare_args, data), "FILE",
     .help = "pair the rows that FILE lists: YAML, 'target row: golden row'"},
    {"layer_mapping", "lm", MS_OPT_OPTIONAL, offsetof(struct compare_args, layer), "FILE",
     .help = "pair operators by their module and order in it; FILE is YAML of the names that "
             "differ between the two models"},
    {"align", NULL, MS_OPT_CHOICE, offsetof(struct compare_args, align), "WHICH", .choices = aligns,
     .dflt = "auto",
     .help = "how rows are paired without a mapping. auto: by name where both sides have the same "
             "names, else by alignment; always: by alignment; exact: by name; fuzzy: as -fm"},
    {"pins", NULL, MS_OPT_PATH, offsetof(struct compare_args, pins), "FILE",
     .help = "pair the nodes or rows in FILE (YAML, 'target: golden') and align the rest around "
             "them; to correct an alignment"},
    {"explain", NULL, MS_OPT_TEXT, offsetof(struct compare_args, explain), "NODE",
     .help = "say why a node of either side is paired as it is, and which candidate came second; "
             "writes no table"},
    {"write_mapping", NULL, MS_OPT_FLAG, offsetof(struct compare_args, write_mapping),
     .help = "write the alignment as mapping files, to edit and pass to -lm, -dm or --pins"},
    {"diff_analyze", "da", MS_OPT_FLAG, offsetof(struct compare_args, diff),
     .help = "write as JSON which operator differs first on each rank, following communication; "
             "writes no table"},
    {"is_print_compare_log", "tensor_log", MS_OPT_FLAG, offsetof(struct compare_args, tensor_log),
     .help =
         "accepted and ignored, for scripts written for the official tool; -v reports unreadable "
         "files"},
    {"fuzzy", "f", MS_OPT_FLAG, offsetof(struct compare_args, fuzzy), .hidden = true,
     .help = "-fm, as msprobe 1 spells it"},
    {"stack_mode", "s", MS_OPT_FLAG, offsetof(struct compare_args, stack_mode), .hidden = true,
     .help = "from msprobe 1: show the stacks in the file that -i names as stack_path"},
    {"compare_only", "c", MS_OPT_FLAG, offsetof(struct compare_args, compare_only),
     .help = "with --compat old: write no advice"},
    {"highlight", "hl", MS_OPT_FLAG, offsetof(struct compare_args, highlight),
     .help = "with --compat old: write a workbook with rows in red and yellow, as msprobe 1 does"},
    {"rank", NULL, MS_OPT_TEXT, offsetof(struct compare_args, ranks), "LIST",
     .help = "compare the kernels of MindSpore's static graphs on these ranks, such as 0,1"},
    {"step", NULL, MS_OPT_TEXT, offsetof(struct compare_args, steps), "LIST",
     .help = "compare the kernels of static graphs in these steps, such as 0,1"},
    {"consistent_check", NULL, MS_OPT_FLAG, offsetof(struct compare_args, consistent),
     .help = "compare a training run of reinforcement learning (target) with its inference run "
             "(golden); needs --backend"},
    {"backend", NULL, MS_OPT_CHOICE, offsetof(struct compare_args, backend), "NAME",
     .choices = backends, .dflt = "none",
     .help = "with --consistent_check: the framework of the training run"},
    {"config", NULL, MS_OPT_PATH, offsetof(struct compare_args, config), "FILE",
     .help = "multiply tensors by the matrices in FILE (YAML) before comparing; for a model whose "
             "weights were rotated or scaled"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct compare_args, mode), "MODE", .choices = modes,
     .dflt = "auto",
     .help = "kind of dump: auto, or atb for directories with a statistic.csv of the ATB library"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct compare_args, compat), "WHICH",
     .choices = compats, .dflt = "cur",
     .help = "format of the tables. cur: msprobe 26 with defects repaired; old: msprobe 1; strict: "
             "msprobe 26 with its defects"},
    {"ext", NULL, MS_OPT_FLAG, offsetof(struct compare_args, ext),
     .help = "add columns to the table: relative L2 error, SQNR, ULP distance, pattern and more"},
    {"noise_floor", NULL, MS_OPT_PATH, offsetof(struct compare_args, noise), "PATH",
     .help = "a second golden run, or a file by msprobe calibrate; its differences count as noise"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct compare_args, format), "FORMAT",
     .choices = ms_formats, .dflt = "text",
     .help = "format of the summary: text for people, json for programs"},
    {"most", "n", MS_OPT_INT, offsetof(struct compare_args, most), "N", .dflt = "8", .min = 0,
     .max = INT32_MAX,
     .help = "of more ranks than N, tell those that are alike together in the text; 0: each "
             "rank alone"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct compare_args, exit_code),
     .help = "exit with 1 when a row is not pass, for scripts"},
#define OF_ANOTHER_MODE(i, name, brief)                                                            \
    {                                                                                              \
        name, brief, MS_OPT_TEXT, offsetof(struct compare_args, foreign[i]), "TEXT",               \
            .hidden = true, .help = "for a mode that only the official tool has"                   \
    }
    OF_ANOTHER_MODE(0, "fusion_rule_file", "fr"),
    OF_ANOTHER_MODE(1, "quant_fusion_rule_file", "qfr"),
    OF_ANOTHER_MODE(2, "close_fusion_rule_file", "cfr"),
    OF_ANOTHER_MODE(3, "input_data", NULL),
    OF_ANOTHER_MODE(4, "input_shape", NULL),
    OF_ANOTHER_MODE(5, "output_size", NULL),
    OF_ANOTHER_MODE(6, "dym_shape_range", NULL),
    OF_ANOTHER_MODE(7, "onnx_fusion_switch", "ofs"),
    {0}};

/* Fails for a mode, or an option of one, that only the official tool has. */
static enum ms_rc check_mode(const struct compare_args *a, struct ms_err *err)
{
    static const char *const instead[MODES] = {
        [MODE_OFFLINE_DATA] = "the official tool, which knows dumps of offline models, or, for "
                              "trees of .npy files, -i with \"common\": true",
        [MODE_TORCHAIR] = "the official tool, which knows torchair's files",
        [MODE_OFFLINE_MODEL] = "the official tool, which runs the model"};
    enum { OF_DATA = 3 }; /* the first options are of offline_data, the others of offline_model */
    int mode = a->mode;
    for (size_t i = 0; i < FOREIGN && instead[mode] == NULL; i++) {
        if (a->foreign[i] != NULL)
            mode = i < OF_DATA ? MODE_OFFLINE_DATA : MODE_OFFLINE_MODEL;
    }
    if (instead[mode] == NULL)
        return MS_OK;
    return ms_fail(err, MS_E_UNSUPPORTED, "--mode %s%s is not supported here; use %s", modes[mode],
                   mode != a->mode ? ", to which an option belongs," : "", instead[mode]);
}

enum ms_rc compare_args_check(const struct compare_args *a, struct ms_err *err)
{
    MS_TRY(check_mode(a, err));
    if (a->consistent && a->backend == CMP_CONSISTENT_NO)
        return ms_fail(err, MS_E_ARG,
                       "--consistent_check needs --backend fsdp or --backend megatron");
    bool mapped = a->data != NULL || a->layer != NULL || a->cell != NULL || a->api != NULL;
    if (a->consistent && (mapped || a->fuzzy || a->align != ALIGN_AUTO || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "--consistent_check finds partners by itself; leave out mappings, -fm, "
                       "--align and --pins beside it");
    if (a->fuzzy && (a->align == ALIGN_ALWAYS || a->align == ALIGN_EXACT))
        return ms_fail(err, MS_E_ARG, "-fm is --align fuzzy; leave out --align %s beside it",
                       aligns[a->align]);
    if (mapped && (a->align != ALIGN_AUTO || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "a mapping says itself which names go together; leave out %s beside it",
                       a->pins != NULL ? "--pins" : "--align");
    if (a->pins != NULL && a->align >= ALIGN_EXACT)
        return ms_fail(err, MS_E_ARG, "--pins speaks to the alignment; use --align always");
    if (a->compat != CMP_CUR && (a->align == ALIGN_ALWAYS || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "the official tool has no alignment; leave out --compat %s beside %s",
                       compats[a->compat], a->pins != NULL ? "--pins" : "--align");
    if (a->highlight && a->compat != CMP_OLD)
        return ms_fail(err, MS_E_ARG,
                       "-hl gives the colours of msprobe 1: add --compat old, or --xlsx alone for "
                       "those of the verdicts");
    if (a->noise != NULL && !a->ext)
        return ms_fail(err, MS_E_ARG, "--noise_floor fills columns of --ext; add it");
    if (a->data != NULL && (a->layer != NULL || a->cell != NULL || a->api != NULL))
        return ms_fail(err, MS_E_ARG,
                       "-dm names the rows themselves; leave out -am, -cm and -lm beside it");
    return MS_OK;
}
