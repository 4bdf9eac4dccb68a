-- SPDX-License-Identifier: MIT

-- name: find_last_problem
SELECT CASE WHEN instr(text, file) = 1 THEN text ELSE file || ': ' || text END
FROM ImportProblem
ORDER BY rowid DESC LIMIT 1
