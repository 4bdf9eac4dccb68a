-- SPDX-License-Identifier: MIT

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
