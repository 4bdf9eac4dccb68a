-- SPDX-License-Identifier: MIT

-- name: read_analysed_groups
SELECT DISTINCT ?3, hccl_op_name, CAST(group_name AS TEXT)
FROM CommAnalyzerTime

-- name: read_traced_groups
-- map_groups asks of a name only whether it is that of a transfer.
SELECT DISTINCT g.value, CASE WHEN lower(n.value) LIKE '%send%' OR lower(n.value) LIKE '%receive%'
        OR lower(n.value) LIKE '%recv%' THEN 'send' ELSE '' END, NULL, NULL, NULL
FROM COMMUNICATION_OP o
JOIN STRING_IDS n ON n.id = o.opName
JOIN STRING_IDS g ON g.id = o.groupName

-- name: add_traced_group
INSERT INTO TracedGroupOps VALUES(?,?,double_hash(?))

-- name: read_named_groups
SELECT ?3, double_hash(j.key), j.key, ifnull(json_extract(j.value, '$.group_name'), ''),
    (SELECT '(' || ifnull(group_concat(v), '') || ')'
  FROM (SELECT value AS v FROM json_each(j.value, '$.global_ranks') ORDER BY value)),
          json_extract(j.value, '$.global_ranks')
FROM META_DATA m, json_each(CASE WHEN json_valid(m.value) THEN m.value ELSE '{}' END) j
WHERE m.name = 'parallel_group_info' AND j.type = 'object'

-- name: map_groups
DROP TABLE IF EXISTS CommunicationGroupMapping;
INSERT INTO GroupOps
SELECT *
FROM TracedGroupOps
WHERE rank NOT IN (SELECT rank FROM GroupOps);
CREATE TABLE CommunicationGroupMapping AS
WITH o AS (SELECT DISTINCT rank, grp, CASE WHEN lower(op) LIKE '%send%' OR lower(op) LIKE
        '%receive%' OR lower(op) LIKE '%recv%' THEN 'p2p' ELSE 'collective' END AS type
  FROM GroupOps
  WHERE grp IS NOT NULL),
g AS (SELECT type, grp, '(' || group_concat(rank) || ')' AS ranks
  FROM (SELECT * FROM o ORDER BY type, grp, rank)
  GROUP BY type, grp),
i AS (SELECT DISTINCT grp, id, pg, ranks FROM GroupInfo)
SELECT g.type AS type,
    CASE WHEN i.ranks IS NOT NULL AND i.ranks != '()' THEN i.ranks ELSE g.ranks END AS rank_set,
    g.grp AS group_name, ifnull(i.id, '') AS group_id, ifnull(i.pg, '') AS pg_name
FROM g
LEFT JOIN i ON i.grp = g.grp
ORDER BY g.type, g.grp;
DROP TABLE GroupOps;
DROP TABLE TracedGroupOps;
DROP TABLE GroupInfo;

-- name: read_times
-- A database without a column for the step has one step, called "step": where the inner table has no such
-- name, the outer one is found.
SELECT ?3, hccl_op_name, CAST(group_name AS TEXT), start_timestamp, elapse_time, transit_time,
    wait_time, synchronization_time, idle_time,
    (SELECT step FROM CommAnalyzerTime i WHERE i.rowid = t.rowid)
FROM CommAnalyzerTime t, (SELECT 'step' AS step) missing

-- name: read_bands
SELECT ?3, hccl_op_name, CAST(group_name AS TEXT), transport_type, transit_size, transit_time,
    bandwidth, large_packet_ratio, package_size, count, total_duration,
    (SELECT step FROM CommAnalyzerBandwidth i WHERE i.rowid = t.rowid)
FROM CommAnalyzerBandwidth t, (SELECT 'step' AS step) missing

-- name: sum_times
DROP TABLE IF EXISTS ClusterCommunicationTime;
DROP TABLE IF EXISTS ClusterCommunicationBandwidth;
CREATE TABLE ClusterCommunicationTime(step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name
        TEXT, start_timestamp NUMERIC, elapsed_time NUMERIC, transit_time NUMERIC, wait_time
        NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, synchronization_time_ratio
        NUMERIC, wait_time_ratio NUMERIC);
INSERT INTO ClusterCommunicationTime
SELECT step, rank, op, grp, start, elapsed, transit, wait, sync, idle, 0, 0
FROM TimeOps
ORDER BY rowid;
INSERT INTO ClusterCommunicationTime
SELECT step, rank, 'Total Op Info', grp, 0, total(elapsed), total(transit), total(wait),
    total(sync), total(idle),
    ifnull(round_even(total(sync) / (total(transit) + total(sync)), 4), 0),
    ifnull(round_even(total(wait) / (total(transit) + total(wait)), 4), 0)
FROM TimeOps
GROUP BY step, rank, grp
ORDER BY step, rank, grp;

-- name: sum_bands
-- Rows of an operation differ in the size of packages; its transfer counts once.
CREATE TABLE ClusterCommunicationBandwidth(step TEXT, rank_id INTEGER, hccl_op_name TEXT,
        group_name TEXT, band_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth
        NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, total_duration
        NUMERIC);
INSERT INTO ClusterCommunicationBandwidth
SELECT step, rank, op, grp, type, size, time, bandwidth, large, package, n, total
FROM BandOps
ORDER BY rowid;
CREATE TEMP TABLE BandSums AS
WITH once AS (SELECT grp, step, rank, type, size, time, min(rowid)
  FROM BandOps
  GROUP BY grp, step, rank, type, op)
SELECT grp, step, rank, type, total(size) AS size, total(time) AS time
FROM once
GROUP BY grp, step, rank, type;
CREATE INDEX temp.BandSumsBy ON BandSums(grp, step, rank, type);
INSERT INTO ClusterCommunicationBandwidth
SELECT b.step, b.rank, 'Total Op Info', b.grp, b.type, s.size, s.time,
    ifnull(round_even(s.size / s.time, 4), 0), 0, b.package, sum(b.n), sum(b.total)
FROM BandOps b
JOIN BandSums s ON s.grp IS b.grp AND s.step IS b.step AND s.rank = b.rank AND s.type IS b.type
GROUP BY b.grp, b.step, b.rank, b.type, b.package
ORDER BY b.grp, b.step, b.rank, b.type, b.package;
DROP TABLE BandSums;
DROP TABLE BandOps;
DROP TABLE TimeOps;

-- name: read_links
SELECT ?3, hccl_op_name, CAST(group_name AS TEXT), src_rank, dst_rank, transport_type,
    transit_size, transit_time, type, op_name,
    (SELECT step FROM CommAnalyzerMatrix i WHERE i.rowid = t.rowid)
FROM CommAnalyzerMatrix t, (SELECT 'step' AS step) missing

-- name: sum_links
-- A size divided by no time is infinite, as NumPy has it: 9e999.
CREATE TEMP TABLE Places(grp TEXT, place TEXT, rank INTEGER, PRIMARY KEY(grp, place));
INSERT OR REPLACE INTO Places
SELECT i.grp, row_number() OVER (PARTITION BY i.rank, i.grp ORDER BY j.value) - 1, j.value
FROM GroupInfo i, json_each(i.list) j
ORDER BY i.rank;
INSERT OR IGNORE INTO Places
SELECT grp, src, rank
FROM LinkRows
WHERE src = dst
ORDER BY rowid;
CREATE TEMP TABLE Links AS
SELECT min(l.rowid) AS at, l.step, l.op, l.grp, s.rank AS src, d.rank AS dst, l.transport,
    l.op_name, total(l.size) AS size, total(l.time) AS time
FROM LinkRows l
JOIN Places s ON s.grp = l.grp AND s.place = l.src
JOIN Places d ON d.grp = l.grp AND d.place = l.dst
GROUP BY l.type = 'p2p', l.step, l.op, l.grp, l.src, l.dst
ORDER BY at;
DROP TABLE IF EXISTS ClusterCommunicationMatrix;
CREATE TABLE ClusterCommunicationMatrix(step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank
        REAL, dst_rank REAL, transport_type TEXT, op_name TEXT, transit_size REAL, transit_time
        REAL, bandwidth REAL);
INSERT INTO ClusterCommunicationMatrix
SELECT step, op, grp, src, dst, transport, op_name, size, time,
    CASE WHEN time != 0 THEN size / time ELSE 0 END
FROM Links
ORDER BY at;
INSERT INTO ClusterCommunicationMatrix
SELECT step, 'Total Op Info', grp, src, dst, transport, op_name, size, time,
    CASE WHEN time != 0 THEN size / time WHEN size > 0 THEN 9e999 END
FROM (SELECT min(at) AS at, step, grp, src, dst, transport, op_name, total(size) AS size,
        total(time) AS time
  FROM Links
  WHERE instr(op, 'total') != 0
  GROUP BY grp, step, src, dst)
ORDER BY at;
DROP TABLE Links;
DROP TABLE Places;
DROP TABLE LinkRows;
DROP TABLE GroupInfo;
