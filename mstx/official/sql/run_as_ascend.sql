-- SPDX-License-Identifier: MIT

-- name: find_steps
-- The stage is the step without the bubble.
SELECT step, computing_ns, exposed_ns, overlapped_ns, communication_ns, free_ns,
    end_ns - start_ns - bubble_ns, bubble_ns, exposed_ns - bubble_ns, preparing_ns
FROM rank_steps
WHERE rowid BETWEEN ?2 AND ?3 AND rank = ?1
ORDER BY step

-- name: find_step_rows
SELECT rank, min(rowid), max(rowid)
FROM rank_steps
WHERE rank IS NOT NULL
GROUP BY rank
ORDER BY rank

-- name: make_steps
CREATE TABLE StepTraceTime(step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC,
        overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC,
        communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC)

-- name: add_step
INSERT INTO StepTraceTime VALUES(?,?,?,?,?,?,?,?,?,?)

-- Communicators whose ranks are known: hash, name, ranks in order, as recorded, and their bare list. A group
-- is known by its name there, so each needs one of its own.
-- name: find_groups
SELECT double_hash(name), name,
    (SELECT '(' || ifnull(group_concat(value), '') || ')'
  FROM (SELECT value FROM json_each('[' || ranks || ']') ORDER BY value)),
    json('[' || ranks || ']'), ranks
FROM (SELECT ranks, CASE WHEN ifnull(name, '') = '' THEN 'communicator ' || id
        WHEN count(*) OVER (PARTITION BY name) > 1 THEN name || ' ' || id ELSE name END AS name
    FROM comm_groups)
WHERE ifnull(ranks, '') <> '' AND json_valid('[' || ranks || ']')
