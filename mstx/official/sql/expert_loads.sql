-- SPDX-License-Identifier: MIT

-- name: read_loads
-- The first group called exp of the metadata has the ranks. An operator's tokens are the first
-- dimensions of its inputs but the last two, which are weights and the list of groups.
WITH g AS (SELECT (SELECT group_concat(v.value)
    FROM json_each(j.value, '$.global_ranks') v) AS ranks
  FROM META_DATA m, json_each(CASE WHEN json_valid(m.value) THEN m.value ELSE '{}' END) j
  WHERE m.name = 'parallel_group_info' AND json_extract(j.value, '$.group_name') = 'exp'
  ORDER BY j.id LIMIT 1),
s AS (SELECT t.globalTaskId AS task, t.rowid AS at, trim(s.value, '"') AS shapes
  FROM COMPUTE_TASK_INFO c
  JOIN TASK t ON t.globalTaskId = c.globalTaskId
  JOIN STRING_IDS o ON o.id = c.opType AND o.value = 'GroupedMatmul'
  JOIN STRING_IDS s ON s.id = c.inputShapes
  WHERE t.startNs >= ?1 AND t.endNs <= ?2),
parts AS (SELECT s.at, p.key AS place, trim(p.value) AS part, count(*) OVER (PARTITION BY s.at) AS n,
    row_number() OVER (PARTITION BY s.at ORDER BY p.key) AS nth
  FROM s, json_each('["' || replace(replace(s.shapes, '"', ''), ';', '","') || '"]') p
  WHERE p.value != '')
SELECT ?3, ifnull((SELECT ranks FROM g), ''), sum(tokens)
FROM (SELECT at, total(CASE WHEN nth <= n - 2 THEN CAST(part AS INTEGER) END) AS tokens
  FROM parts
  WHERE n > 1
  GROUP BY at)
HAVING count(*) > 0

-- name: sum_loads
DROP TABLE IF EXISTS EPTokensSummary;
DROP TABLE IF EXISTS TopEPTokensInfo;
CREATE TABLE EPTokensSummary AS
SELECT rank, epRanks, CAST(tokens AS INTEGER) AS inputShapesSummary
FROM ExpertLoads
ORDER BY rank, epRanks;
CREATE TABLE TopEPTokensInfo AS
SELECT epRanks, max(inputShapesSummary) - min(inputShapesSummary) AS tokensDiff
FROM EPTokensSummary
GROUP BY epRanks
ORDER BY tokensDiff DESC LIMIT 20;
DROP TABLE ExpertLoads;
