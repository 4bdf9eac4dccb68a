-- SPDX-License-Identifier: MIT

-- name: create_raw_tables
CREATE TABLE Raw(step TEXT, op TEXT, grp TEXT, text TEXT);
CREATE TABLE META_DATA(name TEXT, value TEXT);

-- communication.json identifies groups by the hash of their name; the metadata maps the hash to the name.
-- name: make_tables
CREATE TABLE Named AS
SELECT double_hash(j.key) AS hash, j.key AS name
FROM META_DATA m, json_each(m.value) j
WHERE j.type = 'object';
CREATE TABLE Ops AS
SELECT step, CASE WHEN op = grp THEN op ELSE substr(op, 1, length(op) - length(grp) - 1) END AS name,
    ifnull((SELECT n.name FROM Named n WHERE n.hash = grp), grp) AS grp,
    CAST(round(json_extract(text, '$."Communication Time Info"."Start Timestamp(us)"') * 1000) AS INTEGER)
        AS start,
    CAST(round(json_extract(text, '$."Communication Time Info"."Elapse Time(ms)"') * 1000000) AS INTEGER)
        AS dur
FROM Raw
WHERE json_valid(text);
CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO STRING_IDS(value)
SELECT name FROM Ops UNION SELECT grp FROM Ops;
CREATE INDEX StringsByText ON STRING_IDS(value);
CREATE TABLE COMMUNICATION_OP AS
SELECT n.id AS opName, o.start AS startNs, o.start + o.dur AS endNs, NULL AS connectionId,
    g.id AS groupName, o.rowid AS opId, NULL AS dataType, 0 AS count, NULL AS opType
FROM Ops o
JOIN STRING_IDS n ON n.value = o.name
JOIN STRING_IDS g ON g.value = o.grp
WHERE o.start > 0 AND o.dur >= 0;
CREATE TABLE STEP_TIME AS
WITH s AS (SELECT ltrim(lower(step), 'step') AS number, min(start) AS first, max(start + dur) AS last
    FROM Ops
    WHERE start > 0 AND dur >= 0
    GROUP BY step)
SELECT CAST(number AS INTEGER) AS id, ifnull(lag(last) OVER (ORDER BY first), first) AS startNs,
    last AS endNs
FROM s
WHERE number GLOB '[0-9]*'
ORDER BY first;
DROP TABLE Raw;
DROP TABLE Ops;
DROP TABLE Named;

-- name: add_operation
INSERT INTO Raw VALUES(?,?,?,?)

-- name: add_groups
INSERT INTO META_DATA
SELECT 'parallel_group_info', v
FROM (SELECT CASE WHEN json_valid(?1) THEN json_extract(?1, '$.parallel_group_info') END AS v)
WHERE json_valid(v)
