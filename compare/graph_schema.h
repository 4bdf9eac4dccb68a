/* SPDX-License-Identifier: MIT
 *
 * graph_schema: the tables of a .vis.db.  The first three and the indexes are the
 * official ones, types and order of columns included; x_ tables are ours.
 *
 *     x_meta    what made the file, and what was repaired
 *     x_rollup  for every node with children, how many nodes below it are in which state
 *     x_state   where nodes in a state worth a visit are, in their order
 *     x_names   names in lower case, in pages, for the search
 */
#ifndef COMPARE_GRAPH_SCHEMA_H
#define COMPARE_GRAPH_SCHEMA_H

#define GRAPH_SQL_TABLES                                                                           \
    "CREATE TABLE tb_nodes (id TEXT PRIMARY KEY, graph_id TEXT NOT NULL,"                          \
    " node_order INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT NOT NULL,"              \
    " up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,"                 \
    " micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT,"                      \
    " parallel_merge_info TEXT, matched_distributed TEXT, modified INTEGER NOT NULL,"              \
    " input_data TEXT, output_data TEXT, data_source TEXT, dump_data_dir TEXT,"                    \
    " step INTEGER NOT NULL, rank INTEGER NOT NULL, is_distributed INTEGER);"                      \
    "CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT);"                                \
    "CREATE TABLE tb_config (id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT,"            \
    " tool_tip TEXT, micro_steps INTEGER, overflow_check INTEGER, node_colors TEXT NOT NULL,"      \
    " rank_list TEXT NOT NULL, step_list TEXT NOT NULL)"

#define GRAPH_SQL_EXTRA                                                                            \
    "CREATE TABLE x_meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"                        \
    "CREATE TABLE x_rollup (id TEXT PRIMARY KEY, worst INTEGER, n_error INTEGER,"                  \
    " n_warn INTEGER, n_unmatched INTEGER, n_overflow INTEGER) WITHOUT ROWID;"                     \
    "CREATE TABLE x_state (graph_id TEXT, state INTEGER, node_order INTEGER,"                      \
    " PRIMARY KEY (graph_id, state, node_order)) WITHOUT ROWID;"                                   \
    "CREATE TABLE x_names (graph_id TEXT, first_order INTEGER, names BLOB,"                        \
    " PRIMARY KEY (graph_id, first_order)) WITHOUT ROWID"

#define GRAPH_SQL_INDEXES                                                                          \
    "CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);"              \
    "CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);"                        \
    "CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);"                       \
    "CREATE INDEX index4 ON tb_nodes (step, rank, node_order);"                                    \
    "CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);"                     \
    "CREATE INDEX index7 ON tb_nodes (is_distributed);"

/* The plugin asks for modified = 1 alone, so the rest of the index would be dead weight. */
#define GRAPH_SQL_INDEX6                                                                           \
    "CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link) WHERE modified = 1"
#define GRAPH_SQL_INDEX6_STRICT                                                                    \
    "CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link)"

#define GRAPH_SQL_INSERT                                                                           \
    "INSERT INTO tb_nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, '{}',"   \
    " 0, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"

#endif
