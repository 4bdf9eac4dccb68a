-- SPDX-License-Identifier: MIT

-- name: add_stage
INSERT INTO Stages VALUES(?,?)

-- name: find_pipelines
SELECT rank_set
FROM CommunicationGroupMapping
WHERE type = 'p2p' AND lower(pg_name) LIKE 'pp%'

-- name: find_collectives
SELECT rank_set
FROM CommunicationGroupMapping
WHERE type = 'collective'

-- name: read_arguments
SELECT ?3, value
FROM META_DATA
WHERE name = 'distributed_args'

-- name: find_layout
-- Megatron numbers tensor parallel ranks first, then data parallel ones, then stages.  With context
-- parallel ranks the official tool gives up, and so for a layout of other than all ranks.
CREATE TEMP TABLE Layout AS
WITH a AS (SELECT value
  FROM Arguments
  WHERE json_valid(value) AND json_type(value) = 'object'
  ORDER BY rank
  LIMIT 1)
SELECT max(1, ifnull((SELECT json_extract(value, '$.world_size') FROM a WHERE json_type(value,
        '$.world_size') = 'integer'), 1)) AS world,
    max(1, ifnull((SELECT json_extract(value, '$.tensor_model_parallel_size') FROM a WHERE
        json_type(value, '$.tensor_model_parallel_size') = 'integer'), 1)) AS tp,
    max(1, ifnull((SELECT json_extract(value, '$.pipeline_model_parallel_size') FROM a WHERE
        json_type(value, '$.pipeline_model_parallel_size') = 'integer'), 1)) AS pp,
    max(1, ifnull((SELECT json_extract(value, '$.data_parallel_size') FROM a WHERE
        json_type(value, '$.data_parallel_size') = 'integer'), 1)) AS dp,
    max(1, ifnull((SELECT json_extract(value, '$.context_parallel_size') FROM a WHERE
        json_type(value, '$.context_parallel_size') = 'integer'), 1)) AS cp,
    max(1, ifnull((SELECT json_extract(value, '$.expert_model_parallel_size') FROM a WHERE
        json_type(value, '$.expert_model_parallel_size') = 'integer'), 1)) AS ep
FROM a;
DELETE FROM Layout
WHERE world != tp * pp * dp OR dp % ep != 0 OR cp != 1
    OR world < (SELECT count(DISTINCT rank) FROM TraceRows);

-- name: read_traces
SELECT ?3, step, computing, communication_not_overlapped, overlapped, communication, free, stage,
    bubble, communication_not_overlapped_and_exclude_receive, preparing
FROM StepTraceTime

-- name: write_step_traces
DROP TABLE IF EXISTS ClusterStepTraceTime;
CREATE TABLE ClusterStepTraceTime(step TEXT, type TEXT, "index" TEXT, computing NUMERIC,
        communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free
        NUMERIC, stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive
        NUMERIC, preparing NUMERIC, dp_index INTEGER, pp_index INTEGER, tp_index INTEGER);
INSERT INTO ClusterStepTraceTime
SELECT step, 'rank', rank, computing, communication_not_overlapped, overlapped, communication,
    free, stage, bubble, communication_not_overlapped_and_exclude_receive, preparing,
    ifnull((SELECT rank % (world / pp) / tp FROM Layout), 0),
    ifnull((SELECT rank / (world / pp) FROM Layout), 0),
    ifnull((SELECT rank % (world / pp) % tp FROM Layout), 0)
FROM TraceRows
ORDER BY rowid;
INSERT INTO ClusterStepTraceTime
SELECT step, 'stage',
    '(' || ifnull((SELECT group_concat(rank) FROM (SELECT rank FROM Stages WHERE first = s.first
        ORDER BY rank)), '') || ')', max(computing), max(communication_not_overlapped),
    max(overlapped), max(communication), max(free), max(stage), max(bubble),
    max(communication_not_overlapped_and_exclude_receive), max(preparing),
    CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END,
    CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END,
    CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END
FROM TraceRows t
LEFT JOIN Stages s ON s.rank = t.rank
WHERE (SELECT count(*) FROM Stages)
GROUP BY step, s.first
ORDER BY min(t.rowid);
DROP TABLE IF EXISTS ClusterBaseInfo;
CREATE TABLE ClusterBaseInfo(key TEXT, value TEXT);
INSERT INTO ClusterBaseInfo
SELECT 'distributed_args', json_remove(value, '$.rank')
FROM Arguments
WHERE json_valid(value)
ORDER BY rank
LIMIT 1;
DROP TABLE Layout;
DROP TABLE Stages;
DROP TABLE Arguments;
DROP TABLE TraceRows;

-- name: read_hosts
SELECT ?3, rankId, deviceId, hostUid, hostName
FROM RANK_DEVICE_MAP, (SELECT hostUid, hostName FROM HOST_INFO LIMIT 1)

-- name: make_dirs
CREATE TEMP TABLE Dirs(rank INTEGER PRIMARY KEY, path TEXT)

-- name: add_dir
INSERT INTO Dirs VALUES(?,?)

-- name: write_hosts
DROP TABLE IF EXISTS HostInfo;
DROP TABLE IF EXISTS RankDeviceMap;
CREATE TABLE HostInfo(hostUid TEXT, hostName TEXT);
CREATE TABLE RankDeviceMap(rankId INTEGER, deviceId INTEGER, hostUid TEXT, profilePath TEXT);
INSERT INTO HostInfo
SELECT DISTINCT hostUid, hostName
FROM Hosts
ORDER BY rank;
INSERT INTO RankDeviceMap
SELECT rankId, deviceId, hostUid, path
FROM Hosts
JOIN Dirs USING(rank)
ORDER BY 1, 2;
DROP TABLE Hosts;
DROP TABLE Dirs;

-- name: has_layout
SELECT 1
FROM Layout

-- name: make_stages
CREATE TEMP TABLE Stages(rank INTEGER PRIMARY KEY, first INTEGER)

-- name: read_step_times
SELECT ?3, id, (endNs - startNs) / 1000.0
FROM STEP_TIME
UNION ALL
SELECT ?3, -1, NULL
WHERE NOT EXISTS (SELECT 1 FROM STEP_TIME)

-- name: read_step_traces
SELECT ?3, ifnull(CAST(step AS INTEGER), -1), computing, communication_not_overlapped, overlapped,
    communication, free
FROM StepTraceTime

-- name: read_busy
WITH o AS (SELECT t.startNs AS start, t.endNs AS end, 0 AS type,
    CASE WHEN ?4 THEN a.startNs ELSE t.startNs END AS api
  FROM COMPUTE_TASK_INFO i
  JOIN TASK t ON t.globalTaskId = i.globalTaskId AND t.startNs != t.endNs
  LEFT JOIN CANN_API a ON a.connectionId = t.connectionId
  UNION ALL
  SELECT c.startNs, c.endNs, 1, CASE WHEN ?4 THEN a.startNs ELSE c.startNs END
  FROM COMMUNICATION_OP c
  LEFT JOIN CANN_API a ON a.connectionId = c.connectionId
  UNION ALL
  SELECT startNs, endNs, 4, startNs
  FROM TASK
  WHERE taskType = (SELECT id FROM STRING_IDS WHERE value = 'MEMCPY_ASYNC'))
SELECT ?3, start, end, type, CASE WHEN ?5 THEN s.id ELSE -1 END
FROM o
LEFT JOIN STEP_TIME s ON api BETWEEN s.startNs AND s.endNs
WHERE api BETWEEN ?1 AND ?2

-- name: make_bare_copies
CREATE TEMP TABLE Bare(rank INTEGER, step INTEGER, time REAL)

-- name: find_busy
SELECT rank, start, end, type, step
FROM Busy
WHERE step IS NOT NULL AND start IS NOT NULL AND end IS NOT NULL
ORDER BY rank, step, start, end

-- name: add_bare_copy
INSERT INTO Bare VALUES(?,?,?)

-- name: find_copies
CREATE TEMP TABLE Copies AS
SELECT rank, step, sum(end - start) / 1000.0 AS time
FROM Busy
WHERE type = 4 AND step IS NOT NULL
GROUP BY rank, step;

-- name: write_summary
DROP TABLE IF EXISTS ClusterTimeSummary;
CREATE TABLE ClusterTimeSummary AS
WITH k AS (SELECT rank, step
  FROM StepTimes
  UNION
  SELECT rank, step
  FROM StepTraces
  UNION
  SELECT rank, step
  FROM Waits
  UNION
  SELECT rank, step
  FROM Copies)
SELECT k.rank AS rank, k.step AS step,
    ifnull(ifnull(t.time, c.computing + c.exposed + c.free), 0.0) AS stepTime,
    ifnull(c.computing, 0.0) AS computation,
    ifnull(c.exposed, 0.0) AS communicationNotOverlapComputation,
    ifnull(c.overlapped, 0.0) AS communicationOverlapComputation,
    ifnull(c.communication, 0.0) AS communication,
    ifnull(c.free, 0.0) - CASE WHEN m.time IS NULL THEN 0 ELSE ifnull(b.time, 0) END AS free,
    CASE WHEN (SELECT ranks FROM Traced) > 1 THEN ifnull(w.wait, 0.0) ELSE 0.0
        END AS communicationWaitStageTime,
    CASE WHEN (SELECT ranks FROM Traced) > 1 THEN ifnull(w.transmit, 0.0) ELSE
        0.0 END AS communicationTransmitStageTime, ifnull(m.time, 0.0) AS memory,
    CASE WHEN m.time IS NULL THEN 0.0 ELSE ifnull(b.time, 0.0) END AS
        memoryNotOverlapComputationCommunication
FROM k
LEFT JOIN StepTimes t ON t.rank = k.rank AND t.step = k.step
LEFT JOIN StepTraces c ON c.rank = k.rank AND c.step = k.step
LEFT JOIN Waits w ON w.rank = k.rank AND w.step = k.step
LEFT JOIN Copies m ON m.rank = k.rank AND m.step = k.step
LEFT JOIN Bare b ON b.rank = k.rank AND b.step = k.step
WHERE (SELECT step FROM Rule) IN (-1, k.step)
ORDER BY k.rank, k.step;
DROP TABLE Waits;
DROP TABLE Traced;
DROP TABLE Copies;
DROP TABLE Bare;
DROP TABLE Rule;
DROP TABLE StepTimes;
DROP TABLE StepTraces;
DROP TABLE Busy;

-- name: make_rule
CREATE TEMP TABLE Rule AS
SELECT ?1 AS step

-- name: find_base
SELECT rank, step, stepTime, computation, communicationNotOverlapComputation,
    communicationOverlapComputation, communication, free, communicationWaitStageTime,
    communicationTransmitStageTime, memory, memoryNotOverlapComputationCommunication
FROM ClusterTimeSummary

-- name: add_base
INSERT INTO BaseTimes VALUES(?,?,?,?,?,?,?,?,?,?,?,?)

-- name: make_base
CREATE TEMP TABLE BaseTimes(rank INTEGER, step INTEGER, stepTime REAL, computation REAL,
        communicationNotOverlapComputation REAL, communicationOverlapComputation REAL,
        communication REAL, free REAL, communicationWaitStageTime REAL,
        communicationTransmitStageTime REAL, memory REAL, memoryNotOverlapComputationCommunication
        REAL)

-- name: write_comparison
-- ?1: the step, or -1 for all.
DROP TABLE IF EXISTS ClusterTimeCompareSummary;
CREATE TABLE ClusterTimeCompareSummary AS
SELECT t.rank AS rank, t.step AS step,
    t.stepTime AS stepTime,
    b.stepTime AS stepTimeBase,
    t.stepTime - b.stepTime AS stepTimeDiff,
    t.computation AS computation,
    b.computation AS computationBase,
    t.computation - b.computation AS computationDiff,
    t.communicationNotOverlapComputation AS communicationNotOverlapComputation,
    b.communicationNotOverlapComputation AS communicationNotOverlapComputationBase,
    t.communicationNotOverlapComputation - b.communicationNotOverlapComputation AS communicationNotOverlapComputationDiff,
    t.communicationOverlapComputation AS communicationOverlapComputation,
    b.communicationOverlapComputation AS communicationOverlapComputationBase,
    t.communicationOverlapComputation - b.communicationOverlapComputation AS communicationOverlapComputationDiff,
    t.communication AS communication,
    b.communication AS communicationBase,
    t.communication - b.communication AS communicationDiff,
    t.free AS free,
    b.free AS freeBase,
    t.free - b.free AS freeDiff,
    t.communicationWaitStageTime AS communicationWaitStageTime,
    b.communicationWaitStageTime AS communicationWaitStageTimeBase,
    t.communicationWaitStageTime - b.communicationWaitStageTime AS communicationWaitStageTimeDiff,
    t.communicationTransmitStageTime AS communicationTransmitStageTime,
    b.communicationTransmitStageTime AS communicationTransmitStageTimeBase,
    t.communicationTransmitStageTime - b.communicationTransmitStageTime AS communicationTransmitStageTimeDiff,
    t.memory AS memory,
    b.memory AS memoryBase,
    t.memory - b.memory AS memoryDiff,
    t.memoryNotOverlapComputationCommunication AS memoryNotOverlapComputationCommunication,
    b.memoryNotOverlapComputationCommunication AS memoryNotOverlapComputationCommunicationBase,
    t.memoryNotOverlapComputationCommunication - b.memoryNotOverlapComputationCommunication AS memoryNotOverlapComputationCommunicationDiff
FROM ClusterTimeSummary t
JOIN BaseTimes b ON b.rank = t.rank AND b.step = t.step
WHERE ?1 IN (-1, t.step)
ORDER BY t.rank, t.step;
DROP TABLE BaseTimes;
