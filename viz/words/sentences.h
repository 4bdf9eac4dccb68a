/* SPDX-License-Identifier: MIT
 *
 * sentences: every message that the program prints or passes between its parts, in English and in
 * Chinese. words.h explains the templates; the kinds and their arguments are declared where
 * messages are made.
 */
#ifndef VIZ_WORDS_SENTENCES_H
#define VIZ_WORDS_SENTENCES_H

/* A process: "rank 3 (process 4242)", "train.py (process 4242)" or "process 4242". */
#define WHO_EN "{rank?={name?=process {pid}|{name} (process {pid})}|rank {rank} (process {pid})}"
#define WHO_ZH "{rank?={name?=进程 {pid}|{name}（进程 {pid}）}|卡 {rank}（进程 {pid}）}"
/* A communication call: "Recv (call 7) from rank 2 of world". */
#define CALL_EN "{call}[ (call {seq})][ {way} rank {peer}][ of {comm}]"
#define CALL_ZH                                                                                    \
    "[{comm} 上的 ]{call}[（第 {seq} 次调用）][（{way?from=来自|to=发往|对端}卡 {peer}）]"

/* Activity of a rank while the others wait; ranges that the recorder makes have a phrase of
 * their own. */
#define DOING_EN                                                                                   \
    "{doing?dataloader=loading data|garbage_collection=collecting garbage|save_checkpoint=saving " \
    "checkpoints|optimizer_step=in the optimizer|in {doing}}"
#define DOING_ZH                                                                                   \
    "{doing?dataloader=用于加载数据|garbage_collection=用于垃圾回收|save_checkpoint="  \
    "用于保存检查点|"                                                                       \
    "optimizer_step=用于优化器|在 {doing} 中}"
/* A second cause of the same rank. */
#define SECOND_EN                                                                                  \
    "{second?dataloader=it loads data|garbage_collection=it collects garbage|save_checkpoint=it "  \
    "saves checkpoints|optimizer_step=its optimizer|computes=it computes|off_cpu=it is off the "   \
    "CPU "                                                                                         \
    "(it sleeps, or waits for data)}"
#define SECOND_ZH                                                                                      \
    "{second?dataloader=加载数据|garbage_collection=垃圾回收|save_checkpoint=保存检查点|" \
    "optimizer_step=优化器|computes=计算|off_cpu=不在 CPU 上运行（休眠或等待数据）}"

/* What a rank does meanwhile. */
#define WHY_EN                                                                                     \
    "{why?=outside of communication it takes|computes=it computes|larger_batches=it computes on "  \
    "larger batches|waits_for_cpu=it waits for a CPU that others use|throttled=its container has " \
    "used up its CPU time, so it waits|off_cpu=it is off the CPU "                                 \
    "(it sleeps, or waits for data)|writes=it writes to files|it works}"
#define WHY_ZH                                                                                                  \
    "{why?=通信之外|computes=计算|larger_batches=批次更大，计算|waits_for_cpu=等待被占用的 " \
    "CPU，|throttled=容器的 CPU 配额用尽而等待，|"                                                  \
    "off_cpu=不在 CPU 上运行（休眠或等待数据），|writes=写文件，|}"

#define WAITING_EN ", in which {waiting} {waiting?1=rank|ranks} waited for {waited_s:one} s"
#define WAITING_ZH "，其中 {waiting} 张卡等待了 {waited_s:one} s"

/* What a step would save. */
#define GAIN_EN                                                                                    \
    "; without it {steps?=all|a step} would be up to {gain_ns:time} shorter ({share:percent})"
#define GAIN_ZH "；去除后{steps?=总共|每步}最多可缩短 {gain_ns:time}（{share:percent}）"

/* kind, English, Chinese */
#define VIZ_SENTENCES_OF_RUNS(X)                                                                                     \
    X(straggler,                                                                                                     \
      "rank {rank} makes the others wait[ in steps {first_step} to {last_step}]: it computes "                       \
      "{longer_ns:time} longer a step than its partners, {share:percent} of the step",                               \
      "卡 {rank} 让其他卡等待[（第 {first_step} 至 {last_step} 步）]：每步比同伴多计算 "        \
      "{longer_ns:time}，占每步的 {share:percent}")                                                                  \
    X(waiter,                                                                                                        \
      "rank {rank} makes the others wait {bursts?=in all steps|in bursts}[, from step "                              \
      "{first_step} to "                                                                                             \
      "{last_step}][, from {since_ns:time} to {until_ns:time} of the run]: " WHY_EN                                  \
      " {longer_ns:time} a step longer than they do"                                                                 \
      "[, {part:percent} of that " DOING_EN "]"                                                                      \
      "[, {second_part:percent} of that for a second cause: " SECOND_EN "]; "                                        \
      "without that the job would take {cost:percent} less, {gain_ns:time} a step (it is the "                       \
      "last in "                                                                                                     \
      "{longest:percent} of the steps)",                                                                             \
      "卡 {rank} 让其他卡等待（{bursts?=所有步|间歇发生}[，第 {first_step} 至 {last_step} "        \
      "步][，运行的 {since_ns:time} 至 {until_ns:time}]）：" WHY_ZH                                                  \
      "每步比其他卡多用 {longer_ns:time}[，其中 {part:percent} " DOING_ZH                                            \
      "][，其中 {second_part:percent} 另有原因：" SECOND_ZH                                                          \
      "]；若无此差距，作业耗时减少 {cost:percent}，每步 {gain_ns:time}（在 {longest:percent} "     \
      "的步中最晚）")                                                                                                \
    X(balance,                                                                                                       \
      "no rank makes the others wait (checked: {steps} steps of {ranks} ranks); communication "                      \
      "itself takes "                                                                                                \
      "{comm:percent} of their time[; all ranks wait for a CPU that others use, "                                    \
      "{delayed:percent} of "                                                                                        \
      "their work]",                                                                                                 \
      "没有卡让其他卡等待（已检查 {ranks} 张卡的 {steps} 步）；通信本身占其时间的 "      \
      "{comm:percent}[；所有卡都在等待被占用的 CPU，占其计算时间的 {delayed:percent}]")                              \
    X(stage,                                                                                                         \
      "{stage?=rank {ranks}|stage {stage} (ranks {ranks})} makes the others wait: with ideal "                       \
      "durations of "                                                                                                \
      "its operations a step would take {cost:percent} less, {gain_ns:time}, which is "                              \
      "{part:percent} of "                                                                                           \
      "what the job loses",                                                                                          \
      "{stage?=卡 {ranks}|第 {stage} 级（卡 "                                                                   \
      "{ranks}）}让其他卡等待：若其操作达到理想耗时，每步减少 {cost:percent}，即 "          \
      "{gain_ns:time}，占作业损失的 {part:percent}")                                                                 \
    X(slow_link,                                                                                                     \
      "the link from rank {src} to rank {dst} is slow: {bytes:bytes} takes {ratio:two} times as "                    \
      "long as on the {alike} links alike",                                                                          \
      "卡 {src} 到卡 {dst} 的链路慢：{bytes:bytes} 耗时是其余 {alike} 条同类链路的 "              \
      "{ratio:two} 倍")                                                                                              \
    X(slow_connection,                                                                                               \
      "the connection {peer?=of rank {rank} ({host})|between rank {rank} ({host}) and rank "                         \
      "{peer} "                                                                                                      \
      "({peer_host})} is slow"                                                                                       \
      "[: a round trip takes {trip_ns:time}, that of others {usual_ns:time}]"                                        \
      "[: it carries {rate:bytes} a second, others {usual_rate:bytes}]"                                              \
      "[: it loses {lost:percent} of its packets, others {usual_lost:percent}]; it is busy for "                     \
      "{busy:percent} of the job",                                                                                   \
      "{peer?=卡 {rank}（{host}）的连接|卡 {rank}（{host}）与卡 "                                         \
      "{peer}（{peer_host}）之间的连接}慢"                                                                   \
      "[：一次往返 {trip_ns:time}，其余为 {usual_ns:time}]"                                                 \
      "[：每秒传输 {rate:bytes}，其余为 {usual_rate:bytes}]"                                                \
      "[：丢失 {lost:percent} 的数据包，其余为 {usual_lost:percent}]；占作业时间的 "               \
      "{busy:percent}")                                                                                              \
    X(slow_group,                                                                                                    \
      "a link among the {ranks} ranks {first_rank} .. {last_rank} ({comm}) is slow: {op} of "                        \
      "{bytes:bytes} takes {ratio:two} times as long as in the {alike} communicators alike",                         \
      "卡 {first_rank} 至 {last_rank}（共 {ranks} 卡，{comm}）之间有慢链路：{bytes:bytes} 的 "        \
      "{op} 耗时是 {alike} 个同类通信域的 {ratio:two} 倍")                                                           \
    X(mismatch,                                                                                                      \
      "ranks {rank} and {other_rank} do not run the same program: call {seq} of {comm} is {op} "                     \
      "of {bytes} bytes of {type} on the one, {other_op} of {other_bytes} bytes of {other_type} "                    \
      "on the other",                                                                                                \
      "卡 {rank} 与卡 {other_rank} 运行的程序不一致：{comm} 的第 {seq} 次调用，前者是 {bytes} " \
      "字节 {type} 的 {op}，后者是 {other_bytes} 字节 {other_type} 的 {other_op}")                                   \
    X(not_joined,                                                                                                    \
      "rank {rank} is missing from {op} (call {seq} of {comm}), in which {waiting} "                                 \
      "{waiting?1=rank|ranks} waited at the end",                                                                    \
      "卡 {rank} 缺席 {op}（{comm} 的第 {seq} 次调用），结束时其中有 {waiting} 张卡在等待")                          \
    X(drop,                                                                                                          \
      WHO_EN " lost {records} {records?1=record|records} while recording; figures of it are too "                    \
             "low",                                                                                                  \
      WHO_ZH " 记录时丢失 {records} 条，其数值偏低")                                                                 \
    X(unfinished, WHO_EN " has {ranges} {ranges?1=range|ranges} that never ended",                                   \
      WHO_ZH " 有 {ranges} 个区间未结束")                                                                            \
    X(open_ranges, WHO_EN " has {ranges} {ranges?1=range|ranges} in progress",                                       \
      WHO_ZH " 有 {ranges} 个区间正在进行")                                                                          \
    X(in_progress,                                                                                                   \
      "{op} (call {seq} of {comm}) is in progress since {waited_s:one} s: {waiting} "                                \
      "{waiting?1=rank waits|ranks wait} for rank {rank}[, which is in {where}]",                                    \
      "{op}（{comm} 的第 {seq} 次调用）已进行 {waited_s:one} s：{waiting} 张卡在等待卡 "            \
      "{rank}[，它正在 {where}]")                                                                                    \
    X(awaited,                                                                                                       \
      "rank {rank} is missing from {op} (call {seq} of {comm}), in which {waiting} "                                 \
      "{waiting?1=rank has|ranks have} waited for {waited_s:one} s[ while it is in {where}]",                        \
      "卡 {rank} 缺席 {op}（{comm} 的第 {seq} 次调用），其中 {waiting} 张卡已等待 {waited_s:one} " \
      "s[，它正在 {where}]")                                                                                         \
    X(killed, WHO_EN " did not close its capture: it was killed, crashed, or left by _exit",                         \
      WHO_ZH " 未正常结束记录：被杀死、崩溃或以 _exit 退出")                                                         \
    X(overhead,                                                                                                      \
      "recording took about {share:percent} of the time of " WHO_EN                                                  \
      "; exclude a domain to get less",                                                                              \
      "记录约占 " WHO_ZH " 时间的 {share:percent}；排除某个域可减少")                                                \
    X(problem, "[{file}: ]{text}", "[{file}：]{text}")                                                               \
    X(absent,                                                                                                        \
      "{count?1=rank|ranks} {ranks}[ and {more} more] left no records, though communicators of "                     \
      "others have {count?1=it as a member|them as members}",                                                        \
      "卡 {ranks}[ 及另外 {more} 张]没有留下记录，但其他卡的通信域以其为成员")                                       \
    X(slow_step,                                                                                                     \
      "step {step} of " WHO_EN " took {dur_ns:time}, {times:one} times the median of all steps"                      \
      "[; {others} more {others?1=step|steps} took over 1.5 times the median: {steps} in all]",                      \
      WHO_ZH " 的第 {step} 步耗时 {dur_ns:time}，是所有步中位数的 {times:one} 倍"                     \
             "[；另有 {others} 步超过中位数的 1.5 倍，全部为：{steps}]")                                             \
    X(advise_data,                                                                                                   \
      WHO_EN " waits for its data loader: {events} {events?1=time|times}, {total_ns:time} in "                       \
             "all" GAIN_EN,                                                                                          \
      WHO_ZH " 等待数据加载：{events} 次，共 {total_ns:time}" GAIN_ZH)                                               \
    X(advise_garbage,                                                                                                \
      WHO_EN " collects garbage: {events} {events?1=time|times}, {total_ns:time} in all" GAIN_EN,                    \
      WHO_ZH " 进行垃圾回收：{events} 次，共 {total_ns:time}" GAIN_ZH)                                               \
    X(advise_sync,                                                                                                   \
      WHO_EN " waits for its device {events} {events?1=time|times}, {total_ns:time} in all, and "                    \
             "the device then waits for it" GAIN_EN,                                                                 \
      WHO_ZH " 与设备同步 {events} 次，共 {total_ns:time}，随后设备等待主机" GAIN_ZH)                                \
    X(advise_brief,                                                                                                  \
      "launching {events} {events?1=kernel|kernels} of " WHO_EN                                                      \
      " takes longer than they run; its devices idle {total_ns:time}" GAIN_EN,                                       \
      WHO_ZH " 的 {events} 个核函数下发耗时长于其执行；设备空闲 {total_ns:time}" GAIN_ZH)                            \
    X(advise_host, "the devices of " WHO_EN " wait for the host and idle {total_ns:time}" GAIN_EN,                   \
      WHO_ZH " 的设备等待主机，空闲 {total_ns:time}" GAIN_ZH)                                                        \
    X(advise_overlap,                                                                                                \
      WHO_EN " communicates for {total_ns:time}, part of which computing could hide" GAIN_EN,                        \
      WHO_ZH " 通信 {total_ns:time}，其中一部分可与计算重叠" GAIN_ZH)                                                \
    X(advise_packets,                                                                                                \
      WHO_EN " makes {events} {events?1=call|calls} of less than 64 KiB, which take "                                \
             "{total_ns:time}; join them" GAIN_EN,                                                                   \
      WHO_ZH " 有 {events} 次小于 64 KiB 的通信，共 {total_ns:time}；可合并" GAIN_ZH)                                \
    X(device_late,                                                                                                   \
      "the device of " WHO_EN " has not reached {call} on {stream} after {waited_s:one} s",                          \
      WHO_ZH " 的设备在 {waited_s:one} s 后仍未执行到 {stream} 上的 {call}")                                         \
    X(waits, WHO_EN " waited in " CALL_EN " for {waited_s:one} s",                                                   \
      WHO_ZH " 在 " CALL_ZH " 中等待了 {waited_s:one} s")                                                            \
    X(misses_collective,                                                                                             \
      "rank {rank} is missing from " CALL_EN WAITING_EN "[; it was last seen in {where}]",                           \
      "卡 {rank} 缺席 " CALL_ZH WAITING_ZH "[；最后见于 {where}]")                                                   \
    X(misses_transfer, "rank {rank} is missing from the other end of " CALL_EN WAITING_EN,                           \
      "卡 {rank} 缺席 " CALL_ZH " 的另一端" WAITING_ZH)                                                              \
    X(sentence, "{text}", "{text}")

/* Effect of later nodes on a difference, and agreement of the inputs. */
#define LATER_EN                                                                                   \
    "{later?0=|=|1=; 1 later node only propagates it|; {later:count} later nodes only propagate "  \
    "it}[; the same in {more:count} more {more?1=place|places}]"
#define LATER_ZH  "{later?0=|=|；其后 {later:count} 个节点只是传播}[；另有 {more:count} 处相同]"
#define INPUTS_EN "{in?0=inputs agree exactly|inputs agree to {in:error}}"
#define INPUTS_ZH "{in?0=输入完全一致|输入一致到 {in:error}}"
/* State of a value at the border of the dump. */
#define STATE_EN(times)                                                                            \
    "{state?flag=has NaN or inf on one side alone|md5=has another checksum|"                       \
    "order=has its values in another order: statistics agree, but {reader} makes other values of " \
    "them|"                                                                                        \
    "maybe=may have its values in another order: statistics agree, but {reader} makes other "      \
    "values of them|"                                                                              \
    "differs by {in:error}, {factor:factor} × " times "}"
#define STATE_ZH(times)                                                                            \
    "{state?flag=仅一侧有 NaN 或 inf|md5=校验和不同|"                                    \
    "order=的元素顺序不同：统计量一致，但 {reader} 的结果不同|"                \
    "maybe=的元素顺序可能不同：统计量一致，但 {reader} 的结果不同|"          \
    "相差 {in:error}，{factor:factor} × " times "}"
#define EFFECT_EN                                                                                  \
    "{out?=; no effect on values is seen|; its output differs by {out:error}, " INPUTS_EN "}"
#define EFFECT_ZH "{out?=；未见对数值的影响|；其输出相差 {out:error}，" INPUTS_ZH "}"
/* Effect on values of a node that only one side has, or that has moved. */
#define BEHIND_EN                                                                                  \
    "{effect?digits=; the cast behind it restores the type, so it only drops digits|"              \
    "parts=; both sides have the values before it, and other values behind it|"                    \
    "{reader?=|; statistics do not show what it changes, but {reader} makes other values of it}"   \
    "{path?={reader?={e?=, without effect on values|; what is computed with it differs by "        \
    "{e:error}}|}|; behind it {path} comes from "                                                  \
    "{maker?=outside the dump|{maker}} and differs by {e:error}}}"
#define BEHIND_ZH                                                                                                       \
    "{effect?digits=；其后的转换又将其还原，因此它只丢失精度|parts="                                \
    "；两侧在其之前的数值一致，其后不同|{reader?=|"                                                    \
    "；统计量看不出它的改变，但 {reader} 的结果不同}"                                                 \
    "{path?={reader?={e?=，对数值没有影响|；由它算出的结果相差 {e:error}}|}|；其后 {path} 来自 " \
    "{maker?=dump 之外|{maker}}，相差 {e:error}}}"
#define SIDES_EN                                                                                   \
    "{here?=absent|{here}} on the target side and {there?=absent|{there}} on the golden side"
#define SIDES_ZH "目标侧为 {here?=无|{here}}，标杆侧为 {there?=无|{there}}"

#define VIZ_SENTENCES_OF_COMPARISONS(X)                                                                                 \
    X(suspect_flag,                                                                                                     \
      "introduces NaN or inf: one side's output has it and no input of either{exact?1=; its "                           \
      "inputs agree exactly|}" LATER_EN,                                                                                \
      "引入 NaN 或 inf：一侧输出有而两侧输入都没有{exact?1=；输入完全一致|}" LATER_ZH)                                  \
    X(suspect_differs,                                                                                                  \
      "introduces a difference: its inputs have equal checksums, its outputs do not" LATER_EN,                          \
      "引入差异：输入校验和相同，输出不同" LATER_ZH)                                                                    \
    X(suspect_value,                                                                                                    \
      "introduces {measured?1=relL2|a relative difference of} {out:error}, {factor:factor} × "                         \
      "what {excuse?inputs=its inputs explain|noise=the noise of this pair explains|"                                   \
      "{excuse} rounding explains}; " INPUTS_EN                                                                         \
      ", the floor is {floor:error}{order?=|; statistics do not tell "                                                  \
      "whether it computes otherwise or what it reads is in another order}" LATER_EN,                                   \
      "引入{measured?1= relL2|相对差异} {out:error}，为 {factor:factor} × "                                    \
      "{excuse?inputs=其输入可解释的量|noise=这对数据的噪声可解释的量|{excuse} "                    \
      "舍入可解释的量}；" INPUTS_ZH                                                                                     \
      "，下限为 {floor:error}{order?=|；统计量无法区分是它的计算不同，"                             \
      "还是其输入的元素顺序不同}" LATER_ZH)                                                                             \
    X(suspect_norm,                                                                                                     \
      "introduces a change of the output's norm by {norm:error}, {factor:factor} × what this "                         \
      "pair shows elsewhere; single elements differ by {out:error}, which hides it; " INPUTS_EN                         \
          LATER_EN,                                                                                                     \
      "使输出范数变化 {norm:error}，为 {factor:factor} × 这对数据别处所见；单个元素相差 "      \
      "{out:error}，掩盖了它；" INPUTS_ZH LATER_ZH)                                                                     \
    X(suspect_precedent,                                                                                                \
      "introduces a difference of {out:error}: every node before it agrees exactly, and other "                         \
      "calls of this operator give equal outputs for equal inputs" LATER_EN,                                            \
      "引入差异 "                                                                                                   \
      "{out:error}：此前的节点完全一致，且该算子的其他调用对相同的输入给出相同的输出" LATER_ZH)                         \
    X(suspect_rounded,                                                                                                  \
      "drops digits: its inputs and the golden output have more of them than its output, "                              \
      "which differs by {out:error}; " INPUTS_EN LATER_EN,                                                              \
      "丢失精度：其输入和标杆侧输出的有效位数都多于其输出；输出相差 {out:error}，" INPUTS_ZH                            \
          LATER_ZH)                                                                                                     \
    X(suspect_parameter,                                                                                                \
      "{path} is a parameter and " STATE_EN("what other parameters do") LATER_EN,                                       \
      "{path} 是参数，且" STATE_ZH("其他参数的差异") LATER_ZH)                                                          \
    X(suspect_input,                                                                                                    \
      "{path} comes from outside the dump and " STATE_EN(                                                               \
          "the noise") "; nothing before it differs" LATER_EN,                                                          \
      "{path} 来自 dump 之外，且" STATE_ZH("噪声") "；此前没有差异" LATER_ZH)                                           \
    X(suspect_wiring,                                                                                                   \
      "{path} comes from {maker?=outside the dump|{maker}} on the target side and from "                                \
      "{golden_maker?=outside the dump|{golden_maker}} on the golden side["                                             \
      ", and differs by {e:error}]" LATER_EN,                                                                           \
      "{path} 目标侧来自 {maker?=dump 之外|{maker}}，标杆侧来自 "                                          \
      "{golden_maker?=dump 之外|{golden_maker}}[，相差 {e:error}]" LATER_ZH)                                            \
    X(suspect_missing, "is missing from the target" BEHIND_EN LATER_EN,                                                 \
      "在目标侧不存在" BEHIND_ZH LATER_ZH)                                                                              \
    X(suspect_extra,                                                                                                    \
      "{instead?=exists in the target only|runs in the place of {instead}}" BEHIND_EN LATER_EN,                         \
      "{instead?=仅目标侧有|在 {instead} 的位置执行}" BEHIND_ZH LATER_ZH)                                               \
    X(suspect_moved, "runs at another position than on the golden side" BEHIND_EN LATER_EN,                             \
      "执行位置与标杆侧不同" BEHIND_ZH LATER_ZH)                                                                        \
    X(suspect_shape, "{path} has another shape: " SIDES_EN EFFECT_EN LATER_EN,                                          \
      "{path} 形状不同：" SIDES_ZH EFFECT_ZH LATER_ZH)                                                                  \
    X(suspect_dtype, "{path} has another type: " SIDES_EN EFFECT_EN LATER_EN,                                           \
      "{path} 类型不同：" SIDES_ZH EFFECT_ZH LATER_ZH)                                                                  \
    X(suspect_grad, "{path} has another requires_grad: " SIDES_EN EFFECT_EN LATER_EN,                                   \
      "{path} 的 requires_grad 不同：" SIDES_ZH EFFECT_ZH LATER_ZH)                                                     \
    X(suspect_scalar, "{path} is " SIDES_EN EFFECT_EN LATER_EN,                                                         \
      "{path} " SIDES_ZH EFFECT_ZH LATER_ZH)                                                                            \
    X(suspect_update,                                                                                                   \
      "writes other parameters: they differ by {e:error}, although the gradients of both sides "                        \
      "agree" LATER_EN,                                                                                                 \
      "写入的参数不同：相差 {e:error}，而两侧的梯度一致" LATER_ZH)                                                      \
    X(suspect_branch,                                                                                                   \
      "is where gradients part although the forward passes agree: one side alone may detach a "                         \
      "value here" LATER_EN,                                                                                            \
      "前向结果一致，梯度从这里开始不同：可能仅一侧在此截断了梯度" LATER_ZH)                                            \
    X(other_precision,                                                                                                  \
      "the target computes {share:percent0} of its outputs in {type} where the golden side has "                        \
      "{golden_type}[: differences below {noise:error1} of an operator are expected]",                                  \
      "目标侧有 {share:percent0} 的输出以 {type} 计算，而标杆侧为 {golden_type}[：单个算子低于 " \
      "{noise:error1} 的差异属于正常]")                                                                                 \
    X(other_start,                                                                                                      \
      "the runs start from other weights: {unlike} of {parameters} parameters differ by more "                          \
      "than {limit:percent0}; none of them is listed",                                                                  \
      "两次运行的初始权重不同：{parameters} 个参数中有 {unlike} 个相差超过 {limit:percent0}；"   \
      "不逐一列出")                                                                                                     \
    X(other_operators,                                                                                                  \
      "[{module}: ]{golden?=the target alone runs {target}|{target?=the golden side alone runs "                        \
      "{golden}|"                                                                                                       \
      "the target runs {target} where the golden side runs {golden}}}{count?1=|, in "                                   \
      "{count:count} places}; "                                                                                         \
      "{e?=nothing recorded reads the result|0=values behind it agree exactly|values behind it "                        \
      "agree to {e:error}}",                                                                                            \
      "[{module}：]{golden?=仅目标侧运行 {target}|{target?=仅标杆侧运行 {golden}|目标侧运行 "         \
      "{target}，"                                                                                                     \
      "标杆侧为 {golden}}}{count?1=|，共 {count:count} 处}；"                                                   \
      "{e?=没有记录的算子读取其结果|0=其后的数值完全一致|其后的数值一致到 {e:error}}")                                  \
    X(recomputed,                                                                                                       \
      "the {side?golden=golden side|target} runs {count:count} forward "                                                \
      "{count?1=operator|operators} again "                                                                             \
      "during backward (activation checkpointing); {count?1=it repeats|they repeat} the values "                        \
      "of the first run",                                                                                               \
      "{side?golden=标杆侧|目标侧}在反向时重新运行 {count:count} "                                        \
      "个前向算子（激活重计算），数值与首次运行相同")                                                                   \
    X(micro_batches,                                                                                                    \
      "the {side?golden=golden side|target} runs {count:count} micro batches for one of the "                           \
      "other side; their "                                                                                              \
      "calls have no counterpart, so gradients of parameters and the optimizer are compared",                           \
      "{side?golden=标杆侧|目标侧}以 {count:count} "                                                             \
      "个微批次对应另一侧的一个批次；单次调用没有对应项，因此比较参数梯度和优化器")                                     \
    X(divergence,                                                                                                       \
      "step {step} rank {rank}: {errors} {errors?1=node|nodes} in error, {warnings} in warning, "                       \
      "{unmatched} "                                                                                                    \
      "unmatched[, {overflows} with overflow][; the difference begins at {node}]",                                      \
      "步 {step} 卡 {rank}：{errors} 个节点错误，{warnings} 个告警，{unmatched} 个未匹配"              \
      "[，{overflows} 个溢出][；差异始于 {node}]")                                                                      \
    X(overflow,                                                                                                         \
      "is where NaN, infinity or an exploding norm begins: {nodes} {nodes?1=node has|nodes have} "                      \
      "one in step {step} of rank {rank}",                                                                              \
      "是 NaN、无穷或范数爆炸的起点：步 {step} 卡 {rank} 上共有 {nodes} 个节点出现")                                    \
    X(trend_end,                                                                                                        \
      "step {step}, rank {rank}: {curve} ({metric}) has no finite {stat} any more, before it was "                      \
      "{value:figure}[, and {others} {others?1=other|others}]",                                                         \
      "步 {step}，卡 {rank}：{curve}（{metric}）的 {stat} 不再有限，此前为 "                             \
      "{value:figure}[，另有 {others} 个]")                                                                             \
    X(trend_spike,                                                                                                      \
      "step {step}, rank {rank}: {times:figure} times the usual gradient or loss; {curve?=no "                          \
      "layer stands out|{curve} ({metric}) {lead?=is the first to move in that step|moved {lead} "                      \
      "{lead?1=step|steps} before}, to {moved:figure} times its usual {stat}}[, and {others} "                          \
      "{others?1=other|others}]",                                                                                       \
      "步 {step}，卡 {rank}：梯度或损失为平常的 {times:figure} "                                           \
      "倍；{curve?=没有突出的层|{curve}（{metric}）{lead?=在该步最先变化|早 {lead} "                  \
      "步变化}，{stat} 为其平常值的 {moved:figure} 倍}[，另有 {others} 个]")                                            \
    X(trend_deviation,                                                                                                  \
      "step {step}, rank {rank}: {curve} ({metric}) is the first that differs, by {value:figure} "                      \
      "of its {stat}[, and {others} {others?1=other|others}]",                                                          \
      "步 {step}，卡 {rank}：{curve}（{metric}）最先不同，相差其 {stat} 的 {value:figure}[，另有 "    \
      "{others} 个]")                                                                                                   \
    X(sure, "{text} ({percent} % sure)", "{text}（{percent} % 把握）")                                                  \
    X(unlisted,                                                                                                         \
      "{more:count} more {more?1=finding is|findings are} not listed here; the table findings "                         \
      "has {more?1=it|them} all",                                                                                       \
      "另有 {more:count} 条发现未在此列出；全部见 findings 表")

#define VIZ_SENTENCES(X) VIZ_SENTENCES_OF_RUNS(X) VIZ_SENTENCES_OF_COMPARISONS(X)

#endif
