-- SPDX-License-Identifier: MIT

-- name: read_marks
WITH f AS (SELECT CAST(p.startNs AS INTEGER) AS startNs, c.connectionId
  FROM PYTORCH_API p
  JOIN CONNECTION_IDS c ON c.id = p.connectionId)
SELECT ?3, m.value, e.startNs, ifnull(t.startNs, 0), ifnull(f.startNs, 0), e.globalTid
FROM MSTX_EVENTS e
LEFT JOIN TASK t ON t.connectionId = e.connectionId
LEFT JOIN f ON f.connectionId = e.connectionId
JOIN STRING_IDS m ON m.id = e.message
WHERE e.eventType = 3 AND e.startNs BETWEEN ?1 AND ?2
ORDER BY e.startNs

-- name: read_ranges
SELECT ?3, m.value, e.startNs, e.endNs,
    CASE WHEN t.startNs IS NULL AND (SELECT count(*) FROM main.sqlite_master WHERE name = 'TASK')
        = 0 THEN 0.0 ELSE t.endNs - t.startNs END
FROM MSTX_EVENTS e
LEFT JOIN TASK t ON t.connectionId = e.connectionId
JOIN STRING_IDS m ON m.id = e.message
WHERE e.eventType = 2 AND e.startNs BETWEEN ?1 AND ?2 AND e.connectionId != 4294967295
ORDER BY e.startNs

-- name: read_steps
SELECT ?3, id, startNs, endNs
FROM STEP_TIME
ORDER BY startNs

-- name: add_timed
INSERT INTO Timed VALUES(?,?,?,?,?,?)

-- name: find_marks
SELECT *
FROM MarkRows
ORDER BY rank, rowid

-- name: find_ranges
SELECT *
FROM RangeRows
ORDER BY rank, rowid

-- name: number_names
-- A name that a rank has twice in a step gets _0, _1, ...; a duration gets its share of the rank.
CREATE INDEX temp.MarkStepsByRank ON MarkSteps(rank, start);
CREATE TEMP TABLE Stepped AS
SELECT t.rowid AS at, t.*,
    ifnull((SELECT id FROM MarkSteps s WHERE s.rank = t.rank AND t.start BETWEEN s.start AND s.end
        ORDER BY s.start LIMIT 1), 0) AS step
FROM Timed t;
CREATE TEMP TABLE Named AS
SELECT at, rank, step,
    CASE WHEN count(*) OVER w > 1 THEN name || '_' || (row_number() OVER (PARTITION BY rank, step,
        name ORDER BY at) - 1) ELSE name END AS Name, framework, cann, device,
    sum(framework) OVER r AS frameworks, sum(cann) OVER r AS canns, sum(device) OVER r AS devices
FROM Stepped
WINDOW w AS (PARTITION BY rank, step, name), r AS (PARTITION BY rank);
DROP TABLE IF EXISTS MSTXMarkStats;
CREATE TABLE MSTXMarkStats AS
SELECT row_number() OVER (ORDER BY share DESC, rank, at) - 1 AS "index", Name,
    framework AS FrameworkDurationNs,
    CASE WHEN frameworks != 0 THEN framework / frameworks * 100 ELSE 0.0 END AS
        "FrameworkDurationRatio(%)", cann AS CannDurationNs, share AS "CannDurationRatio(%)",
    device AS DeviceDurationNs,
    CASE WHEN devices != 0 THEN device / devices * 100 ELSE 0.0 END AS "DeviceDurationRatio(%)",
    rank AS Rank, step AS StepId
FROM (SELECT *, CASE WHEN canns != 0 THEN cann / canns * 100 ELSE 0.0 END AS share
  FROM Named)
ORDER BY share DESC, rank, at;
DROP TABLE Named;
DROP TABLE Stepped;

-- name: summarize
-- One summary for each place where a range spends its time: framework, CANN, device.
CREATE TEMP TABLE Spent AS
SELECT 1 AS kind, FrameworkDurationNs AS x, Name, StepId, Rank, "index" AS at
FROM MSTXMarkStats
UNION ALL
SELECT 2, CannDurationNs, Name, StepId, Rank, "index"
FROM MSTXMarkStats
UNION ALL
SELECT 3, DeviceDurationNs, Name, StepId, Rank, "index"
FROM MSTXMarkStats;
CREATE TEMP TABLE Summary AS
WITH o AS (SELECT kind, Name, StepId, x, first_value(Rank) OVER (w ORDER BY x IS NULL, x, at) AS
        low, first_value(Rank) OVER (w ORDER BY x DESC, at) AS high
  FROM Spent
  WINDOW w AS (PARTITION BY kind, StepId, Name))
SELECT kind, Name, count(x) AS Count, avg(x) AS MeanNs, stddev(x) AS StdNs, min(x) AS MinNs,
    CASE WHEN max(x) = 0 AND min(x) = 0 THEN 0 ELSE max(low) END AS MinRank,
    quantile(x, 0.25) AS Q1Ns, quantile(x, 0.5) AS MedianNs, quantile(x, 0.75) AS Q3Ns,
    max(x) AS MaxNs, CASE WHEN max(x) = 0 AND min(x) = 0 THEN 0 ELSE max(high) END AS MaxRank,
    total(x) AS SumNs,
    ifnull((max(x) - quantile(x, 0.75)) / sum(x), 0.0) * 100 AS "Dispersion(%)", StepId
FROM o
GROUP BY kind, StepId, Name;
DROP TABLE IF EXISTS MSTXAllFrameworkStats;
CREATE TABLE MSTXAllFrameworkStats AS
SELECT Name, Count, MeanNs, StdNs, MinNs, MinRank, Q1Ns, MedianNs, Q3Ns, MaxNs, MaxRank, SumNs,
    "Dispersion(%)", StepId
FROM Summary
WHERE kind = 1
ORDER BY StepId, "Dispersion(%)" DESC, Name;
DROP TABLE IF EXISTS MSTXAllCannStats;
CREATE TABLE MSTXAllCannStats AS
SELECT Name, Count, MeanNs, StdNs, MinNs, MinRank, Q1Ns, MedianNs, Q3Ns, MaxNs, MaxRank, SumNs,
    "Dispersion(%)", StepId
FROM Summary
WHERE kind = 2
ORDER BY StepId, "Dispersion(%)" DESC, Name;
DROP TABLE IF EXISTS MSTXAllDeviceStats;
CREATE TABLE MSTXAllDeviceStats AS
SELECT Name, Count, MeanNs, StdNs, MinNs, MinRank, Q1Ns, MedianNs, Q3Ns, MaxNs, MaxRank, SumNs,
    "Dispersion(%)", StepId
FROM Summary
WHERE kind = 3
ORDER BY StepId, "Dispersion(%)" DESC, Name;
DROP TABLE Summary;
DROP TABLE Spent;
DROP TABLE Timed;
DROP TABLE MarkRows;
DROP TABLE RangeRows;
DROP TABLE MarkSteps;

-- name: make_timed
CREATE TEMP TABLE Timed(rank INTEGER, name TEXT, start INTEGER, framework REAL, cann REAL, device
        REAL)
