-- SPDX-License-Identifier: MIT

-- name: make_calls
-- What calls of the runtime launched, by the name of the call.
CREATE TEMP TABLE ApiStatistic AS
SELECT s.value AS "API Name", sum(t.endNs - t.startNs) AS "Total Time(ns)", count(*) AS "Count",
    avg(t.endNs - t.startNs) AS "Avg Time(ns)", min(t.endNs - t.startNs) AS "Min Time(ns)",
    max(t.endNs - t.startNs) AS "Max Time(ns)"
FROM CANN_API c
JOIN STRING_IDS s ON c.name = s.id
JOIN TASK t ON c.connectionId = t.connectionId
GROUP BY s.value
ORDER BY "Total Time(ns)" DESC

-- name: has_column
SELECT 1 FROM pragma_table_info('COMPUTE_TASK_INFO') WHERE name = 'opState'
UNION ALL
SELECT 2 FROM pragma_table_info('COMPUTE_TASK_INFO') WHERE name = 'blockNum'

-- name: make_kernels
-- Kinds: 0 computation, 1 communication, 2 scheduling of communication.
CREATE TEMP TABLE kernel(kind INTEGER, task INTEGER, op_name, block_dim, mix_block_dim, op_type,
    task_type, input_formats, input_shapes, input_data_types, output_shapes, output_formats,
    output_data_types, op_state, start_ns INTEGER, end_ns INTEGER, device_id, model_id, stream_id,
    context_id, task_id);

-- name: add_computation
-- Followed by the columns of the version and by add_computation_rest.
INSERT INTO kernel
SELECT 0, c.globalTaskId, (SELECT value FROM STRING_IDS WHERE id = c.name),

-- name: add_computation_rest
    (SELECT value FROM STRING_IDS WHERE id = c.opType),
    (SELECT value FROM STRING_IDS WHERE id = c.taskType),
    (SELECT value FROM STRING_IDS WHERE id = c.inputFormats),
    (SELECT value FROM STRING_IDS WHERE id = c.inputShapes),
    (SELECT value FROM STRING_IDS WHERE id = c.inputDataTypes),
    (SELECT value FROM STRING_IDS WHERE id = c.outputShapes),
    (SELECT value FROM STRING_IDS WHERE id = c.outputFormats),
    (SELECT value FROM STRING_IDS WHERE id = c.outputDataTypes),

-- name: add_computation_end
    t.startNs, t.endNs, t.deviceId, t.modelId, t.streamId, t.contextId, t.taskId
FROM COMPUTE_TASK_INFO c
JOIN TASK t ON c.globalTaskId = t.globalTaskId

-- name: add_communication
INSERT INTO kernel(kind, op_name, op_type, task_type, start_ns, end_ns, device_id, model_id)
SELECT 1, (SELECT value FROM STRING_IDS WHERE id = c.opName),
    (SELECT value FROM STRING_IDS WHERE id = c.opType), 'COMMUNICATION', c.startNs, c.endNs,
    t.deviceId, t.modelId
FROM COMMUNICATION_OP c
JOIN (SELECT connectionId, deviceId, modelId
  FROM TASK
  GROUP BY connectionId
  HAVING count(DISTINCT deviceId) = 1 AND count(DISTINCT modelId) = 1) t
ON c.connectionId = t.connectionId

-- name: add_scheduling
INSERT INTO kernel(kind, op_name, op_type, task_type, start_ns, end_ns, device_id, model_id,
    stream_id, context_id, task_id)
SELECT 2, (SELECT value FROM STRING_IDS WHERE id = c.name),
    (SELECT value FROM STRING_IDS WHERE id = c.opType),
    (SELECT value FROM STRING_IDS WHERE id = c.taskType), t.startNs, t.endNs, t.deviceId, t.modelId,
    t.streamId, t.contextId, t.taskId
FROM COMMUNICATION_SCHEDULE_TASK_INFO c
JOIN TASK t ON t.globalTaskId = c.globalTaskId

-- name: make_counters
-- The first value of each counter of a task.
CREATE TEMP TABLE counter(name TEXT, task INTEGER, value, PRIMARY KEY(name, task)) WITHOUT ROWID;
INSERT OR IGNORE INTO counter
SELECT s.value, p.globalTaskId, p.value
FROM TASK_PMU_INFO p
JOIN STRING_IDS s ON s.id = p.name
WHERE p.value IS NOT NULL
ORDER BY p.rowid;

-- name: list_counters
-- The name, the name of its column, whether it is a time, and whether values are whole, as those
-- of all counters have to be.
SELECT name, CASE name WHEN 'aiv_total_time' THEN 'aiv_time' WHEN 'aic_total_time' THEN 'aicore_time'
        ELSE name END,
    instr(name, 'time') > 0,
    count(*) = (SELECT count(*) FROM kernel WHERE kind = 0)
        AND NOT EXISTS (SELECT 1 FROM counter WHERE typeof(value) <> 'integer')
        AND NOT EXISTS (SELECT 1 FROM kernel WHERE kind > 0)
FROM counter
WHERE task IN (SELECT task FROM kernel WHERE kind = 0)
GROUP BY name
ORDER BY name

-- name: count_kinds
SELECT sum(kind = 0), sum(kind = 1), sum(kind = 2) FROM kernel

-- name: order_kernels
-- The time between a kernel and the one before it.
CREATE TEMP TABLE waited AS
SELECT rowid AS id,
    (start_ns - lag(end_ns) OVER (ORDER BY start_ns, rowid)) / 1000.0 AS us
FROM kernel
ORDER BY start_ns, rowid;
UPDATE waited SET us = 0.0 WHERE rowid = 1

-- name: order_kernels_strict
-- The official tool takes the end of a kernel from the start of the one before it, in floats, and
-- puts the 0 of the first row into that of the first kernel in the database.
CREATE TEMP TABLE waited AS
SELECT rowid AS id,
    (CAST(end_ns AS REAL) - CAST(lag(start_ns) OVER (ORDER BY start_ns, rowid) AS REAL)) / 1000.0
        AS us
FROM kernel
ORDER BY start_ns, rowid;
UPDATE waited SET us = 0.0 WHERE id = (SELECT min(rowid) FROM kernel)

-- name: make_no_counters
CREATE TEMP TABLE counter(name TEXT, task INTEGER, value)
