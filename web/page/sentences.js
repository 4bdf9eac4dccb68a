// SPDX-License-Identifier: MIT
// Findings are sentences of the reports, in English; in Chinese they are told phrase by phrase.  What has
// no phrase here stays as it is.
import {language} from './words.js';

const PHRASES = [
  // runs
  [/^rank (\S+) makes the others wait/, '卡 $1 让其他卡等待'],
  [/ in steps? (\d+) to (\d+)/, '（第 $1 至 $2 步）'],
  [/it computes (.+?) longer a step than its partners/, '每步比同伴多计算 $1'],
  [/([\d.]+ %) of the step/, '占每步的 $1'],
  [/^the link from rank (\S+) to rank (\S+) is slow: (\S+) takes ([\d.]+) times as long as on the (\d+) links alike/, '卡 $1 到卡 $2 的链路慢：$3 耗时是其余 $5 条同类链路的 $4 倍'],
  [/^a link among the (\d+) ranks (\S+) \.\. (\S+) \((.+?)\) is slow: (.+?) of (.+?) takes ([\d.]+) times as long as in the (\d+) communicators alike/,
    '卡 $2 至 $3（共 $1 卡，$4）之间有慢链路：$6 的 $5 耗时是 $8 个同类通信域的 $7 倍'],
  [/^step (\d+) of (.+?) took (.+?), ([\d.]+) times the median of all steps/, '$2 的第 $1 步耗时 $3，是所有步中位数的 $4 倍'],
  [/^(.+?) lost ([\d,]+) records? while recording; figures of it are too low/, '$1 记录时丢失 $2 条，其数值偏低'],
  [/^(.+?) has ([\d,]+) ranges? that never ended/, '$1 有 $2 个区间未结束'],
  [/^(.+?) did not close its capture: it was killed, crashed, or left by _exit/, '$1 未正常结束记录：被杀死、崩溃或以 _exit 退出'],
  [/^recording took about ([\d.]+ %) of the time of (.+?); exclude a domain to get less/, '记录约占 $2 时间的 $1；排除某个域可减少'],
  [/^the device of (.+?) did not come to (.+?) on (.+?) for ([\d.]+ s)/, '$1 的设备 $4 未执行到 $3 上的 $2'],
  [/^rank (\S+) did not come to (.+?), in which (\d+) ranks? waited for ([\d.]+ s)/, '卡 $1 未到达 $2，其中 $3 张卡等待了 $4'],
  [/^(.+?) waited in (.+?) for ([\d.]+ s)/, '$1 在 $2 中等待了 $3'],
  // comparisons
  [/^step (\d+) rank (\d+): ([\d,]+) nodes in error, ([\d,]+) in warning, ([\d,]+) unmatched/, '步 $1 卡 $2：$3 个节点错误，$4 个告警，$5 个未匹配'],
  [/is the first of ([\d,]+) nodes? with NaN, infinity or an exploding norm in step (\d+) of rank (\d+)/, '是步 $2 卡 $3 上 $1 个出现 NaN、无穷或范数爆炸的节点中的第一个'],
  [/, ([\d,]+) with overflow/, '，$1 个溢出'],
  [/; the first to differ is /, '；首个差异节点是 '],
  [/introduces relL2 /, '引入 relL2 '],
  [/introduces a relative difference of /, '引入相对差异 '],
  [/introduces a change of the output's norm by /, '使输出范数变化 '],
  [/introduces the first difference at all, /, '引入第一个差异，'],
  [/introduces NaN or inf: one side's output has it and no input of either/, '引入 NaN 或 inf：一侧输出有而两侧输入都没有'],
  [/its inputs explain/, '其输入可解释的量'],
  [/the noise of this pair explains/, '这对数据的噪声可解释的量'],
  [/(bf16|fp16|fp32|fp8) rounding explains/, '$1 舍入可解释的量'],
  [/, the floor is /, '，下限为 '],
  [/(its )?inputs agree exactly/, '输入完全一致'],
  [/(its )?inputs agree to /, '输入一致到 '],
  [/ × what this pair shows elsewhere; single elements differ by /, ' × 这对数据别处所见；单个元素相差 '],
  [/, which hides it/, '，掩盖了它'],
  [/ is a parameter and /, ' 是参数，且'],
  [/ is made by no recorded operator and /, ' 并非由所记录的算子产生，且'],
  [/has NaN or inf on one side alone/, '仅一侧有 NaN 或 inf'],
  [/has another checksum/, '校验和不同'],
  [/ × what other parameters do/, ' × 其他参数的差异'],
  [/ × the noise/, ' × 噪声'],
  [/; nothing before it differs/, '；此前没有差异'],
  [/is not there in the target/, '在目标侧不存在'],
  [/is there in the target alone/, '仅目标侧有'],
  [/runs at another place than on the golden side/, '执行位置与标杆侧不同'],
  [/; its output differs by /, '；其输出相差 '],
  [/; no effect on values is seen/, '；未见对数值的影响'],
  [/everything before it agrees exactly, and of equal values this operator makes equal ones/, '此前完全一致，且该算子对相同的值给出相同的结果'],
  [/; ([\d,]+) later nodes? only propagates? it/, '；其后 $1 个节点只是传播'],
  [/differs first: its inputs have equal checksums, its output has not/, '首先出现差异：输入校验和相同，输出不同'],
  [/ × what /, ' × '],
  [/ and differs by |differs by /, '相差 '],
];

export function sentence(text) {
  if (language() !== 'zh') return text;
  return PHRASES.reduce((t, [from, to]) => t.replace(from, to), text);
}
