/* SPDX-License-Identifier: MIT
 *
 * graph_schema: the tables of a .vis.db. The first three and the indexes are the
 * official ones, including types and order of columns; x_ tables are ours.
 *
 *     x_meta    what made the file, and what was repaired
 *     x_rollup  for every node with children, how many nodes below it are in which state
 *     x_state   where nodes of each state are, in their order: 0 unmatched, 1 pass,
 *               2 warning, 3 error, and a second time by 4 those that overflow
 *     x_names   names in lower case, in pages, for the search
 *     x_align   results of matching: state, partner, evidence and confidence of each node of
 *               both sides, except nodes matched by name at the same place
 *     x_kin     further nodes of the other side for a node: more pairs, and members that
 *               run in its place together with its partner
 *     x_edge    which node wrote the value that a node reads in a slot
 *     x_findings  the suspects: nodes that introduce a difference, best first
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_SCHEMA_H
#define COMPARE_GRAPH_BUILD_GRAPH_SCHEMA_H

enum { GRAPH_STATE_OVERFLOW = 4 };

#define GRAPH_SQL_NODES(id)                                                                        \
    "CREATE TABLE tb_nodes (" id ", graph_id TEXT NOT NULL,"                                       \
    " node_order INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT NOT NULL,"              \
    " up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,"                 \
    " micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT,"                      \
    " parallel_merge_info TEXT, matched_distributed TEXT, modified INTEGER NOT NULL,"              \
    " input_data TEXT, output_data TEXT, data_source TEXT, dump_data_dir TEXT,"                    \
    " step INTEGER NOT NULL, rank INTEGER NOT NULL, is_distributed INTEGER)"

/* Rows of tb_nodes are large, and SQLite reads all of them to build an index. While the table is
 * filled, the indexed columns are therefore also written to the slim table x_slim, with the same
 * rowids. The indexes are built on x_slim and then renamed to belong to tb_nodes, which is valid
 * because index entries are only values and rowids. The index of the primary key is renamed
 * likewise. */
#define GRAPH_SQL_SLIM                                                                             \
    "CREATE TABLE x_slim (step INTEGER, rank INTEGER, data_source TEXT, up_node TEXT,"             \
    " node_order INTEGER, node_name TEXT, micro_step_id INTEGER, is_distributed INTEGER,"          \
    " modified INTEGER, matched_node_link TEXT)"
#define GRAPH_SQL_INSERT_SLIM "INSERT INTO x_slim VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, NULL)"
#define GRAPH_ID_WHILE_FILLED "id TEXT"
#define GRAPH_ID              "id TEXT PRIMARY KEY"

#define GRAPH_SQL_OTHERS                                                                           \
    "CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT);"                                \
    "CREATE TABLE tb_config (id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT,"            \
    " tool_tip TEXT, micro_steps INTEGER, overflow_check INTEGER, node_colors TEXT NOT NULL,"      \
    " rank_list TEXT NOT NULL, step_list TEXT NOT NULL)"

#define GRAPH_SQL_TABLES                                                                           \
    GRAPH_SQL_NODES(GRAPH_ID_WHILE_FILLED) ";" GRAPH_SQL_SLIM ";" GRAPH_SQL_OTHERS

#define GRAPH_SQL_EXTRA                                                                            \
    "CREATE TABLE x_meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"                        \
    "CREATE TABLE x_rollup (id TEXT PRIMARY KEY, worst INTEGER, n_error INTEGER,"                  \
    " n_warn INTEGER, n_unmatched INTEGER, n_overflow INTEGER) WITHOUT ROWID;"                     \
    "CREATE TABLE x_state (graph_id TEXT, state INTEGER, node_order INTEGER,"                      \
    " PRIMARY KEY (graph_id, state, node_order)) WITHOUT ROWID;"                                   \
    "CREATE TABLE x_names (graph_id TEXT, first_order INTEGER, names BLOB,"                        \
    " PRIMARY KEY (graph_id, first_order)) WITHOUT ROWID;"                                         \
    "CREATE TABLE x_align (graph_id TEXT, node_order INTEGER, kind TEXT, partner TEXT,"            \
    " how TEXT, confidence REAL, PRIMARY KEY (graph_id, node_order)) WITHOUT ROWID;"               \
    "CREATE TABLE x_kin (graph_id TEXT, node_order INTEGER, place INTEGER, kind TEXT,"             \
    " name TEXT, how TEXT, confidence REAL,"                                                       \
    " PRIMARY KEY (graph_id, node_order, place)) WITHOUT ROWID;"                                   \
    "CREATE INDEX x_moved ON x_align (graph_id, node_order) WHERE kind = 'moved';"                 \
    "CREATE TABLE x_edge (graph_id TEXT, dst INTEGER, slot TEXT, src INTEGER,"                     \
    " PRIMARY KEY (graph_id, dst, slot)) WITHOUT ROWID;"                                           \
    "CREATE TABLE x_findings (place INTEGER PRIMARY KEY, step INTEGER, rank INTEGER,"              \
    " node_name TEXT, golden_name TEXT, role TEXT, why TEXT, score REAL, text TEXT,"               \
    " message TEXT, args TEXT, ranks TEXT, certainty REAL)"

#define GRAPH_SQL_INDEXES(table)                                                                   \
    "CREATE INDEX index1 ON " table " (step, rank, data_source, up_node, node_order);"             \
    "CREATE INDEX index2 ON " table " (step, rank, data_source, node_name);"                       \
    "CREATE INDEX index3 ON " table " (step, rank, data_source, node_order);"                      \
    "CREATE INDEX index4 ON " table " (step, rank, node_order);"                                   \
    "CREATE INDEX index5 ON " table " (step, rank, micro_step_id, node_order);"                    \
    "CREATE INDEX index7 ON " table " (is_distributed)"

/* Renames the indexes of x_slim to tb_nodes, also in their SQL text, which names the table. */
#define GRAPH_SQL_HAND_OVER                                                                        \
    "PRAGMA writable_schema = ON;"                                                                 \
    "UPDATE sqlite_master SET tbl_name = 'tb_nodes',"                                              \
    " sql = replace(sql, ' ON x_slim ', ' ON tb_nodes ') WHERE tbl_name = 'x_slim'"                \
    " AND type = 'index';"                                                                         \
    "PRAGMA writable_schema = RESET;"                                                              \
    "DROP TABLE x_slim;"

#define GRAPH_SQL_PRIMARY_KEY                                                                      \
    "CREATE UNIQUE INDEX x_id ON tb_nodes (id);"                                                   \
    "PRAGMA writable_schema = ON;"                                                                 \
    "UPDATE sqlite_master SET name = 'sqlite_autoindex_tb_nodes_1', sql = NULL"                    \
    " WHERE name = 'x_id';"                                                                        \
    "UPDATE sqlite_master SET sql = '" GRAPH_SQL_NODES(GRAPH_ID) "' WHERE name = 'tb_nodes';"      \
                                                                 "PRAGMA writable_schema = RESET"

/* The plugin only queries modified = 1, so a partial index suffices. */
#define GRAPH_SQL_INDEX6                                                                           \
    "CREATE INDEX index6 ON x_slim (step, rank, modified, matched_node_link) WHERE modified = 1"
#define GRAPH_SQL_INDEX6_WHOLE                                                                     \
    "CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link)"

#define GRAPH_SQL_INSERT                                                                           \
    "INSERT INTO tb_nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, '{}',"   \
    " 0, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"

#endif
