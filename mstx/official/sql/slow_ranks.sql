-- SPDX-License-Identifier: MIT

-- name: read_ops
SELECT g.value, n.value, NULL, o.startNs, o.endNs - o.startNs
FROM COMMUNICATION_OP o
JOIN STRING_IDS g ON g.id = o.groupName
JOIN STRING_IDS n ON n.id = o.opName
LEFT JOIN CANN_API a ON a.connectionId = o.connectionId
WHERE CASE WHEN ?4 THEN a.startNs ELSE o.startNs END BETWEEN ?1 AND ?2 AND o.endNs - o.startNs IS
        NOT NULL

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
