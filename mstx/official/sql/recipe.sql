-- SPDX-License-Identifier: MIT

-- name: create_problems
CREATE TABLE IF NOT EXISTS ImportProblem(file TEXT, text TEXT)

-- name: add_problem
INSERT INTO ImportProblem VALUES(?,?)

-- name: find_step
SELECT startNs, endNs
FROM STEP_TIME
WHERE id = ?
