-- SPDX-License-Identifier: MIT

-- name: list_groups
SELECT id, name, '[' || replace(ranks, ',', ', ') || ']'
FROM comm_groups
ORDER BY id

-- A call that never returned reaches to the end of its process.
-- name: read_calls
SELECT o.comm_group, o.seq, o.op, o.type, o.count, o.start_ns, o.end_ns, o.peer, g.ranks, g.size,
    p.unfinished > 0 AND o.end_ns >= p.end_ns, g.name
FROM comm_ops o
JOIN comm_groups g ON g.id = o.comm_group
JOIN processes p ON p.id = o.process
WHERE o.rank = ? AND o.class < 2
ORDER BY o.start_ns, o.id

-- name: list_ranks
SELECT DISTINCT rank
FROM comm_ops
WHERE rank >= 0 AND class < 2
ORDER BY rank
