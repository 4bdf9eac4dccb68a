-- SPDX-License-Identifier: MIT

-- The columns of every read_ statement: pid, tid, domain, track name, range (2) or push/pop (1) or mark (0),
-- name, start, end, thread that ended it if another, connection if it has one, device; in order of the first
-- four and start. Marks and tasks of one connection are the two sides of one event.
-- name: read_marks
SELECT globalTid >> 32, globalTid & 4294967295, d.value, '', eventType % 3, m.value, startNs, endNs,
    nullif(endGlobalTid, globalTid) & 4294967295, nullif(nullif(connectionId, 4294967295), 4000000000), NULL
FROM MSTX_EVENTS
LEFT JOIN STRING_IDS m ON m.id = message
LEFT JOIN STRING_IDS d ON d.id = domainId
ORDER BY 1, 2, domainId, 7

-- name: read_pytorch_calls
SELECT globalTid >> 32, globalTid & 4294967295, 'PyTorch', '', 2, n.value, CAST(startNs AS INTEGER),
    CAST(endNs AS INTEGER), NULL, NULL, NULL
FROM PYTORCH_API
LEFT JOIN STRING_IDS n ON n.id = name
ORDER BY 1, 2, 7

-- name: read_cann_calls
SELECT globalTid >> 32, globalTid & 4294967295, 'CANN', '', 2, n.value, startNs, endNs, NULL, NULL, NULL
FROM CANN_API
LEFT JOIN STRING_IDS n ON n.id = name
ORDER BY 1, 2, 7

-- name: read_tasks
SELECT globalPid, streamId, 'device ' || deviceId, 'Stream ' || streamId, 2, n.value, startNs, endNs, NULL,
    connectionId, deviceId
FROM TASK
LEFT JOIN STRING_IDS n ON n.id = taskType
ORDER BY 1, deviceId, streamId, 7

-- name: read_communication
SELECT 0, 0, 'communication', g.value, 2, n.value, startNs, endNs, NULL, NULL, NULL
FROM COMMUNICATION_OP
LEFT JOIN STRING_IDS n ON n.id = opName
LEFT JOIN STRING_IDS g ON g.id = groupName
ORDER BY groupName, 7

-- name: find_rank
SELECT min(rankId)
FROM RANK_DEVICE_MAP
