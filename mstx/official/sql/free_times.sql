-- SPDX-License-Identifier: MIT

-- name: read_busy
SELECT startNs, endNs
FROM (SELECT t.startNs, t.endNs
  FROM COMPUTE_TASK_INFO c
  JOIN TASK t ON t.globalTaskId = c.globalTaskId
  UNION ALL
  SELECT startNs, endNs
  FROM COMMUNICATION_OP)
ORDER BY startNs

-- name: read_tasks
-- Of a real database the times of the framework are texts.
SELECT s.value, t.startNs, t.endNs, c.startNs, c.endNs, CAST(p.startNs AS INTEGER),
    CAST(p.endNs AS INTEGER)
FROM TASK t
LEFT JOIN CANN_API c ON c.connectionId = t.connectionId
LEFT JOIN STRING_IDS s ON s.id = t.taskType
LEFT JOIN CONNECTION_IDS i ON i.connectionId = t.connectionId
LEFT JOIN PYTORCH_API p ON p.connectionId = i.id
ORDER BY t.startNs

-- name: make_table
DROP TABLE IF EXISTS FreeAnalysis;
CREATE TABLE FreeAnalysis(rankId INTEGER, "startTime(us)" TEXT, "endTime(us)" TEXT,
        "duration(us)" REAL, "pytorchIdleTime(us)" REAL, "cannIdleTime(us)" REAL, reason TEXT);
CREATE TEMP VIEW FreeAnalysisText AS
SELECT rankId AS "Rank ID", "startTime(us)" AS "Start Time(us)", "endTime(us)" AS "End Time(us)",
    "duration(us)" AS "Duration(us)", "pytorchIdleTime(us)" AS "Pytorch Idle Time(us)",
    "cannIdleTime(us)" AS "Cann Idle Time(us)", reason AS "Reason"
FROM FreeAnalysis

-- name: add_row
INSERT INTO FreeAnalysis VALUES(?,?,?,?,?,?,?)
