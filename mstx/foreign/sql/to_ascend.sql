-- SPDX-License-Identifier: MIT

-- name: create_tables
CREATE TABLE META_DATA(name TEXT, value TEXT);
INSERT INTO META_DATA
VALUES('SCHEMA_VERSION','1.2.0'), ('SCHEMA_VERSION_MAJOR','1'), ('SCHEMA_VERSION_MINOR','2'),
    ('SCHEMA_VERSION_MICRO','0');
CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE SESSION_TIME_INFO(startTimeNs INTEGER, endTimeNs INTEGER);
CREATE TABLE NPU_INFO(id INTEGER, name TEXT);
CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);
CREATE TABLE MSTX_EVENTS(startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER,
    category INTEGER, message INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER,
    connectionId INTEGER);
CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER,
    globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER,
    taskId INTEGER, modelId INTEGER);
CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE ENUM_MSTX_EVENT_TYPE(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_MSTX_EVENT_TYPE
VALUES(0,'marker'), (1,'push/pop'), (2,'start/end'), (3,'marker_ex');
CREATE TABLE ENUM_API_TYPE(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_API_TYPE
VALUES(20000,'acl'), (15000,'model'), (10000,'node'), (5500,'communication'), (5000,'runtime'),
    (50001,'op'), (50002,'queue'), (50003,'trace'), (50004,'mstx');
CREATE TABLE ENUM_HCCL_DATA_TYPE(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_HCCL_DATA_TYPE
VALUES(0,'INT8'), (1,'INT16'), (2,'INT32'), (3,'FP16'), (4,'FP32'), (5,'INT64'), (6,'UINT64'), (7,'UINT8'),
    (8,'UINT16'), (9,'UINT32'), (10,'FP64'), (11,'BFP16'), (12,'INT128'), (14,'HIF8'), (15,'FP8E4M3'),
    (16,'FP8E5M2'), (17,'FP8E8M0'), (255,'RESERVED'), (65534,'N/A'), (65535,'INVALID_TYPE');

-- name: add_event
INSERT INTO MSTX_EVENTS VALUES(?,?,?,?,?,?,?,?,?,?)

-- name: add_string
INSERT INTO STRING_IDS VALUES(?,?)

-- name: add_task
INSERT INTO TASK VALUES(?,?,?,?,?,?,?,?,?,?,?)

-- name: add_host
INSERT INTO HOST_INFO
SELECT ?1, ?2
WHERE NOT EXISTS (SELECT 1 FROM HOST_INFO WHERE hostName = ?2)

-- name: add_rank
INSERT INTO RANK_DEVICE_MAP VALUES(?,?)

-- name: add_session
INSERT INTO SESSION_TIME_INFO VALUES(?,?)

-- name: add_step
INSERT INTO STEP_TIME VALUES(?,?,?)

-- Of run.db: the first id that no text has.
-- name: find_free_id
SELECT ifnull(max(id), 0) + 1
FROM strings
