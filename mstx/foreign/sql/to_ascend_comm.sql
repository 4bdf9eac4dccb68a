-- SPDX-License-Identifier: MIT

-- name: create_table
CREATE TABLE IF NOT EXISTS COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER,
    groupName INTEGER, opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER,
    algType INTEGER, count NUMERIC, opType INTEGER, deviceId INTEGER, rankSize INTEGER)

-- The groups with the rank ?1, or all where ?1 = ?2.
-- name: list_groups
SELECT json_group_object(name, json_object('group_name', name, 'global_ranks', json('[' || ranks || ']')))
FROM (SELECT ranks, CASE WHEN ifnull(name, '') = '' THEN 'communicator ' || id
        WHEN count(*) OVER (PARTITION BY name) > 1 THEN name || ' ' || id ELSE name END AS name
    FROM comm_groups)
WHERE ifnull(ranks, '') <> '' AND (?1 = ?2 OR instr(',' || ranks || ',', ',' || ?1 || ',') != 0)
    AND json_valid('[' || ranks || ']')

-- name: add_groups
INSERT INTO META_DATA VALUES('parallel_group_info', ?)

-- Of run.db: collectives and transfers of the processes ?1 to ?2 in order of start.
-- name: read_calls
SELECT process, tid, start_ns, end_ns, op, type, count, peer, stream, comm_group, name, lib, flags
FROM comm_ops
WHERE class < 2 AND process BETWEEN ?1 AND ?2
ORDER BY start_ns

-- name: add_call
INSERT INTO COMMUNICATION_OP VALUES(?,?,?,?,?,?,NULL,NULL,?,NULL,?,?,0,?)

-- name: take_device_times
UPDATE COMMUNICATION_OP
SET startNs = t.startNs, endNs = t.endNs, deviceId = t.deviceId
FROM TASK t
WHERE t.connectionId = COMMUNICATION_OP.connectionId
