-- SPDX-License-Identifier: MIT

-- name: read_calls
SELECT s.value, c.startNs, c.endNs
FROM COMMUNICATION_OP c
JOIN STRING_IDS s ON s.id = c.opName
WHERE c.startNs >= ?1 AND c.endNs <= ?2
ORDER BY c.rowid

-- name: read_device
SELECT value, startNs, endNs, kind = 1
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
SELECT s.value, CAST(p.startNs AS INTEGER), CAST(p.endNs AS INTEGER), 0
FROM PYTORCH_API p
JOIN STRING_IDS s ON s.id = p.name
WHERE s.value LIKE '%::%'

-- name: read_runtime
SELECT e.name || '@' || s.value, c.startNs, c.endNs, 0
FROM CANN_API c
JOIN STRING_IDS s ON s.id = c.name
JOIN ENUM_API_TYPE e ON e.id = c.type

-- name: read_launches
-- Of a real database the times of the framework are texts.
SELECT t.startNs, t.endNs, c.startNs, c.endNs, CAST(p.endNs AS INTEGER)
FROM TASK t
JOIN CANN_API c ON c.connectionId = t.connectionId
JOIN CONNECTION_IDS i ON i.connectionId = t.connectionId
JOIN PYTORCH_API p ON p.connectionId = i.id
JOIN ENUM_API_TYPE e ON e.id = c.type
JOIN STRING_IDS s ON s.id = c.name
WHERE e.name = 'node' AND s.value = 'launch'

-- name: make_bottlenecks
DROP TABLE IF EXISTS CommunicationBottleneck;
CREATE TABLE CommunicationBottleneck("startTime(us)" TEXT, "endTime(us)" TEXT, "duration(us)" REAL,
        communicationOp TEXT, slowRankId INTEGER, fastRankId INTEGER, reason TEXT);
CREATE TEMP VIEW CommunicationBottleneckText AS
SELECT "startTime(us)" AS "Start Time(us)", "endTime(us)" AS "End Time(us)",
    "duration(us)" AS "Duration(us)", communicationOp AS "Communication Op",
    slowRankId AS "Slow Rank ID", fastRankId AS "Fast Rank ID", reason AS "Reason"
FROM CommunicationBottleneck

-- name: add_bottleneck
INSERT INTO CommunicationBottleneck VALUES(?,?,?,?,?,?,?)
