-- SPDX-License-Identifier: MIT

-- A group is known by its name there, so each needs one of its own.
-- name: name_groups
SELECT id, CASE WHEN ifnull(name, '') = '' THEN 'communicator ' || id
    WHEN count(*) OVER (PARTITION BY name) > 1 THEN name || ' ' || id ELSE name END,
    ifnull(size, -1)
FROM comm_groups
ORDER BY id

-- name: find_any_call
SELECT 1
FROM comm_ops
WHERE class < 2
LIMIT 1
