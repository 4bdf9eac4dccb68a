-- SPDX-License-Identifier: MIT

-- name: create_problems
CREATE TABLE IF NOT EXISTS ImportProblem(file TEXT, text TEXT)

-- name: add_problem
INSERT INTO ImportProblem VALUES(?,?)
