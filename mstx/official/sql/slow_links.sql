-- SPDX-License-Identifier: MIT

-- name: read_links
WITH size(type, bytes) AS (VALUES('INT8', 1), ('UINT8', 1), ('INT16', 2), ('UINT16', 2), ('FP16',
        2), ('BFP16', 2), ('INT32', 4), ('UINT32', 4), ('FP32', 4), ('INT64', 8), ('UINT64', 8),
        ('FP64', 8), ('INT128', 16))
SELECT g.value, n.value, t.value, o.startNs, o.endNs - o.startNs, e.name, b.bytes * o.count
FROM COMMUNICATION_OP o
JOIN STRING_IDS g ON g.id = o.groupName
JOIN STRING_IDS n ON n.id = o.opName
JOIN ENUM_HCCL_DATA_TYPE e ON e.id = o.dataType
JOIN STRING_IDS t ON t.id = o.opType
LEFT JOIN size b ON b.type = e.name

-- name: make_links
DROP TABLE IF EXISTS SlowLinkOps;
DROP TABLE IF EXISTS SlowLinkSum;
CREATE TABLE SlowLinkOps(rankId INT, groupName, communicationTime, opName, opType, dataType, dataSize,
        transmitTime, relatedRanks);
CREATE TEMP TABLE Judged(opTypeRelatedRanksDataSize, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs,
        Q3Ns, MaxNs, SumNs, maxRank INT, minRank INT);

-- name: add_op
INSERT INTO SlowLinkOps VALUES(?,?,?,?,?,?,?,?,?)

-- name: add_sum
INSERT INTO Judged VALUES(?,?,?,?,?,?,?,?,?,?,?,?)

-- name: list_slow_links
-- ?1: how many kinds of transfers.
CREATE TABLE SlowLinkSum AS
SELECT opTypeRelatedRanksDataSize, Count, MeanNs, StdNs, MinNs, Q1Ns, MedianNs, Q3Ns, MaxNs,
    SumNs, max(abs(MaxNs - MeanNs), abs(MinNs - MeanNs)) / StdNs AS offsetRatio, maxRank, minRank
FROM Judged
ORDER BY offsetRatio DESC
LIMIT ?1;
DROP TABLE Judged;
