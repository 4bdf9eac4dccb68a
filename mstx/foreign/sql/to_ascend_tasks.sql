-- SPDX-License-Identifier: MIT

-- name: create_tables
CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
    connectionId INTEGER PRIMARY KEY, name INTEGER);
CREATE TABLE PYTORCH_API(startNs INTEGER, endNs INTEGER, globalTid INTEGER, connectionId INTEGER,
    name INTEGER, sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER,
    inputShapes INTEGER, callchainId INTEGER, type INTEGER);
CREATE TABLE CONNECTION_IDS(id INTEGER, connectionId INTEGER);
CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER,
    mixBlockDim INTEGER, taskType INTEGER, opType INTEGER, inputFormats INTEGER,
    inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, outputDataTypes INTEGER,
    outputShapes INTEGER, attrInfo INTEGER);

-- A call that has the number of an earlier call, in which it is nested, gets a number of its own.
-- name: add_api
INSERT INTO CANN_API
VALUES(?1, ?2, ?3, ?4, CASE WHEN ?5 = 0 OR EXISTS (SELECT 1 FROM CANN_API WHERE connectionId = ?5)
    THEN ?6 ELSE ?5 END, ?7)

-- name: add_op
INSERT INTO PYTORCH_API VALUES(?,?,?,?,?,NULL,NULL,?,?,NULL,?)

-- name: add_connection
INSERT INTO CONNECTION_IDS VALUES(?,?)

-- name: add_task
INSERT INTO TASK VALUES(?,?,?,?,?,?,?,NULL,?,?,NULL)

-- name: add_info
INSERT INTO COMPUTE_TASK_INFO VALUES(?,?,NULL,NULL,?,?,?,?,?,?,?,?,NULL)

-- A kernel of communication, unless the trace describes it as a call.
-- name: add_kernel_call
INSERT INTO COMMUNICATION_OP
SELECT ?1, ?2, ?3, ?4, ?5, NULL, NULL, NULL, 65534, NULL, 0, ?6, ?7, NULL
WHERE NOT EXISTS (SELECT 1 FROM COMMUNICATION_OP WHERE startNs = ?2 AND endNs = ?3)

-- name: prepare_calls
CREATE INDEX CallsByStart ON COMMUNICATION_OP(startNs)

-- Calls get the number and the device of their kernel.
-- name: connect_calls
CREATE INDEX TasksByStart ON TASK(startNs, endNs);
UPDATE COMMUNICATION_OP
SET connectionId = t.connectionId, deviceId = t.deviceId
FROM TASK t
WHERE t.startNs = COMMUNICATION_OP.startNs AND t.endNs = COMMUNICATION_OP.endNs;
DROP INDEX TasksByStart;
DROP INDEX CallsByStart

-- Of run.db: from an operator to its backward pass.
-- name: find_backward
SELECT from_track, from_ns, to_track, to_ns
FROM flows
WHERE name = 'fwdbwd'
