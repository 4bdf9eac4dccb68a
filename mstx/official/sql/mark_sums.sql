-- SPDX-License-Identifier: MIT

-- name: read_marks
WITH f AS (SELECT CAST(p.startNs AS INTEGER) AS startNs, c.connectionId
  FROM PYTORCH_API p
  JOIN CONNECTION_IDS c ON c.id = p.connectionId)
SELECT m.value, e.startNs, ifnull(t.startNs, 0), ifnull(f.startNs, 0), e.globalTid
FROM MSTX_EVENTS e
LEFT JOIN TASK t ON t.connectionId = e.connectionId
LEFT JOIN f ON f.connectionId = e.connectionId
JOIN STRING_IDS m ON m.id = e.message
WHERE e.eventType = 3 AND e.startNs BETWEEN ?1 AND ?2
ORDER BY e.startNs

-- name: read_ranges
SELECT m.value, e.startNs, e.endNs,
    CASE WHEN t.startNs IS NULL AND (SELECT count(*) FROM main.sqlite_master WHERE name = 'TASK')
        = 0 THEN 0.0 ELSE t.endNs - t.startNs END
FROM MSTX_EVENTS e
LEFT JOIN TASK t ON t.connectionId = e.connectionId
JOIN STRING_IDS m ON m.id = e.message
WHERE e.eventType = 2 AND e.startNs BETWEEN ?1 AND ?2 AND e.connectionId != 4294967295
ORDER BY e.startNs

-- name: read_steps
SELECT id, startNs, endNs
FROM STEP_TIME
ORDER BY startNs
