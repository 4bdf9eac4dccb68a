// SPDX-License-Identifier: MIT
// The drawer of a node: verdict, inputs and outputs of both sides, stack, other ranks and steps.
import {get} from './api.js';
import {mark} from './mark.js';
import * as place from './place.js';
import {copy, digits, h, percent} from './util.js';
import {w} from './words.js';

const STATS = ['Max', 'Min', 'Mean', 'Norm'];
const METRICS = ['Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'MinRelativeErr', 'MeanRelativeErr',
  'NormRelativeErr', 'One Thousandth Err Ratio', 'Five Thousandths Err Ratio'];

// Items are stored as JSON texts; nothing there is an empty list.
function items(text) {
  try {
    return Object.entries(JSON.parse(text || '{}') ?? {});
  } catch {
    return [];
  }
}

const short = (v) => {
  const n = Number(v);
  return v === undefined || v === '' ? '' : Number.isNaN(n) ? String(v) : digits(n);
};

function itemName(name, node) {
  return name.startsWith(`${node}.`) ? name.slice(node.length + 1) : name;
}

// Rows of one side beside those of the other, by their place.
function itemTable(node, mine, partner, other) {
  const rows = [];
  mine.forEach(([name, x], i) => {
    rows.push(itemRow(itemName(name, node), x, mark((x.Result ?? '').toLowerCase() || 'none')));
    if (other[i]) rows.push(itemRow(`= ${itemName(other[i][0], partner)}`, other[i][1], ''));
  });
  const used = METRICS.filter((m) => mine.some(([, x]) => x[m] !== undefined && x[m] !== ' '));
  return [h('table.items', {}, h('tr', {}, ['', '', 'dtype', 'shape', ...STATS].map((t) => h('th', {}, t))), rows),
    used.length > 0 && h('table.items', {}, h('tr', {}, h('th', {}, ''), used.map((m) => h('th.num', {}, m))),
        mine.map(([name, x]) => h('tr', {}, h('td', {}, itemName(name, node)), used.map((m) => h('td.num', {title: x[m]}, short(x[m]))))))];
}

function itemRow(name, x, state) {
  return h('tr', {}, h('td', {}, state), h('td', {}, name), h('td', {}, (x.dtype ?? '').replace('torch.', '')), h('td', {}, x.shape ?? ''),
      STATS.map((s) => h('td.num', {title: x[s]}, short(x[s]))), x.value !== undefined && h('td', {}, x.value));
}

function messages(list) {
  const all = new Set();
  for (const [, x] of list) {
    try {
      for (const m of JSON.parse(x.Err_message || '[]')) all.add(m);
    } catch { /* a text of its own */ }
  }
  return [...all].map((m) => h(`div.${m.startsWith('error') ? 'E' : 'W'}`, {}, m));
}

function stackOf(text) {
  if (!text) return null;
  let lines = text;
  try {
    const v = JSON.parse(text);
    lines = Array.isArray(v) ? v.join('\n') : String(v);
  } catch { /* plain */ }
  return [h('h2', {}, w('stack')), h('pre.mono.stack', {}, lines)];
}

// The node on every rank and step, one letter each.
async function matrix(name, golden) {
  const {rows} = await get('matrix', {name, golden: golden ? 1 : 0});
  if (rows.length < 2) return null;
  const steps = [...new Set(rows.map((r) => r.step))], ranks = [...new Set(rows.map((r) => r.rank))];
  const at = new Map(rows.map((r) => [`${r.step} ${r.rank}`, r]));
  return h('table.matrix', {}, h('tr', {}, h('th', {}, `${w('step')} \\ ${w('rank')}`), ranks.map((r) => h('th', {}, r))),
      steps.map((s) => h('tr', {}, h('th', {}, s), ranks.map((r) => {
        const row = at.get(`${s} ${r}`);
        return h('td', {}, row && h('a', {href: `#${place.write({screen: 'graph', step: s, rank: r, node: name})}`}, mark(row.state)));
      }))));
}

export async function openNode({line, golden, spot, showDrawer, reveal}) {
  const row = line.row, partner = golden ? null : line.pair.golden;
  const [d, other, grid] = await Promise.all([
    get('node', {...spot, name: row.name, golden: golden ? 1 : 0}),
    partner && get('node', {...spot, name: partner.name, golden: 1}),
    matrix(row.name, golden),
  ]);
  const mine = [...items(d.input), ...items(d.output)];
  const theirs = other ? [...items(other.input), ...items(other.output)] : [];
  showDrawer(h('h2.mono', {}, mark(row.state), ' ', row.name, ' ',
      h('button', {title: w('copyName'), onclick: () => copy(row.name)}, w('copy'))),
  partner && h('div.dim.mono', {}, '= ', h('a', {href: '#', onclick: (e) => {
    e.preventDefault();
    reveal(partner.name, true);
  }}, partner.name)),
  d.how && h('div.dim', {}, `${w('why')} ${d.how}`, d.confidence ? ` · ${w('confidence')} ${percent(d.confidence)}` : ''), d.fate && d.fate !== 'matched' && h('div.dim', {}, `${w('fate')}: ${d.fate}`, d.kin ? ` · ${d.kin}` : ''),
  messages(mine), mine.length > 0 && [h('h2', {}, w('inputs')), itemTable(row.name, mine, partner?.name, theirs)], grid, stackOf(d.stack));
}
