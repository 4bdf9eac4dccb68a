-- SPDX-License-Identifier: MIT

-- Operations of communication in order of start, with the only source and the only destination of each
-- and its number among those of one name.
-- name: read_calls
SELECT g.value, n.value, ifnull(t.value, n.value), o.startNs, o.endNs, d.name, o.count, i.src, i.dst,
    row_number() OVER (PARTITION BY o.groupName, o.opName ORDER BY o.startNs)
FROM COMMUNICATION_OP o
LEFT JOIN STRING_IDS n ON n.id = o.opName
LEFT JOIN STRING_IDS t ON t.id = o.opType
LEFT JOIN STRING_IDS g ON g.id = o.groupName
LEFT JOIN ENUM_HCCL_DATA_TYPE d ON d.id = o.dataType
LEFT JOIN (SELECT opId, min(srcRank) AS src, min(dstRank) AS dst
    FROM COMMUNICATION_TASK_INFO
    GROUP BY opId
    HAVING min(srcRank) = max(srcRank) AND min(dstRank) = max(dstRank)) i ON i.opId = o.opId
ORDER BY o.startNs

-- Marks of communication, by the times of the device where they have that side.
-- name: read_marks
SELECT m.value, ifnull(t.startNs, e.startNs), ifnull(t.endNs, e.endNs)
FROM MSTX_EVENTS e
JOIN STRING_IDS m ON m.id = e.message
LEFT JOIN TASK t ON t.connectionId = e.connectionId
WHERE m.value LIKE '{%groupName%' OR m.value LIKE 'comm:%'
ORDER BY e.startNs

-- name: read_work
SELECT t.startNs, t.endNs
FROM TASK t
JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId
ORDER BY 1

-- name: read_steps
SELECT id, startNs, endNs
FROM STEP_TIME
ORDER BY startNs

-- Ranks and kind of a group in the metadata.
-- name: find_group
SELECT json_extract(j.value, '$.global_ranks'), json_extract(j.value, '$.group_name')
FROM META_DATA m, json_each(CASE WHEN json_valid(m.value) THEN m.value ELSE '{}' END) j
WHERE m.name = 'parallel_group_info' AND j.type = 'object' AND j.key = ?

-- name: find_host
SELECT hostName
FROM HOST_INFO
