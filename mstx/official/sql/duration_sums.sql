-- SPDX-License-Identifier: MIT

-- name: read_hccl
SELECT ?3, n.value, t.value, o.endNs - o.startNs, g.value
FROM COMMUNICATION_OP o
LEFT JOIN STRING_IDS t ON t.id = o.opType
LEFT JOIN STRING_IDS n ON n.id = o.opName
LEFT JOIN STRING_IDS g ON g.id = o.groupName
WHERE o.startNs BETWEEN ?1 AND ?2

-- name: sum_hccl
DROP TABLE IF EXISTS HcclAllRankStats;
DROP TABLE IF EXISTS HcclPerRankStats;
DROP TABLE IF EXISTS HcclTopOpStats;
DROP TABLE IF EXISTS HcclGroupNameMap;
CREATE INDEX temp.HcclByOp ON HcclOps(op, dur, rank);
CREATE TABLE HcclAllRankStats AS
SELECT type AS OpType, count(dur) AS Count, avg(dur) AS MeanNs, stddev(dur) AS StdNs,
    min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns, quantile(dur, 0.5) AS MedianNs,
    quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs, sum(dur) AS SumNs
FROM HcclOps
WHERE type IS NOT NULL
GROUP BY type
ORDER BY type;
CREATE TABLE HcclPerRankStats AS
SELECT type AS OpType, count(dur) AS Count, avg(dur) AS MeanNs, stddev(dur) AS StdNs,
    min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns, quantile(dur, 0.5) AS MedianNs,
    quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs, sum(dur) AS SumNs, rank AS Rank
FROM HcclOps
WHERE type IS NOT NULL
GROUP BY rank, type
ORDER BY rank, type;
CREATE TABLE HcclGroupNameMap AS
SELECT grp AS GroupName, substr(double_hash(grp), -3) AS GroupId, group_concat(rank, ';') AS Ranks
FROM (SELECT DISTINCT grp, rank
  FROM HcclOps
  WHERE grp IS NOT NULL
  ORDER BY grp, rank)
GROUP BY grp
ORDER BY GroupId, grp;

-- name: list_top_hccl
-- ?1: how many operations.
CREATE TABLE HcclTopOpStats AS
SELECT op AS OpName, count(dur) AS Count, avg(dur) AS MeanNs, stddev(dur) AS StdNs,
    min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns, quantile(dur, 0.5) AS MedianNs,
    quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs, sum(dur) AS SumNs,
    (SELECT rank FROM HcclOps i WHERE i.op = o.op ORDER BY dur, rank LIMIT 1) AS MinRank,
    (SELECT rank FROM HcclOps i WHERE i.op = o.op ORDER BY dur DESC, rank LIMIT 1) AS MaxRank
FROM HcclOps o
WHERE op IS NOT NULL
GROUP BY op
ORDER BY MeanNs DESC, op
LIMIT ?1;
DROP TABLE HcclOps;

-- name: read_links
WITH size(type, bytes) AS (VALUES('INT8', 1), ('UINT8', 1), ('INT16', 2), ('UINT16', 2), ('FP16',
        2), ('BFP16', 2), ('INT32', 4), ('UINT32', 4), ('FP32', 4), ('INT64', 8), ('UINT64', 8),
        ('FP64', 8), ('INT128', 16))
SELECT ?3, g.value, o.endNs - o.startNs, n.value, t.value, e.name, b.bytes * o.count
FROM COMMUNICATION_OP o
JOIN STRING_IDS g ON g.id = o.groupName
JOIN STRING_IDS n ON n.id = o.opName
JOIN ENUM_HCCL_DATA_TYPE e ON e.id = o.dataType
JOIN STRING_IDS t ON t.id = o.opType
LEFT JOIN size b ON b.type = e.name

-- name: rate_links
-- The shortest duration of an operation is how long its transfer took.  Operations of one kind, size and
-- number of ranks ought to take equally long; those more than three deviations off are slow.
DROP TABLE IF EXISTS SlowLinkOps;
DROP TABLE IF EXISTS SlowLinkSum;
CREATE TEMP TABLE Transfers AS
SELECT groupName, opName, min(communicationTime) AS t, count(*) AS n
FROM LinkOps
WHERE instr(opName, 'send') = 0 AND instr(opName, 'receive') = 0
GROUP BY groupName, opName;
CREATE INDEX temp.TransfersByName ON Transfers(groupName, opName);
CREATE TEMP TABLE Rated AS
SELECT o.rank AS rankId, o.groupName, communicationTime, o.opName, opType, dataType, dataSize,
    ifnull(x.t, 0) AS transmitTime, ifnull(x.n, 0) AS relatedRanks
FROM LinkOps o
LEFT JOIN Transfers x ON x.groupName = o.groupName AND x.opName = o.opName;
CREATE TEMP TABLE Odd AS
SELECT opType, dataSize, relatedRanks
FROM Rated
WHERE dataSize IS NOT NULL
GROUP BY 1, 2, 3
HAVING stddev_pop(transmitTime) > 0
    AND (max(transmitTime) > avg(transmitTime) + 3 * stddev_pop(transmitTime) OR min(transmitTime)
        < avg(transmitTime) - 3 * stddev_pop(transmitTime));
CREATE TABLE SlowLinkOps AS
SELECT r.*
FROM Rated r
JOIN Odd o ON o.opType = r.opType AND o.dataSize = r.dataSize AND o.relatedRanks = r.relatedRanks
ORDER BY r.opType, r.dataSize, r.relatedRanks, r.rowid;
CREATE TEMP TABLE Judged AS
SELECT opType || relatedRanks || '_' || dataSize AS opTypeRelatedRanksDataSize,
    count(transmitTime) AS Count, avg(transmitTime) AS MeanNs, stddev(transmitTime) AS StdNs,
    min(transmitTime) AS MinNs, quantile(transmitTime, 0.25) AS Q1Ns,
    quantile(transmitTime, 0.5) AS MedianNs, quantile(transmitTime, 0.75) AS Q3Ns,
    max(transmitTime) AS MaxNs, sum(transmitTime) AS SumNs, opType, dataSize, relatedRanks
FROM SlowLinkOps
GROUP BY opType, dataSize, relatedRanks;

-- name: list_slow_links
-- ?1: how many kinds of transfers.
CREATE TABLE SlowLinkSum AS
SELECT opTypeRelatedRanksDataSize, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
    SumNs, max(abs(MaxNs - MeanNs), abs(MinNs - MeanNs)) / StdNs AS offsetRatio,
    (SELECT rankId FROM SlowLinkOps o WHERE o.opType = j.opType AND o.dataSize = j.dataSize
        AND o.relatedRanks = j.relatedRanks ORDER BY transmitTime DESC, rowid LIMIT 1) AS maxRank,
    (SELECT rankId FROM SlowLinkOps o WHERE o.opType = j.opType AND o.dataSize = j.dataSize
        AND o.relatedRanks = j.relatedRanks ORDER BY transmitTime ASC, rowid LIMIT 1) AS minRank
FROM Judged j
ORDER BY offsetRatio DESC
LIMIT ?1;
DROP TABLE Judged;
DROP TABLE Odd;
DROP TABLE Rated;
DROP TABLE Transfers;
DROP TABLE LinkOps;

-- name: read_cann_calls
WITH s AS (SELECT name, sum(endNs - startNs) AS total, count(*) AS n, avg(endNs - startNs) AS
        mean, min(endNs - startNs) AS least, quantile(endNs - startNs, 0.25) AS q1, quantile(endNs
        - startNs, 0.5) AS median, quantile(endNs - startNs, 0.75) AS q3, max(endNs - startNs) AS
        most, stddev_pop(endNs - startNs) AS deviation
  FROM CANN_API
  WHERE startNs BETWEEN ?1 AND ?2
  GROUP BY name)
SELECT ?3, i.value, round(total * 100.0 / (SELECT sum(total) FROM s), 2), total, n,
    round(mean, 1), round(least, 1), round(q1, 1), round(median, 1), round(q3, 1), round(most, 1),
    round(deviation, 1)
FROM s
LEFT JOIN STRING_IDS i ON i.id = s.name
ORDER BY 3 DESC

-- name: sum_cann_calls
-- Deviations of ranks become one by the law of total variance, from figures rounded to a tenth.
DROP TABLE IF EXISTS CannApiSumRank;
DROP TABLE IF EXISTS CannApiSum;
CREATE TABLE CannApiSumRank AS
SELECT name, durationRatio, totalTimeNs, totalCount, averageNs, minNs, Q1Ns, medNs, Q3Ns, maxNs,
    stdev, rank
FROM CannCalls
ORDER BY rowid;
CREATE TABLE CannApiSum AS
WITH a AS (SELECT name, sum(totalTimeNs) AS total, sum(totalCount) AS n, sum(totalTimeNs) * 1.0 /
        sum(totalCount) AS mean, min(Q1Ns) AS q1, quantile(medNs, 0.5) AS median, max(Q3Ns) AS q3,
        min(minNs) AS least, max(maxNs) AS most, count(*) AS ranks, min(stdev) AS own
  FROM CannCalls
  WHERE name IS NOT NULL
  GROUP BY name)
SELECT name, round_even(total * 100.0 / (SELECT sum(total) FROM a), 1) AS timeRatio,
    total AS totalTimeNs, n AS totalCount, round_even(mean, 1) AS averageNs,
    round_even(q1, 1) AS Q1Ns, round_even(median, 1) AS medNs, round_even(q3, 1) AS Q3Ns,
    least AS minNs, most AS maxNs,
    CASE WHEN ranks = 1 THEN own WHEN n = 1 THEN 0 ELSE round_even((SELECT sqrt(sum((c.totalCount
        - 1) * c.stdev * c.stdev + c.totalCount * (c.averageNs - mean) * (c.averageNs - mean)) /
        (n - 1)) FROM CannCalls c WHERE c.name = a.name), 1) END AS stdev,
    (SELECT group_concat(rank, ', ')
  FROM CannCalls c
  WHERE c.name = a.name AND c.minNs = least) AS minRank, (SELECT group_concat(rank, ', ')
  FROM CannCalls c
  WHERE c.name = a.name AND c.maxNs = most) AS maxRank
FROM a
ORDER BY total DESC, name;
DROP TABLE CannCalls;

-- name: read_kernels
SELECT ?3, n.value, o.value, t.value, s.value, k.endNs - k.startNs
FROM COMPUTE_TASK_INFO c
JOIN TASK k ON k.globalTaskId = c.globalTaskId
LEFT JOIN STRING_IDS n ON n.id = c.name
LEFT JOIN STRING_IDS o ON o.id = c.opType
LEFT JOIN STRING_IDS t ON t.id = c.taskType
LEFT JOIN STRING_IDS s ON s.id = c.inputShapes
WHERE k.startNs BETWEEN ?1 AND ?2

-- name: sum_kernels
DROP TABLE IF EXISTS ComputeOpAllRankStats;
DROP TABLE IF EXISTS ComputeOpPerRankStatsByOpType;
DROP TABLE IF EXISTS ComputeOpPerRankStatsByOpName;
CREATE TABLE ComputeOpAllRankStats AS
SELECT OpType, TaskType, count(dur) AS Count, avg(dur) AS MeanNs, stddev(dur) AS StdNs,
    min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns, quantile(dur, 0.5) AS MedianNs,
    quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs, sum(dur) AS SumNs
FROM KernelRuns
WHERE OpType IS NOT NULL AND TaskType IS NOT NULL
GROUP BY 1, 2
ORDER BY SumNs DESC;
CREATE TABLE ComputeOpPerRankStatsByOpType AS
SELECT OpType, TaskType, count(dur) AS Count, avg(dur) AS MeanNs, stddev(dur) AS StdNs,
    min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns, quantile(dur, 0.5) AS MedianNs,
    quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs, sum(dur) AS SumNs, rank AS Rank
FROM KernelRuns
WHERE OpType IS NOT NULL AND TaskType IS NOT NULL
GROUP BY rank, 1, 2
ORDER BY SumNs DESC;
CREATE TABLE ComputeOpPerRankStatsByOpName AS
SELECT OpName, OpType, TaskType, InputShapes, count(dur) AS Count, avg(dur) AS MeanNs,
    stddev(dur) AS StdNs, min(dur) AS MinNs, quantile(dur, 0.25) AS Q1Ns,
    quantile(dur, 0.5) AS MedianNs, quantile(dur, 0.75) AS Q3Ns, max(dur) AS MaxNs,
    sum(dur) AS SumNs, rank AS Rank
FROM KernelRuns
WHERE OpName IS NOT NULL AND OpType IS NOT NULL AND TaskType IS NOT NULL
    AND InputShapes IS NOT NULL
GROUP BY rank, 1, 2, 3, 4
ORDER BY SumNs DESC;
DROP TABLE KernelRuns;

-- name: read_clocks
SELECT DISTINCT ?3, freq
FROM AICORE_FREQ
WHERE timestampNs BETWEEN ?1 AND ?2 AND freq IS NOT NULL
ORDER BY freq

-- name: write_clocks
-- 1800 MHz is full speed; 800 beside it is that of a core without work.
DROP TABLE IF EXISTS FreeFrequencyRanks;
DROP TABLE IF EXISTS AbnormalFrequencyRanks;
CREATE TEMP TABLE ClockSets AS
SELECT rank AS rankId, '[' || group_concat(freq, ', ') || ']' AS aicoreFrequency
FROM (SELECT * FROM Clocks ORDER BY rank, freq)
GROUP BY rank;
CREATE TABLE FreeFrequencyRanks AS
SELECT *
FROM ClockSets
WHERE aicoreFrequency = '[800, 1800]'
ORDER BY rankId;
CREATE TABLE AbnormalFrequencyRanks AS
SELECT *
FROM ClockSets
WHERE aicoreFrequency NOT IN ('[1800]', '[800, 1800]')
ORDER BY rankId;
DROP TABLE ClockSets;
DROP TABLE Clocks;
