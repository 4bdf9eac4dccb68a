-- SPDX-License-Identifier: MIT

-- name: make_mark_stats
DROP TABLE IF EXISTS MSTXMarkStats;
CREATE TABLE MSTXMarkStats("index", Name, FrameworkDurationNs REAL, "FrameworkDurationRatio(%)",
        CannDurationNs REAL, "CannDurationRatio(%)", DeviceDurationNs REAL,
        "DeviceDurationRatio(%)", Rank INT, StepId);
CREATE TEMP TABLE Summary(kind, Name, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
        Sum, MinRank, MaxRank, SumNs, "Dispersion(%)", StepId);

-- name: add_mark
INSERT INTO MSTXMarkStats VALUES(?,?,?,?,?,?,?,?,?,?)

-- name: add_summary
INSERT INTO Summary VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)

-- name: write_summaries
-- One summary for each place where a range spends its time: framework, CANN, device.
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
