-- SPDX-License-Identifier: MIT

-- name: find_table
SELECT 1
FROM main.sqlite_master
WHERE type IN ('table', 'view') AND name = ?
