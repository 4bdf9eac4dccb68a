-- SPDX-License-Identifier: MIT

-- name: read_hccl
SELECT g.value, n.value, t.value, o.startNs, o.endNs - o.startNs
FROM COMMUNICATION_OP o
LEFT JOIN STRING_IDS t ON t.id = o.opType
LEFT JOIN STRING_IDS n ON n.id = o.opName
LEFT JOIN STRING_IDS g ON g.id = o.groupName
WHERE o.startNs BETWEEN ?1 AND ?2

-- name: make_hccl
DROP TABLE IF EXISTS HcclAllRankStats;
DROP TABLE IF EXISTS HcclPerRankStats;
DROP TABLE IF EXISTS HcclTopOpStats;
DROP TABLE IF EXISTS HcclGroupNameMap;
CREATE TABLE HcclAllRankStats(OpType, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
        SumNs);
CREATE TABLE HcclPerRankStats(OpType, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
        SumNs, Rank INT);
CREATE TABLE HcclTopOpStats(OpName, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
        SumNs, MinRank INT, MaxRank INT);
CREATE TEMP TABLE HcclGroups(grp, ranks);

-- name: add_all_ranks
INSERT INTO HcclAllRankStats VALUES(?,?,?,?,?,?,?,?,?,?)

-- name: add_each_rank
INSERT INTO HcclPerRankStats VALUES(?,?,?,?,?,?,?,?,?,?,?)

-- name: add_top
INSERT INTO HcclTopOpStats VALUES(?,?,?,?,?,?,?,?,?,?,?,?)

-- name: add_group
INSERT INTO HcclGroups VALUES(?,?)

-- name: write_groups
CREATE TABLE HcclGroupNameMap AS
SELECT grp AS GroupName, substr(double_hash(grp), -3) AS GroupId, ranks AS Ranks
FROM HcclGroups
ORDER BY GroupId, grp;
DROP TABLE HcclGroups;
