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
