// SPDX-License-Identifier: MIT
// Every word that the page shows, English and Chinese.
const words = {
  overview: ['Overview', '概览'],
  timeline: ['Timeline', '时间线'],
  graph: ['Graph', '图'],
  table: ['Table', '表格'],
  cluster: ['Cluster', '集群'],
  details: ['Details', '详情'],
  search: ['search, or > for a command', '搜索，或用 > 输入命令'],
  step: ['step', '步'],
  rank: ['rank', '卡'],
  all: ['all', '全部'],
  theme: ['light or dark', '浅色或深色'],
  language: ['language', '语言'],
  help: ['keys', '快捷键'],
  events: ['events', '事件'],
  nodes: ['nodes', '节点'],
  wrong: ['What is wrong', '问题'],
  nothingWrong: ['Nothing found. Checked:', '未发现问题。已检查：'],
  showAll: ['show all', '全部显示'],
  facts: ['Facts', '概况'],
  stepTime: ['Time of steps', '每步时间'],
  perRank: ['Where the time goes, per rank', '每卡时间去向'],
  target: ['target', '目标侧'],
  golden: ['golden', '标杆侧'],
  onlyTarget: ['only in target', '仅目标侧有'],
  onlyGolden: ['only in golden', '仅标杆侧有'],
  moved: ['lies elsewhere', '位于别处'],
  name: ['name', '名称'],
  state: ['state', '状态'],
  total: ['total', '总计'],
  mean: ['mean', '平均'],
  longest: ['longest', '最长'],
  share: ['share', '占比'],
  times: ['count', '次数'],
  start: ['start', '开始'],
  duration: ['duration', '时长'],
  domain: ['domain', '域'],
  inputs: ['inputs and outputs', '输入与输出'],
  stack: ['call stack', '调用栈'],
  copyName: ['copy the name', '复制名称'],
  match: ['match', '匹配'],
  unmatch: ['unmatch', '取消匹配'],
  undo: ['undo', '撤销'],
  next: ['next', '下一个'],
  previous: ['previous', '上一个'],
  more: ['more', '更多'],
  noTimeline: ['No timeline is open. Record one with “msprobe run -o DIR -- PROGRAM”, then “msprobe serve DIR”.',
    '没有打开时间线。先用 “msprobe run -o DIR -- PROGRAM” 记录，再用 “msprobe serve DIR” 打开。'],
  noGraph: ['No graph is open. Open a dump, or two: “msprobe serve DUMP --golden OTHER”.',
    '没有打开图。打开一份或两份 dump：“msprobe serve DUMP --golden OTHER”。'],
  noHits: ['Nothing found.', '没有找到。'],
  lost: ['The server does not answer. It may have been stopped; start “msprobe serve” again.',
    '服务器没有响应，可能已停止；请重新运行 “msprobe serve”。'],
  selection: ['selection', '选区'],
  pin: ['pin', '固定'],
  hide: ['hide', '隐藏'],
  live: ['live', '实时'],
  keysOf: ['Keys', '快捷键'],
  filterKeys: ['filter', '过滤'],
  first: ['first divergence', '首个偏差'],
};

let column = (localStorage.getItem('msprobe-lang') ?? navigator.language).startsWith('zh') ? 1 : 0;

export const w = (key) => words[key]?.[column] ?? key;
export const language = () => (column ? 'zh' : 'en');
export function switchLanguage() {
  column = 1 - column;
  localStorage.setItem('msprobe-lang', language());
  document.documentElement.lang = language();
}
