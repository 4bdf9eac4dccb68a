/* SPDX-License-Identifier: MIT
 *
 * recipe_share: reads the ranks of a recipe with all processes of `mpirun msprobe cluster`.
 *
 *     process 0   recipe ── queries ──►  others
 *                 visits  ◄── rows ────  each reads its ranks of a wave
 *
 * Process 0 runs the recipe and sends its queries to the others, which know nothing else of it. They
 * read their ranks and send the rows, which process 0 visits in the order of the ranks, so that the
 * result does not depend on the number of processes.
 */
#ifndef MSTX_OFFICIAL_RECIPE_SHARE_H
#define MSTX_OFFICIAL_RECIPE_SHARE_H

#include "mstx/official/rank_rows.h"

enum mstx__share_command {
    MSTX_SHARE_END,
    MSTX_SHARE_RUN,   /* the input is a run */
    MSTX_SHARE_FILES, /* the input is these files */
    MSTX_SHARE_QUERIES
};

/* Returns the end of the ranks that a process reads in the wave that begins at place `first`: those of process 0
 * come first, then those of process 1, and so on. None has more than `unit`. */
size_t mstx__share_end(const struct mstx_recipe *r, size_t first, size_t unit, unsigned process);

/* The calls of process 0. Opens the input in all processes: the run whose database is db, or the files that
 * were found when db is NULL. */
enum ms_rc mstx__share_input(struct mstx_recipe *r, const char *db, const char *only,
                             struct ms_err *err) MS_MUST_USE;
/* Sends queries; every process then reads the waves of `unit` ranks. */
enum ms_rc mstx__share_queries(const struct mstx_recipe *r, const struct mstx_rank_query *q,
                               size_t n, size_t unit, struct ms_err *err) MS_MUST_USE;
/* Receives the rows of the next wave of a process, n for all of its ranks together. */
enum ms_rc mstx__share_receive(const struct mstx_recipe *r, unsigned process,
                               struct mstx__rank_rows *rows, size_t n,
                               struct ms_err *err) MS_MUST_USE;
/* Ends the recipe in the other processes. All of them get the result `mine` of process 0. */
enum ms_rc mstx__share_end_recipe(struct ms_par *par, enum ms_rc mine,
                                  struct ms_err *err) MS_MUST_USE;

/* The whole work of the other processes (recipe_serve.c). */
enum ms_rc mstx__share_serve(struct ms_par *par, struct ms_pool *pool,
                             struct ms_err *err) MS_MUST_USE;

#endif
