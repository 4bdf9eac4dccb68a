-- SPDX-License-Identifier: MIT

-- name: read_ops
SELECT ?3, g.value, n.value, o.startNs, o.endNs
FROM COMMUNICATION_OP o
JOIN STRING_IDS g ON g.id = o.groupName
JOIN STRING_IDS n ON n.id = o.opName
LEFT JOIN CANN_API a ON a.connectionId = o.connectionId
WHERE CASE WHEN ?4 THEN a.startNs ELSE o.startNs END BETWEEN ?1 AND ?2 AND o.endNs - o.startNs IS
        NOT NULL

-- name: drop_p2p
DELETE FROM SlowRankOps
WHERE lower(name) LIKE '%send%' OR lower(name) LIKE '%receive%' OR lower(name) LIKE '%recv%'

-- name: drop_p2p_strictly
-- The official tool looks for lower case alone, which HcclSend does not have.
DELETE FROM SlowRankOps
WHERE instr(name, 'send') != 0 OR instr(name, 'receive') != 0

-- name: find_ops
-- A group whose operations were not made by equally many ranks each is left out.
WITH o AS (SELECT * FROM SlowRankOps),
c AS (SELECT grp, count(*) AS n FROM o GROUP BY grp, name),
g AS (SELECT grp FROM c GROUP BY grp HAVING min(n) = max(n))
SELECT grp, name, rank, start, end - start
FROM o
WHERE grp IN (SELECT grp FROM g)
ORDER BY grp, name, 5, rank

-- name: add_stats
INSERT INTO Stats VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)

-- name: add_vote
INSERT INTO Votes VALUES(?)

-- name: make_tables
DROP TABLE IF EXISTS SlowRank;
DROP TABLE IF EXISTS SlowOpStats;
CREATE TEMP TABLE Votes(rank INTEGER);
CREATE TEMP TABLE Stats(a, b, c, d, e, f, g, h, i, j, k, l, m);
CREATE TABLE SlowRank(rankId INTEGER, slowAffectCount INTEGER);
CREATE TABLE SlowOpStats(SlowRank TEXT, OpName TEXT, GroupName TEXT, Timestamp INTEGER, Count
        INTEGER, MeanNs REAL, StdNs REAL, MinNs REAL, Q1Ns REAL, MedianNs REAL, Q3Ns REAL, MaxNs
        REAL, SumNs REAL);

-- name: write_tables
INSERT INTO SlowRank
SELECT rank, count(*)
FROM Votes
GROUP BY rank
ORDER BY rank;
INSERT INTO SlowOpStats
SELECT *
FROM Stats
ORDER BY d, c, b;
DROP TABLE Votes;
DROP TABLE Stats;
DROP TABLE SlowRankOps;
