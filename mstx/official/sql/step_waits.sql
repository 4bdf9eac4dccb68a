-- SPDX-License-Identifier: MIT

-- name: read_timed_ops
WITH o AS (SELECT g.value AS grp, n.value AS op, c.endNs - c.startNs AS time, CASE WHEN ?4 THEN
        a.startNs ELSE c.startNs END AS api
  FROM COMMUNICATION_OP c
  JOIN STRING_IDS g ON g.id = c.groupName
  JOIN STRING_IDS n ON n.id = c.opName
  LEFT JOIN CANN_API a ON a.connectionId = c.connectionId)
SELECT grp, op, NULL, NULL, time, NULL, NULL, CASE WHEN ?5 THEN s.id ELSE -1 END
FROM o
LEFT JOIN STEP_TIME s ON api BETWEEN s.startNs AND s.endNs
WHERE api BETWEEN ?1 AND ?2

-- name: find_sizes
SELECT group_id, max(length(rank_set) - length(replace(rank_set, ',', '')) + 1)
FROM CommunicationGroupMapping
GROUP BY group_id

-- name: make_waits
CREATE TEMP TABLE Waits(rank INTEGER, step INTEGER, wait REAL, transmit REAL);
CREATE TEMP TABLE Traced(ranks INTEGER);

-- name: add_wait
INSERT INTO Waits VALUES(?,?,?,?)

-- name: add_traced
INSERT INTO Traced VALUES(?1)
