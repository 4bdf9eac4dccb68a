-- SPDX-License-Identifier: MIT

-- name: read_comm_marks
-- ?1 and ?2: the first and the last nanosecond that count.
CREATE TEMP TABLE CommMarks AS
WITH m AS (SELECT e.rowid AS at, e.startNs AS start, e.connectionId AS connection,
        replace(s.value, char(92) || '"', '"') AS v
  FROM MSTX_EVENTS e
  JOIN STRING_IDS s ON s.id = e.message
  WHERE e.startNs BETWEEN ?1 AND ?2)
SELECT at, start, connection, json_extract(v, '$.opName') || '_' AS type,
    json_extract(v, '$.groupName') AS grp, lower(json_extract(v, '$.dataType')) AS data,
    json_extract(v, '$.count') AS n, CAST(json_extract(v, '$.streamId') AS INTEGER) AS stream
FROM m
WHERE json_valid(v) AND v LIKE '%"streamId":%' AND v LIKE '%"count":%'
    AND v LIKE '%"dataType":%' AND v LIKE '%"groupName":%' AND v LIKE '%"opName":%';
INSERT INTO CommMarks
WITH m AS (SELECT e.rowid AS at, e.startNs AS start, e.connectionId AS connection, '["' ||
        replace(replace(s.value, '"', ''), ',', '","') || '"]' AS v
  FROM MSTX_EVENTS e
  JOIN STRING_IDS s ON s.id = e.message
  WHERE s.value LIKE 'comm:Hccl%' AND e.startNs BETWEEN ?1 AND ?2)
SELECT at, start, connection, 'hcom_' || substr(json_extract(v, '$[0]'), 10) || '_',
    json_extract(v, '$[1]'), lower(json_extract(v, '$[2]')), json_extract(v, '$[3]'), NULL
FROM m
WHERE json_valid(v) AND json_array_length(v) = 4;

-- name: join_by_connection
-- A mark without a connection takes the next task of its stream.
CREATE TEMP TABLE CommRows AS
SELECT m.at, t.rowid AS task, t.startNs AS start, t.endNs AS end, t.connectionId AS connection,
    type, grp, data, n
FROM CommMarks m
JOIN TASK t ON t.connectionId = m.connection;
INSERT INTO CommRows
SELECT m.at, t.rowid, t.startNs, t.endNs, t.connectionId, type, grp, data, n
FROM CommMarks m
JOIN TASK t ON t.rowid = (SELECT rowid
  FROM TASK i
  WHERE i.streamId = m.stream AND i.startNs >= m.start
  ORDER BY i.startNs
  LIMIT 1)
WHERE m.at NOT IN (SELECT at FROM CommRows);

-- name: join_by_connection_or_stream
CREATE TEMP TABLE CommRows AS
SELECT m.at, t.rowid AS task, t.startNs AS start, t.endNs AS end, t.connectionId AS connection,
    type, grp, data, n
FROM CommMarks m
JOIN TASK t ON t.connectionId = m.connection OR t.streamId = m.stream;

-- name: write_comm_ops
CREATE TEMP TABLE CommOps AS
SELECT row_number() OVER (ORDER BY start, at, task) - 1 AS op, start, end, connection, grp,
    ifnull((SELECT id FROM ENUM_HCCL_DATA_TYPE e WHERE lower(e.name) = data), 65534) AS data, n,
    type,
    type || '_' || substr(double_hash(grp), -3) || '_' || (row_number() OVER (PARTITION BY grp,
        type ORDER BY at, task) - 1) || '_1' AS name
FROM CommRows
WHERE grp IS NOT NULL AND type IS NOT NULL;
INSERT INTO main.STRING_IDS(id, value)
SELECT (SELECT ifnull(max(id), 0) FROM main.STRING_IDS) + row_number() OVER (ORDER BY value),
    value
FROM (SELECT type AS value
  FROM CommOps
  UNION
  SELECT name
  FROM CommOps
  UNION
  SELECT grp
  FROM CommOps)
WHERE value NOT IN (SELECT value FROM main.STRING_IDS WHERE value IS NOT NULL);
CREATE TEMP TABLE Texts(value PRIMARY KEY, id INTEGER);
INSERT OR IGNORE INTO Texts
SELECT value, id
FROM main.STRING_IDS;
CREATE TABLE main.COMMUNICATION_OP(opId INTEGER, opName INTEGER, startNs INTEGER, endNs INTEGER,
        connectionId INTEGER, groupName INTEGER, relay INTEGER, retry INTEGER, dataType INTEGER,
        algType INTEGER, count NUMERIC, opType INTEGER);
INSERT INTO main.COMMUNICATION_OP
SELECT op, o.id, start, end, connection, g.id, NULL, NULL, data, NULL, n, t.id
FROM CommOps c
JOIN Texts o ON o.value = c.name
JOIN Texts g ON g.value = c.grp
JOIN Texts t ON t.value = c.type
ORDER BY op;
DROP TABLE Texts;
DROP TABLE CommOps;
DROP TABLE CommRows;
DROP TABLE CommMarks;
DROP TABLE IF EXISTS temp.COMMUNICATION_OP;

-- name: count_comm_marks
SELECT count(*)
FROM CommMarks

-- name: drop_comm_marks
DROP TABLE CommMarks

-- name: find_pairs
-- Names a pair GROUP_SENDER_RECEIVER_NUMBER by places in the group.  The tasks of an operation tell both
-- ends; an operation whose tasks disagree has no pair.
CREATE TEMP TABLE Pairs AS
WITH c AS (SELECT o.opName AS id, n.value AS name, o.startNs AS start, i.srcRank AS src, i.dstRank
        AS dst, i.rowid AS at
  FROM COMMUNICATION_TASK_INFO i
  JOIN COMMUNICATION_OP o ON o.opId = i.opId
  JOIN STRING_IDS n ON n.id = o.opName
  JOIN STRING_IDS t ON t.id = i.taskType
  JOIN STRING_IDS og ON og.id = o.groupName
  JOIN STRING_IDS ig ON ig.id = i.groupName
  LEFT JOIN CANN_API a ON a.connectionId = o.connectionId
  WHERE og.value = ig.value AND t.value IN ('Notify_Record', 'Notify_Wait')
      AND p2p_domain(n.value) IS NOT NULL
      AND (a.connectionId IS NOT NULL OR NOT EXISTS (SELECT 1 FROM CANN_API))),
u AS (SELECT name
  FROM c
  GROUP BY name
  HAVING count(DISTINCT src) = 1 AND count(DISTINCT dst) = 1),
f AS (SELECT id, name, start, min(at) AS at, CAST(src AS INTEGER) AS src, CAST(dst AS INTEGER) AS
        dst
  FROM c
  WHERE name IN (SELECT name FROM u)
  GROUP BY name, id),
e AS (SELECT id, name, start, at, CASE WHEN substr(name, 6, 1) IN ('r', 'R') THEN dst ELSE src END
        AS sender, CASE WHEN substr(name, 6, 1) IN ('r', 'R') THEN src ELSE dst END AS receiver
  FROM f)
SELECT id,
    p2p_domain(name) || '_' || sender || '_' || receiver || '_' || (row_number() OVER (PARTITION
        BY sender, receiver ORDER BY start, at) - 1) AS pair
FROM e;
CREATE INDEX temp.PairsById ON Pairs(id);

-- name: find_pair_column
SELECT 1
FROM pragma_table_info('COMMUNICATION_OP')
WHERE name = 'opConnectionId'

-- name: add_pair_column
ALTER TABLE main.COMMUNICATION_OP ADD COLUMN opConnectionId TEXT

-- name: write_pairs
UPDATE main.COMMUNICATION_OP
SET opConnectionId = (SELECT pair FROM Pairs p WHERE p.id = opName);
DROP TABLE Pairs

-- name: write_passes
-- What a mark of the forward or the backward pass did on the device.
DROP TABLE IF EXISTS main.StepTaskInfo;
CREATE TABLE main.StepTaskInfo AS
SELECT CASE WHEN lower(m.value) LIKE '%forward%' THEN 'FP' ELSE 'BP' END AS name,
    t.startNs AS startNs, t.endNs AS endNs,
    CASE WHEN lower(m.value) LIKE '%forward%' THEN 0 ELSE 1 END AS type
FROM MSTX_EVENTS e
JOIN TASK t ON t.connectionId = e.connectionId
JOIN STRING_IDS m ON m.id = e.message
WHERE m.value LIKE '%forward%' OR m.value LIKE '%backward%'
    OR m.value LIKE '%WeightGradStore_pop%'
ORDER BY t.startNs
