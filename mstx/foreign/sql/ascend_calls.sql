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

-- Of run.db: the steps of the rank ?3 among the processes ?1 to ?2, or of all ranks where ?3 = ?4.
-- name: find_steps
SELECT s.number, s.start_ns, s.end_ns
FROM processes p
CROSS JOIN steps s ON s.process = p.id
WHERE p.id BETWEEN ?1 AND ?2 AND (p.rank = ?3 OR ?3 = ?4)
ORDER BY s.start_ns
