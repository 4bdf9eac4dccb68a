-- SPDX-License-Identifier: MIT

-- name: find_step
SELECT startNs, endNs
FROM STEP_TIME
WHERE id = ?
