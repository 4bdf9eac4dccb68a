-- SPDX-License-Identifier: MIT

-- name: read_module_ranges
SELECT ?3, e.startNs, e.endNs, ifnull(n.value, ''), 0
FROM MSTX_EVENTS e
LEFT JOIN STRING_IDS n ON n.id = e.message
JOIN STRING_IDS d ON d.id = e.domainId
WHERE e.eventType = 2 AND d.value = 'Module'
ORDER BY e.startNs

-- name: read_kernels
WITH k AS (SELECT n.value AS kernel, t.startNs AS ts, t.endNs AS te, c.id AS api
  FROM COMPUTE_TASK_INFO i
  JOIN TASK t ON t.globalTaskId = i.globalTaskId
  LEFT JOIN STRING_IDS n ON n.id = i.name
  JOIN CONNECTION_IDS c ON c.connectionId = t.connectionId)
SELECT ?3, ifnull(kernel, ''), ts, te, n.value, CAST(p.startNs AS INTEGER),
    CAST(p.endNs AS INTEGER)
FROM k
JOIN PYTORCH_API p ON p.connectionId = k.api
JOIN STRING_IDS n ON n.id = p.name
ORDER BY p.startNs, ts

-- name: read_comm_kernels
WITH k AS (SELECT n.value AS kernel, o.startNs AS ts, o.endNs AS te, c.id AS api
  FROM COMMUNICATION_OP o
  JOIN STRING_IDS n ON n.id = o.opType
  JOIN CONNECTION_IDS c ON c.connectionId = o.connectionId)
SELECT ?3, ifnull(kernel, ''), ts, te, n.value, CAST(p.startNs AS INTEGER),
    CAST(p.endNs AS INTEGER)
FROM k
JOIN PYTORCH_API p ON p.connectionId = k.api
JOIN STRING_IDS n ON n.id = p.name
ORDER BY p.startNs, ts

-- name: read_schedule_kernels
WITH k AS (SELECT n.value AS kernel, t.startNs AS ts, t.endNs AS te, c.id AS api
  FROM COMMUNICATION_SCHEDULE_TASK_INFO i
  JOIN TASK t ON t.globalTaskId = i.globalTaskId
  LEFT JOIN STRING_IDS n ON n.id = i.name
  JOIN CONNECTION_IDS c ON c.connectionId = t.connectionId)
SELECT ?3, ifnull(kernel, ''), ts, te, n.value, CAST(p.startNs AS INTEGER),
    CAST(p.endNs AS INTEGER)
FROM k
JOIN PYTORCH_API p ON p.connectionId = k.api
JOIN STRING_IDS n ON n.id = p.name
ORDER BY p.startNs, ts

-- name: read_flows
WITH c AS (SELECT connectionId, min(id) AS first, max(id) AS last
  FROM CONNECTION_IDS
  GROUP BY connectionId
  HAVING count(*) > 1)
SELECT ?3, n.value, CAST(f.startNs AS INTEGER), CAST(f.endNs AS INTEGER),
    CAST(b.startNs AS INTEGER), CAST(b.endNs AS INTEGER)
FROM c
JOIN PYTORCH_API f ON f.connectionId = c.first
JOIN STRING_IDS n ON n.id = f.name
JOIN PYTORCH_API b ON b.connectionId = c.last
WHERE n.value NOT LIKE 'Enqueue%' AND n.value NOT LIKE 'Dequeue%'
ORDER BY c.connectionId

-- name: add_place
INSERT INTO Places VALUES(?,?,?,?,?,?)

-- name: find_modules
SELECT rowid, start, end, name, backward
FROM ModuleNodes
WHERE rank = ?
ORDER BY rowid

-- name: make_places
DROP TABLE IF EXISTS temp.Places;
CREATE TEMP TABLE Places(rank INTEGER, op INTEGER, parent TEXT, module TEXT, mstart INTEGER, mend
        INTEGER)

-- name: add_backward_modules
CREATE TEMP TABLE Runs AS
WITH b AS (SELECT p.rank, p.parent, p.module, p.mstart, p.mend, f.bwd_ts, f.bwd_end, row_number()
        OVER (PARTITION BY p.rank ORDER BY f.bwd_ts, p.mstart, f.ts, f.rowid) AS at
  FROM Places p
  JOIN Flows o ON o.rowid = p.op
  JOIN Flows f ON f.rank = p.rank AND f.name = o.name AND f.ts = o.ts AND f.end = o.end)
SELECT *,
    at - row_number() OVER (PARTITION BY rank, parent, module, mstart, mend ORDER BY at) AS run
FROM b;
INSERT INTO ModuleNodes
SELECT rank, min(bwd_ts) - 1, max(bwd_end) + 1, parent, 1
FROM Runs
WHERE parent != ''
GROUP BY rank, parent, module, mstart, mend, run
ORDER BY rank, min(at);
INSERT INTO ModuleNodes
SELECT rank, min(bwd_ts), max(bwd_end), module, 1
FROM Runs
GROUP BY rank, parent, module, mstart, mend, run
ORDER BY rank, min(at);
DROP TABLE Runs;
DROP TABLE Flows;

-- name: index_flows
CREATE INDEX temp.FlowsBy ON Flows(rank, ts, name)

-- name: find_flows
SELECT rowid, ts, end, name, 0
FROM Flows
WHERE rank = ?
ORDER BY rowid

-- name: group_calls
CREATE TEMP TABLE Calls AS
SELECT rank, op, op_ts, op_end, group_concat(kernel, ', ') AS kernels, total(end - ts) AS device
FROM (SELECT * FROM KernelOps ORDER BY rank, op, op_ts, op_end, rowid)
GROUP BY rank, op, op_ts, op_end
ORDER BY rank, op_ts;
CREATE INDEX temp.CallsByRank ON Calls(rank);
CREATE INDEX temp.ModuleNodesByRank ON ModuleNodes(rank);

-- name: place_calls
-- ModuleOps has a row for each call of the framework in a module: parent ("Net/Net.0"), the module's and
-- the operator's span, kernels ("a, b"), device (nanoseconds).
CREATE TEMP TABLE ModuleOps AS
SELECT p.rank, p.parent, p.module, p.mstart, p.mend, c.op AS op, c.op_ts AS ostart,
    c.op_end AS oend, c.kernels, c.device
FROM Places p
JOIN Calls c ON c.rowid = p.op
ORDER BY p.rank, p.mstart, c.op_ts, p.rowid;
DROP TABLE Calls;
DROP TABLE Places;
DROP TABLE ModuleNodes;

-- name: find_calls
SELECT rowid, op_ts, op_end, op, 0
FROM Calls
WHERE rank = ?
ORDER BY rowid

-- name: sum_modules
-- Modules of one name that ran other operators get a number, in order of their first call.
CREATE TEMP TABLE Ordered AS
SELECT rowid AS at, rank, parent, module, op, ostart, kernels, device,
    row_number() OVER w - 1 AS place,
    group_concat(op, '/') OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS ops
FROM ModuleOps
WINDOW w AS (PARTITION BY rank, parent, module, mstart, mend ORDER BY rowid);
CREATE TEMP TABLE Grouped AS
WITH o AS (SELECT *, min(at) OVER (PARTITION BY rank, ops) AS seq FROM Ordered)
SELECT rank, parent, module, op, place, kernels, seq, sum(device) AS total, avg(device) AS mean,
    count(*) AS n, min(ostart) AS ostart, ',' || group_concat(at) || ',' AS ops
FROM o
GROUP BY rank, parent, module, op, place, kernels, seq;
CREATE TEMP TABLE ModuleRows AS
WITH i AS (SELECT *, row_number() OVER (PARTITION BY rank ORDER BY ostart, parent, module, place)
        AS at
  FROM Grouped),
r AS (SELECT *, at - row_number() OVER (PARTITION BY rank, parent, module ORDER BY at) AS run
  FROM i),
d AS (SELECT *, dense_rank() OVER (PARTITION BY rank, parent, module, run ORDER BY seq) - 1 AS
        number
  FROM r),
m AS (SELECT *, max(number) OVER (PARTITION BY rank, parent, module, run) AS others
  FROM d)
SELECT rank, parent, CASE WHEN others > 0 THEN module || '_' || number ELSE module END AS module,
    op, kernels, total, mean, n, ops
FROM m
ORDER BY rank, ostart, place;
DROP TABLE Grouped;
DROP TABLE Ordered;

-- name: write_module_statistic
DROP TABLE IF EXISTS ModuleStatistic;
CREATE TABLE ModuleStatistic AS
SELECT parent AS parentModule, module, op AS opName, kernels AS kernelList,
    total AS "totalKernelDuration(ns)", mean AS "avgKernelDuration(ns)", n AS opCount,
    rank AS rankID
FROM ModuleRows
ORDER BY rowid;
DROP TABLE ModuleRows;
DROP TABLE ModuleOps;
DROP TABLE KernelOps;

-- name: read_flop_ranges
SELECT ?3, e.startNs, e.endNs, CAST(substr(m.value, 1, instr(m.value, '-') - 1) AS REAL),
    substr(m.value, instr(m.value, '-') + 1)
FROM MSTX_EVENTS e
JOIN STRING_IDS m ON m.id = e.message
JOIN STRING_IDS d ON d.id = e.domainId
WHERE d.value = 'mfu_flops' AND instr(m.value, '-') > 1 AND length(m.value) > instr(m.value, '-')
    AND substr(m.value, 1, instr(m.value, '-') - 1) NOT GLOB '*[^0-9]*' AND e.endNs > e.startNs
ORDER BY e.startNs

-- name: read_shapes
SELECT ?3, n.value, t.startNs, t.endNs, trim(i.value, '"'''), trim(o.value, '"'''),
    upper(trim(substr(y.value || ';', 1, instr(y.value || ';', ';') - 1)))
FROM COMPUTE_TASK_INFO c
JOIN TASK t ON t.globalTaskId = c.globalTaskId
LEFT JOIN STRING_IDS n ON n.id = c.name
LEFT JOIN STRING_IDS i ON i.id = c.inputShapes
LEFT JOIN STRING_IDS o ON o.id = c.outputShapes
LEFT JOIN STRING_IDS y ON y.id = c.inputDataTypes
WHERE ifnull(trim(i.value, '"'''), '') != 'N/A' AND ifnull(trim(o.value, '"'''), '') != 'N/A'
ORDER BY t.startNs

-- name: make_chips
CREATE TEMP TABLE Chips(rank INTEGER PRIMARY KEY, hertz REAL)

-- name: add_chip
INSERT INTO Chips VALUES(?,?)

-- name: rate_kernels
-- ?1 and ?2: operations of a core in a cycle, of half precision and of INT8.  The type of a range is that
-- of its first kernel; a range of a type whose peak is not known is left out.
CREATE INDEX temp.KernelOpsBy ON KernelOps(rank, op_ts);
CREATE INDEX temp.ShapesBy ON Shapes(rank, ts, end);
CREATE TEMP TABLE Counted AS
WITH k AS (SELECT f.rowid AS range, f.rank, f.flops, f.name, s.kernel, s.ts, s.end, s.end - s.ts
        AS dur, s.input, s.output, s.type, row_number() OVER (PARTITION BY f.rowid, s.ts, s.end
        ORDER BY o.op_ts, s.rowid) AS again, row_number() OVER (PARTITION BY f.rowid ORDER BY
        o.op_ts, s.ts, s.end, s.rowid) AS at
  FROM FlopRanges f
  JOIN KernelOps o ON o.rank = f.rank AND o.op_ts BETWEEN f.start AND f.end
  JOIN Shapes s ON s.rank = o.rank AND s.ts = o.ts AND s.end = o.end AND s.kernel = o.kernel
  WHERE f.flops > 0),
p AS (SELECT k.range, c.hertz * CASE WHEN ifnull(type, '') IN ('', 'FLOAT', 'FLOAT16', 'BF16',
        'DT_BF16') THEN ?1 WHEN type = 'INT8' THEN ?2 END AS peak
  FROM k
  JOIN Chips c ON c.rank = k.rank
  WHERE at = 1)
SELECT k.rank, k.kernel, k.ts, k.end, k.dur, k.flops, k.name, k.input, k.output, p.peak,
    k.flops / (k.dur * 1e-9) / p.peak AS mfu
FROM k
JOIN p ON p.range = k.range
WHERE k.again = 1 AND k.dur > 0 AND p.peak IS NOT NULL
ORDER BY k.range, k.at;
CREATE INDEX temp.CountedBy ON Counted(rank, ts, end);
DROP TABLE IF EXISTS OperatorMFU;
CREATE TABLE OperatorMFU AS
SELECT o.rank AS rank_id, o.op AS op_name, o.kernel AS kernel_name, o.ts AS "kernel_start(ns)",
    o.end AS "kernel_end(ns)", c.dur * 1.0 AS "kernel_duration(ns)", round_even(c.mfu, 4) AS mfu,
    round_even(c.flops / (c.dur * 1e-9) / 1e12, 2) AS actual_tflops,
    round_even(c.peak / 1e12, 2) AS chip_peak_tflops, c.flops AS flops, c.name AS flops_op_name,
    c.input AS input_shapes, c.output AS output_shapes
FROM KernelOps o
JOIN Counted c ON c.rank = o.rank AND c.ts = o.ts AND c.end = o.end AND c.kernel = o.kernel
ORDER BY o.rank, o.rowid, c.rowid;

-- name: rate_modules
-- The share of kernels at one place in an operator is its mean over all calls that have one.
CREATE TEMP TABLE Shares AS
WITH k AS (SELECT m.rowid AS call, o.rowid AS kernel, c.rowid AS n, ifnull(c.mfu, -1.0) AS mfu
  FROM ModuleOps m
  JOIN KernelOps o ON o.rank = m.rank AND o.op_ts = m.ostart AND o.op_end = m.oend AND o.op = m.op
  LEFT JOIN Counted c ON c.rank = o.rank AND c.ts = o.ts AND c.end = o.end
      AND c.kernel = o.kernel)
SELECT call, row_number() OVER (PARTITION BY call ORDER BY kernel, n) AS place, mfu
FROM k;
CREATE INDEX temp.SharesByCall ON Shares(call);
CREATE TEMP TABLE Means AS
SELECT r.rowid AS row, s.place, avg(s.mfu) AS mfu
FROM ModuleRows r
JOIN json_each('[' || trim(r.ops, ',') || ']') j
JOIN Shares s ON s.call = j.value
WHERE s.mfu > 0
GROUP BY r.rowid, s.place
ORDER BY r.rowid, s.place;
CREATE INDEX temp.MeansByRow ON Means(row);
DROP TABLE IF EXISTS ModuleMFU;
CREATE TABLE ModuleMFU AS
SELECT rank AS rank_id, parent AS parent_module, module, op AS op_name, kernels AS kernel_list,
    total AS "total_kernel_duration(ns)", mean AS "avg_kernel_duration(ns)", n AS op_count,
    ifnull((SELECT group_concat(round_even(mfu * 100, 2) || '%') FROM Means x WHERE x.row =
        r.rowid), '') AS avg_mfu
FROM ModuleRows r
ORDER BY rowid;
DROP TABLE Means;
DROP TABLE Shares;
DROP TABLE Counted;
DROP TABLE ModuleRows;
DROP TABLE ModuleOps;
DROP TABLE KernelOps;
DROP TABLE FlopRanges;
DROP TABLE Shapes;
DROP TABLE Chips;
