-- SPDX-License-Identifier: MIT

-- name: make_input
CREATE TEMP TABLE Metadata(rank INTEGER, value TEXT);
CREATE TEMP TABLE TimeTexts(rank INTEGER, step TEXT, kind TEXT, op TEXT, grp TEXT, value TEXT);
CREATE TEMP TABLE LinkTexts(rank INTEGER, step TEXT, kind TEXT, op TEXT, grp TEXT, value TEXT);
CREATE TEMP TABLE TraceRows(rank INTEGER, step TEXT, computing, communication_not_overlapped,
        overlapped, communication, free, stage, bubble,
        communication_not_overlapped_and_exclude_receive, preparing);
CREATE TEMP TABLE Arguments(rank INTEGER, value);

-- name: map_groups
-- Operations of a kind that is neither p2p nor collective count as collective ones.
CREATE TEMP TABLE Sets AS
SELECT kind, grp, group_concat(rank, ', ') || CASE count(*) WHEN 1 THEN ',' ELSE '' END AS ranks,
    json_group_array(rank) AS list
FROM (SELECT DISTINCT kind, grp, rank
  FROM (SELECT kind, grp, rank
    FROM TimeTexts
    UNION
    SELECT kind, grp, rank
    FROM LinkTexts)
  WHERE kind IN ('p2p', 'collective')
  ORDER BY kind, grp, rank)
GROUP BY kind, grp;
CREATE INDEX temp.SetsBy ON Sets(kind, grp);
INSERT INTO Arguments
SELECT rank, json_extract(value, '$.distributed_args')
FROM Metadata
WHERE json_valid(value) AND json_type(value, '$.distributed_args') = 'object';
CREATE TEMP TABLE Infos AS
SELECT double_hash(j.key) AS grp, j.key AS id, min(m.rank),
    ifnull(json_extract(j.value, '$.group_name'), '') AS pg, (SELECT json_group_array(v)
  FROM (SELECT value AS v FROM json_each(j.value, '$.global_ranks') ORDER BY value)) AS list
FROM Metadata m,
    json_each(CASE WHEN json_valid(m.value) AND json_type(m.value, '$.parallel_group_info') =
        'object' THEN m.value ELSE '{"parallel_group_info": {}}' END, '$.parallel_group_info') j
WHERE j.type = 'object'
GROUP BY j.key;
CREATE TEMP TABLE Mapping AS
SELECT s.kind AS type,
    CASE WHEN ifnull(i.list, '[]') != '[]' THEN i.list ELSE s.list END AS rank_set,
    s.grp AS group_name, ifnull(i.id, '') AS group_id, ifnull(i.pg, '') AS pg_name
FROM Sets s
LEFT JOIN Infos i ON i.grp = s.grp
ORDER BY s.kind, s.grp;
DROP TABLE IF EXISTS CommunicationGroupMapping;
CREATE TABLE CommunicationGroupMapping AS
SELECT type, '(' || trim(rank_set, '[]') || ')' AS rank_set, group_name, group_id, pg_name
FROM Mapping;

-- name: find_groups
SELECT json_object('collective', json((SELECT json_group_array(json(list)) FROM Sets WHERE kind =
        'collective')), 'p2p', json((SELECT json_group_array(json(list)) FROM Sets WHERE kind =
        'p2p')), 'comm_group_parallel_info', json((SELECT json_group_array(json_object('type',
        type, 'rank_set', json(rank_set), 'group_name', group_name, 'group_id', group_id,
        'pg_name', pg_name)) FROM Mapping)))

-- name: sum_times
CREATE TEMP TABLE Timed AS
SELECT '(' || ifnull((SELECT ranks FROM Sets s WHERE s.kind = CASE t.kind WHEN 'p2p' THEN 'p2p'
        ELSE 'collective' END AND s.grp = t.grp), '') || ')' AS ranks, step, op, grp, rank,
    CASE WHEN json_valid(value) THEN value END AS value
FROM TimeTexts t;
CREATE TEMP TABLE TimeSums AS
WITH p AS (SELECT ranks, step, grp, rank, j.key AS name, total(j.value) AS sum, min(t.rowid * 1000
        + j.id) AS at
  FROM Timed t, json_each(t.value, '$."Communication Time Info"') j
  WHERE j.key NOT IN ('Wait Time Ratio', 'Synchronization Time Ratio', 'Start Timestamp(us)')
  GROUP BY 1, 2, 3, 4, 5)
SELECT ranks, step, grp, rank,
    '{' || group_concat(json_quote(name) || ': ' || json_number(sum), ', ') ||
        ', "Wait Time Ratio": ' || json_ratio(total(sum) FILTER (WHERE name = 'Wait Time(ms)'),
        total(sum) FILTER (WHERE name IN ('Wait Time(ms)', 'Transit Time(ms)'))) ||
        ', "Synchronization Time Ratio": ' || json_ratio(total(sum) FILTER (WHERE name =
        'Synchronization Time(ms)'), total(sum) FILTER (WHERE name IN ('Synchronization Time(ms)',
        'Transit Time(ms)'))) || '}' AS value
FROM (SELECT * FROM p ORDER BY ranks, step, grp, rank, at)
GROUP BY 1, 2, 3, 4;
CREATE TEMP TABLE Bands AS
SELECT t.ranks, t.step, t.grp, t.rank, j.key AS type, j.value AS value, t.rowid AS at
FROM Timed t, json_each(t.value, '$."Communication Bandwidth Info"') j
WHERE j.type = 'object';
CREATE TEMP TABLE Packages AS
SELECT ranks, step, grp, rank, type,
    '{' || group_concat(json_quote(size) || ': [' || json_number(n) || ', ' || json_number(time)
        || ']', ', ') || '}' AS value
FROM (SELECT ranks, step, grp, rank, b.type AS type, j.key AS size, total(json_extract(j.value,
        '$[0]')) AS n, total(json_extract(j.value, '$[1]')) AS time
  FROM Bands b, json_each(b.value, '$."Size Distribution"') j
  WHERE j.type = 'array'
  GROUP BY 1, 2, 3, 4, 5, 6)
GROUP BY 1, 2, 3, 4, 5;
CREATE INDEX temp.PackagesBy ON Packages(ranks, step, grp, rank, type);
CREATE TEMP TABLE BandTexts AS
WITH b AS (SELECT ranks, step, grp, rank, type, min(at) AS at, total(json_extract(value,
        '$."Transit Time(ms)"')) AS time, total(json_extract(value, '$."Transit Size(MB)"')) AS
        size
  FROM Bands
  GROUP BY 1, 2, 3, 4, 5)
SELECT ranks, step, grp, rank,
    '{' || group_concat(json_quote(type) || ': {"Transit Time(ms)": ' || json_number(time) ||
        ', "Transit Size(MB)": ' || json_number(size) || ', "Size Distribution": ' ||
        ifnull((SELECT value FROM Packages p WHERE p.ranks = b.ranks AND p.step = b.step AND p.grp
        = b.grp AND p.rank = b.rank AND p.type = b.type), '{}') || ', "Bandwidth(GB/s)": ' ||
        json_ratio(size, time) || '}', ', ') || '}' AS value
FROM b
GROUP BY 1, 2, 3, 4;
CREATE INDEX temp.BandTextsBy ON BandTexts(ranks, step, grp, rank);

-- name: find_times
SELECT ranks, step, op, rank, value
FROM (SELECT ranks, step, op, rank, value, 0 AS last, rowid AS at
  FROM Timed
  WHERE value IS NOT NULL
  UNION ALL
  SELECT ranks, step, 'Total Op Info@' || grp, rank,
      '{"Communication Time Info": ' || value || ', "Communication Bandwidth Info": ' ||
          ifnull((SELECT value FROM BandTexts b WHERE b.ranks = t.ranks AND b.step = t.step AND
          b.grp = t.grp AND b.rank = t.rank), '{}') || '}', 1, rowid
  FROM TimeSums t)
ORDER BY ranks, step, last, op, rank

-- name: sum_links
CREATE TEMP TABLE Linked AS
SELECT '(' || ifnull((SELECT ranks FROM Sets s WHERE s.kind = CASE t.kind WHEN 'p2p' THEN 'p2p'
        ELSE 'collective' END AND s.grp = t.grp), '') || ')' AS ranks, t.step, t.op, t.grp,
    t.rank, substr(j.key, 1, instr(j.key, '-') - 1) AS src,
    substr(j.key, instr(j.key, '-') + 1) AS dst, j.value AS value, t.rowid * 1000 + j.id AS at
FROM LinkTexts t, json_each(CASE WHEN json_valid(t.value) THEN t.value ELSE '{}' END) j
WHERE instr(j.key, '-') > 0 AND j.type = 'object';
CREATE TEMP TABLE Places AS
SELECT ranks, step, grp, src AS place, rank, min(at)
FROM Linked
WHERE src = dst
GROUP BY 1, 2, 3, 4;
CREATE INDEX temp.PlacesBy ON Places(ranks, step, grp, place);
CREATE TEMP TABLE Links AS
SELECT l.ranks, l.step, l.op, l.grp, s.rank || '-' || d.rank AS link,
    json_extract(l.value, '$."Transport Type"') AS transport,
    ifnull(json_extract(l.value, '$."Op Name"'), '') AS name, max(at) AS at,
    total(json_extract(l.value, '$."Transit Time(ms)"')) AS time,
    total(json_extract(l.value, '$."Transit Size(MB)"')) AS size
FROM Linked l
JOIN Places s ON s.ranks = l.ranks AND s.step = l.step AND s.grp = l.grp AND s.place = l.src
JOIN Places d ON d.ranks = l.ranks AND d.step = l.step AND d.grp = l.grp AND d.place = l.dst
GROUP BY l.ranks, l.step, l.op, l.grp, link;
INSERT INTO Links
SELECT ranks, step, 'Total Op Info@' || grp, NULL, link, transport, name, max(at), total(time),
    total(size)
FROM Links
WHERE instr(op, 'middle') = 0 AND instr(op, 'top') = 0 AND instr(op, 'bottom') = 0
GROUP BY ranks, step, grp, link;

-- name: find_links
SELECT ranks, step, op, link,
    '{"Transport Type": ' || json_quote(transport) || ', "Transit Time(ms)": ' ||
        json_number(time) || ', "Transit Size(MB)": ' || json_number(size) || ', "Op Name": ' ||
        json_quote(name) || ', "Bandwidth(GB/s)": ' || json_ratio(size, time) || '}'
FROM Links
ORDER BY ranks, step, grp IS NULL, op, link

-- name: make_step_rows
CREATE TEMP TABLE StepRows AS
SELECT step AS Step, type AS Type, replace("index", ',', ', ') AS "Index",
    CAST(computing AS REAL) AS Computing,
    CAST(communication_not_overlapped AS REAL) AS "Communication(Not Overlapped)",
    CAST(overlapped AS REAL) AS Overlapped, CAST(communication AS REAL) AS Communication,
    CAST(free AS REAL) AS Free, CAST(stage AS REAL) AS Stage, CAST(bubble AS REAL) AS Bubble,
    CAST(communication_not_overlapped_and_exclude_receive AS REAL) AS
        "Communication(Not Overlapped and Exclude Receive)", CAST(preparing AS REAL) AS Preparing,
    dp_index AS "DP Index", pp_index AS "PP Index", tp_index AS "TP Index"
FROM ClusterStepTraceTime
ORDER BY rowid;

-- name: drop_layout
ALTER TABLE temp.StepRows DROP COLUMN "DP Index";
ALTER TABLE temp.StepRows DROP COLUMN "PP Index";
ALTER TABLE temp.StepRows DROP COLUMN "TP Index";
