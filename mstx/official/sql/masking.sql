-- SPDX-License-Identifier: MIT

-- name: read_steps
SELECT ?3, id, startNs, endNs
FROM STEP_TIME

-- name: read_comm
SELECT ?3, o.startNs, o.endNs, d.kind
FROM COMMUNICATION_OP o
LEFT JOIN STRING_IDS g ON g.id = o.groupName
JOIN (SELECT j.key AS name, json_extract(j.value, '$.group_name') AS kind
  FROM META_DATA m, json_each(CASE WHEN json_valid(m.value) THEN m.value ELSE '{}' END) j
  WHERE m.name = 'parallel_group_info' AND j.type = 'object') d ON d.name = g.value
WHERE o.startNs >= ?1 AND o.endNs <= ?2

-- name: read_kernels
SELECT ?3, t.startNs, t.endNs
FROM COMPUTE_TASK_INFO c
JOIN TASK t ON t.globalTaskId = c.globalTaskId
WHERE t.startNs >= ?1 AND t.endNs <= ?2

-- name: find_comm
-- ?2: kinds of groups, separated by commas; operations of a group without a kind belong to every list.
SELECT start, end
FROM MaskComm
WHERE rank = ?1 AND (kind = '' OR (typeof(kind) = 'text' AND instr(kind, ',') = 0
    AND instr(',' || ?2 || ',', ',' || kind || ',') > 0))
ORDER BY start

-- name: find_kernels
SELECT start, end
FROM MaskKernels
WHERE rank = ?1
ORDER BY start

-- name: make_table
DROP TABLE IF EXISTS ComputationalOperatorMaskingLinearity;
CREATE TABLE ComputationalOperatorMaskingLinearity(stepId INTEGER, parallelType TEXT,
        stepStartTime INTEGER, stepEndTime INTEGER, totalCommunicationOperatorTime INTEGER,
        timeRatioOfStepCommunicationOperator REAL, totalTimeWithoutCommunicationBlackout INTEGER,
        ratioOfUnmaskedCommunication REAL);
CREATE INDEX temp.MaskCommBy ON MaskComm(rank, kind);
CREATE INDEX temp.MaskKernelsBy ON MaskKernels(rank, start);
CREATE INDEX temp.MaskStepsBy ON MaskSteps(rank);

-- name: find_steps
SELECT id, start, end
FROM MaskSteps
WHERE rank = ?1 AND ?2 IN (-1, id)
ORDER BY rowid

-- name: add_step
INSERT INTO ComputationalOperatorMaskingLinearity VALUES(?1, ltrim(replace(?2, ',', '+'), '+'), ?3, ?4, ?5, ?6, ?7, ?8)

-- name: drop_rows
DROP TABLE MaskSteps;
DROP TABLE MaskComm;
DROP TABLE MaskKernels
