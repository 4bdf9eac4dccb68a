/* SPDX-License-Identifier: MIT
 *
 * cmd_table_compare: lists the commands of this folder. WORD in the list adds
 * `const struct ms_cmd compare_cmd_WORD`, which compare/cmd/cmd_WORD.c defines.
 */
#include "probe/cli/cmds.h"

#define COMMANDS(X) X(compare) X(check) X(calibrate) X(merge_result) X(graph_visualize)

#define DECLARE(name) extern const struct ms_cmd compare_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(name) &compare_cmd_##name,
const struct ms_cmd *const compare_cmds[] = {COMMANDS(POINT_TO) NULL};
