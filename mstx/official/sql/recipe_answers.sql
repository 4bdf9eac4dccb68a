-- SPDX-License-Identifier: MIT

-- Each statement gives the lines that answer the question of a recipe, at most three.

-- name: answer_steps
SELECT printf('rank %s spends %s of a step computing, %s in exposed communication, %s idle', "index",
    human_time(1000 * avg(computing)), human_time(1000 * avg(communication_not_overlapped)),
    human_time(1000 * avg(free)))
FROM ClusterStepTraceTime
WHERE type = 'rank'
GROUP BY "index"
ORDER BY avg(computing) DESC LIMIT 3

-- name: answer_slow_rank
SELECT printf('rank %d came last in %d communication operation%s, more often than by chance', rankId,
    slowAffectCount, CASE WHEN slowAffectCount = 1 THEN '' ELSE 's' END)
FROM (SELECT * FROM SlowRank ORDER BY slowAffectCount DESC, rankId LIMIT 3)
UNION ALL
SELECT 'no rank came last more often than by chance'
WHERE NOT EXISTS (SELECT 1 FROM SlowRank)

-- name: answer_slow_link
SELECT printf('%s: %d transfers take %s on average, the slowest %s', opTypeRelatedRanksDataSize, Count,
    human_time(MeanNs), human_time(MaxNs))
FROM (SELECT * FROM SlowLinkSum ORDER BY offsetRatio DESC LIMIT 3)
UNION ALL
SELECT 'no transfer is far slower than others of its kind'
WHERE NOT EXISTS (SELECT 1 FROM SlowLinkSum)

-- name: answer_hccl_sum
SELECT printf('%s: %d operations take %s in all, %s on average, the longest %s', rtrim(OpType, '_'), Count,
    human_time(SumNs), human_time(MeanNs), human_time(MaxNs))
FROM HcclAllRankStats
ORDER BY SumNs DESC LIMIT 3

-- name: answer_kernels
SELECT printf('%s: %d kernels take %s in all, %s on average', substr(OpType, 1, 100), Count,
    human_time(SumNs), human_time(MeanNs))
FROM ComputeOpAllRankStats
ORDER BY SumNs DESC LIMIT 3

-- name: answer_calls
SELECT printf('%s: %d calls take %s in all, %s on average', name, totalCount, human_time(totalTimeNs),
    human_time(averageNs))
FROM CannApiSum
ORDER BY totalTimeNs DESC LIMIT 3

-- name: answer_marks
SELECT printf('%s: %d ranges take %s in all, %s on average', substr(Name, 1, 100), sum(Count),
    human_time(sum(SumNs)), human_time(sum(SumNs) / sum(Count)))
FROM MSTXAllCannStats
WHERE SumNs IS NOT NULL AND Count > 0
GROUP BY Name
ORDER BY sum(SumNs) DESC LIMIT 3

-- name: answer_time_summary
SELECT printf('rank %d: a step takes %s, %s of it computing, %s in exposed communication, %s idle', rank,
    human_time(1000 * avg(stepTime)), human_time(1000 * avg(computation)),
    human_time(1000 * avg(communicationNotOverlapComputation)), human_time(1000 * avg(free)))
FROM ClusterTimeSummary
GROUP BY rank
ORDER BY avg(stepTime) DESC LIMIT 3

-- name: answer_modules
SELECT printf('%s, %s: %d calls of %s take %s on the device', parentModule, module, sum(opCount), opName,
    human_time(sum("totalKernelDuration(ns)")))
FROM ModuleStatistic
GROUP BY parentModule, module, opName
ORDER BY sum("totalKernelDuration(ns)") DESC LIMIT 3

-- name: answer_free
SELECT printf('rank %d did nothing for %s: %s', rankId, human_time(1000 * "duration(us)"), reason)
FROM FreeAnalysis
ORDER BY "duration(us)" DESC LIMIT 3

-- name: answer_loads
SELECT printf('ranks %s: their experts get %d to %d tokens', t.epRanks, min(s.inputShapesSummary),
    max(s.inputShapesSummary))
FROM TopEPTokensInfo t
JOIN EPTokensSummary s ON s.epRanks = t.epRanks
GROUP BY t.epRanks
ORDER BY max(t.tokensDiff) DESC LIMIT 3

-- name: answer_bottlenecks
SELECT printf('%s, %s: %s%s', communicationOp, human_time(1000 * "duration(us)"),
    CASE WHEN slowRankId IS NULL THEN '' ELSE printf('rank %d comes last, rank %d waits for it: ',
        slowRankId, fastRankId) END, reason)
FROM CommunicationBottleneck
ORDER BY "duration(us)" DESC LIMIT 3
