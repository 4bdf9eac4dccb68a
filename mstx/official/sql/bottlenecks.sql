-- SPDX-License-Identifier: MIT

-- name: read_calls
-- The first call of each name, as it stands in the table, and the longest calls.
SELECT s.value, c.startNs, c.endNs
FROM COMMUNICATION_OP c
JOIN STRING_IDS s ON s.id = c.opName
WHERE c.startNs >= ?1 AND c.endNs <= ?2
ORDER BY c.rowid

-- name: read_device
SELECT CASE kind WHEN 1 THEN 'call' ELSE 'task' END, value, startNs, endNs
FROM (SELECT 0 AS kind, s.value AS value, t.startNs AS startNs, t.endNs AS endNs
  FROM TASK t
  JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId
  JOIN STRING_IDS s ON s.id = c.name
  UNION ALL
  SELECT 1, s.value, t.startNs, t.endNs
  FROM TASK t
  JOIN COMMUNICATION_TASK_INFO c ON c.globalTaskId = t.globalTaskId
  JOIN STRING_IDS s ON s.id = c.name
  UNION ALL
  SELECT 2, s.value, t.startNs, t.endNs
  FROM TASK t
  JOIN STRING_IDS s ON s.id = t.taskType
  WHERE s.value LIKE '%memcpy%')

-- name: read_framework
-- Of a real database the times of the framework are texts.
SELECT s.value, CAST(p.startNs AS INTEGER), CAST(p.endNs AS INTEGER)
FROM PYTORCH_API p
JOIN STRING_IDS s ON s.id = p.name
WHERE s.value LIKE '%::%'

-- name: read_runtime
SELECT e.name || '@' || s.value, c.startNs, c.endNs
FROM CANN_API c
JOIN STRING_IDS s ON s.id = c.name
JOIN ENUM_API_TYPE e ON e.id = c.type
