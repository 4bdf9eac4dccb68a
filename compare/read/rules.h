/* SPDX-License-Identifier: MIT
 *
 * rules: where the tables of msprobe 1, of msprobe 26 and of this program differ.
 *
 * Each has an object of values and callbacks. The stages read a field and never ask
 * which object it is. cmp_rules_ours is the object of this program; those of the
 * official tools are in compare/official/rules_official.h.
 */
#ifndef COMPARE_READ_RULES_H
#define COMPARE_READ_RULES_H

#include "compare/compare.h"

enum cmp_colour { CMP_PLAIN, CMP_YELLOW, CMP_RED };

/* A verdict in the words of msprobe 1. */
struct cmp_row_verdict {
    struct ms_str
        result; /* "Yes", "No", "None", "Unmatched"; "Warning" or ""; "pass", "Different" */
    struct ms_str message;  /* Err_message */
    bool failed;            /* the official advisor searches such rows */
    enum cmp_colour colour; /* of a workbook, with cmp_conf.highlight */
};

struct cmp_setup; /* defined in compare/read/setup.h */

struct cmp_rules {
    const char *name;         /* as given to --compat */
    double thousandth_limit;  /* least share of close elements in an output whose inputs agree */
    const char *tensor_title; /* name of the column of a tensor's verdict */

    /* Which records and rows a dump has. */
    bool lists_all_records; /* lists records without a direction in their name */
    /* lists records whose name merely ends like one with a direction */
    bool lists_named_directions;
    bool counts_calls;     /* counts the calls of backward records again */
    bool counts_gradients; /* counts parameter gradients again */
    bool official_stacks;  /* reads stack.json as the official tool does */
    bool one_framework;    /* refuses a dump of PyTorch against one of another framework */
    bool official_ranks;   /* pairs ranks in order and requires equally many */

    /* How rows find their partners. */
    bool aligns;                 /* may pair rows by alignment */
    bool one_mapping;            /* uses one of several mappings; a mapping of rows comes last */
    bool layers_of_mindspore;    /* uses a layer mapping for targets of MindSpore only */
    bool official_layers;        /* finds and numbers layers as the official tool does */
    bool renumbers_golden_alone; /* keeps the call numbers of the target under a mapping */
    bool maps_cells_once;        /* replaces names by a cell mapping as msprobe 1 does */
    bool drops_unmapped;         /* leaves rows unpaired that a rule of an api mapping omits */
    bool shape_in_key;           /* pairs rows of equal shape only */
    bool fuzzy_stops;            /* ends fuzzy pairing when only one side has rows left */
    bool lists_lonely_golden;    /* lists golden rows without a partner in the table */
    bool parts_dtypes;           /* does not pair rows whose dtypes are far apart */
    bool forgets_operators;      /* training against inference: ignores names of operators */
    bool refuses_orders;         /* ... and fails on contradicting orders */

    /* How figures are computed. */
    bool folds_text;            /* joins the cells of folded rows as text */
    bool folds_named_files;     /* joins only files that are named after projections */
    bool fused_shapes_agree;    /* does not compare shapes of fused projections */
    bool loses_digests;         /* leaves folded rows without digests */
    bool joined_as_float;       /* writes every number beside folded rows as float */
    bool column_types;          /* gives a column one type, as pandas does */
    bool pandas_numbers;        /* treats text that looks like a number as a number */
    bool golden_zero_by_double; /* replaces a golden zero by the epsilon of double */
    bool single_scalars;        /* divides a single element in float32 */
    bool numpy_scalars;         /* subtracts a single element as numpy 1 does */
    bool keeps_axes;            /* keeps dimensions of 1 of PyTorch tensors */
    bool complex_by_parts;      /* compares real and imaginary parts of complex numbers */
    bool own_formats;           /* reads .pt files of PyTorch and .npy files of others only */
    bool ignores_signs;         /* treats infinities of opposite sign as equally placed */
    bool whole_outputs;         /* counts output rows that the operator did not write */
    bool skips_bad_matrices;    /* skips a matrix that does not fit */
    bool tabs_infinities;       /* ends an infinite difference in a graph with a tab */

    /* How rows are judged. */
    bool output_by_name;         /* an output is a row with .output. in its name */
    bool compares_dtype_text;    /* compares dtypes by name */
    bool judges_gradients;       /* training against inference: judges requires_grad and shapes */
    bool none_differs;           /* an unrecorded requires_grad differs */
    bool loses_reading;          /* hides why a file could not be read */
    bool scalars_count;          /* scalar arguments count as inputs */
    bool folded_digests_differ;  /* digests of folded rows differ */
    bool digests_alone;          /* judges no attributes when there are digests */
    bool has_unmatched;          /* a row without a partner is unmatched, not passed */
    bool judges_inference_alone; /* judges rows of inference alone by their N/A */
    bool missing_is_nan;         /* in a graph, the fields of a missing side always differ */
    bool rules_by_first_input;   /* the first input decides which rules an operator skips */
    bool judges_by_place;        /* places verdicts of folded rows as the official tool does */

    /* What is written. */
    bool stack_of_record;   /* the first row of a record shows the stack */
    bool skips_empty;       /* writes no table for a dump without rows */
    bool text_numbers;      /* writes differences as numbers, not as text */
    bool no_digest_message; /* writes no messages in a table of digests */
    /* -da follows the official tool: it pairs by name only and ignores notes */
    bool official_diff;
    bool diff_asks_inputs; /* -da checks inputs, too */

    /* Computes the differences of statistics; NULL: as msprobe does by default. */
    enum ms_rc (*measure_stats)(struct cmp_view *v, struct cmp_row *row, struct ms_err *err);
    /* Computes the verdict to write; NULL: from the row's level and notes. */
    enum ms_rc (*judge_row)(const struct cmp_setup *set, struct cmp_view *v,
                            const struct cmp_row *row, struct cmp_row_verdict *out,
                            struct ms_err *err);
    /* Computes the colour of a row of a workbook; NULL: from the row's level. */
    enum cmp_colour (*colour_row)(const struct cmp_setup *set, const struct cmp_view *v,
                                  const struct cmp_row *row, struct ms_buf *reasons);
};

extern const struct cmp_rules cmp_rules_ours;

#endif
