// SPDX-License-Identifier: MIT
// The drawer of a node: verdict, inputs and outputs of both sides, stack, other ranks and steps.
import {get} from '../shared/api.js';
import {mark} from '../shared/mark.js';
import * as place from '../shared/place.js';
import {count, copy, digits, h, percent, shortName, svg} from '../shared/util.js';
import {w} from '../shared/words.js';

const STATS = ['Max', 'Min', 'Mean', 'Norm'];
const METRICS = ['NormRelativeErr', 'Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'MinRelativeErr', 'MeanRelativeErr',
  'One Thousandth Err Ratio', 'Five Thousandths Err Ratio'];

// Parses items, which are stored as JSON text; an empty text is an empty list.
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

// Lists the items of one side, each followed by the item of the other side at the same position.
function itemTable(row, mine, partner, other) {
  const rows = [], node = row.name;
  mine.forEach(([name, x], i) => {
    const state = row.suspect && itemName(name, node).startsWith('output') ? 'error' : (x.Result ?? '').toLowerCase() || 'none';
    rows.push(itemRow(itemName(name, node), x, mark(state)));
    if (other[i]) rows.push(itemRow(`= ${itemName(other[i][0], partner)}`, other[i][1], ''));
  });
  const used = METRICS.filter((m) => mine.some(([, x]) => x[m] !== undefined && x[m] !== ' '));
  return [h('table.items', {tabIndex: 0}, h('tr', {}, ['', '', 'dtype', 'shape', ...STATS].map((t) => h(t ? 'th' : 'td', {}, t))), rows),
    used.length > 0 && h('table.items', {tabIndex: 0}, h('tr', {}, h('td', {}, ''), used.map((m) => h('th.num', {}, m))),
        mine.map(([name, x]) => h('tr', {}, h('td', {}, itemName(name, node)), used.map((m) => h('td.num', {title: x[m]}, short(x[m]))))))];
}

function itemRow(name, x, state) {
  return h('tr', {}, h('td', {}, state), h('td', {}, name), h('td', {}, (x.dtype ?? '').replace('torch.', '')), h('td', {}, x.shape ?? ''),
      STATS.map((s) => h('td.num', {title: x[s]}, short(x[s]))), x.value !== undefined && h('td', {}, x.value));
}

// ---- charts of values ---------------------------------------------------------------

const statsOf = (x) => (x ? ['Min', 'Mean', 'Max'].map((k) => Number(x[k])) : []);
const isRange = (v) => v.length === 3 && v.every(Number.isFinite);

// Draws the range from minimum to maximum with a mark at the mean, both sides on one scale.
function rangeBar(a, b) {
  const all = [a, b].filter(isRange), low = Math.min(...all.map((v) => v[0])), high = Math.max(...all.map((v) => v[2]));
  const x = (v) => (high > low ? 4 + (v - low) / (high - low) * 212 : 110);
  const plot = svg('svg', {viewBox: '0 0 220 20', class: 'chart range', role: 'img', 'aria-label': w('ranges')});
  all.forEach((v, i) => {
    const y = all.length === 1 ? 10 : 6 + 8 * i, other = all.length === 1 ? !isRange(a) : i === 1;
    plot.append(svg('line', {x1: x(v[0]) - 1, x2: x(v[2]) + 1, y1: y, y2: y, class: `span${other ? ' other' : ''}`}),
        svg('line', {x1: x(v[1]), x2: x(v[1]), y1: y - 4, y2: y + 4, class: 'mean'}));
  });
  plot.append(svg('title', {}, all.map((v) => v.map((n) => digits(n)).join(' … ')).join('   ')));
  return plot;
}

function ranges(node, mine, theirs) {
  const rows = mine.map(([name, x], i) => [itemName(name, node), statsOf(x), statsOf(theirs[i]?.[1])]).filter(([, a, b]) => isRange(a) || isRange(b));
  if (!rows.length) return null;
  return [h('h2', {}, w('ranges'), h('span.dim.whole', {}, h('i.key'), w('target')), theirs.length > 0 && h('span.dim.whole', {}, h('i.key.other'), w('golden'))),
    h('div.facts', {}, rows.map(([name, a, b]) => [h('span.mono', {}, name), rangeBar(a, b)]))];
}

// Draws the distribution of the elements: this side filled, the other side as a line.
function histogram(a, b) {
  const all = [a, b].filter(Boolean), real = all.filter((v) => v.count > v.nan + v.inf);
  const low = Math.min(...real.map((v) => v.low)), high = Math.max(...real.map((v) => v.high));
  const most = Math.max(...real.flatMap((v) => v.bins.map((n) => n / Math.max(v.count, 1)))), W = 480, H = 72;
  const x = (v) => (high > low ? (v - low) / (high - low) * W : W / 2), edge = (v, i) => x(v.low + (v.high - v.low) * i / v.bins.length);
  const y = (v, n) => H - n / Math.max(v.count, 1) / most * (H - 4);
  const plot = svg('svg', {viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', class: 'chart', role: 'img', 'aria-label': w('spread')});
  if (real.includes(a)) a.bins.forEach((n, i) => plot.append(svg('rect', {x: edge(a, i), y: y(a, n), width: Math.max(edge(a, i + 1) - edge(a, i) - 0.5, 0.8), height: H - y(a, n), class: 'mine'})));
  if (real.includes(b)) plot.append(svg('polyline', {class: 'theirs', points: b.bins.flatMap((n, i) => [[edge(b, i), y(b, n)], [edge(b, i + 1), y(b, n)]]).map((p) => p.map((v) => v.toFixed(1)).join(',')).join(' ')}));
  const told = (v) => `${count(v.count)} × ${v.dtype}${real.includes(v) ? `, ${digits(v.low)} … ${digits(v.high)}` : ''}${v.zeros ? `, ${percent(v.zeros / v.count)} ${w('zeros')}` : ''}${v.nan ? `, ${count(v.nan)} NaN` : ''}${v.inf ? `, ${count(v.inf)} inf` : ''}`;
  return [real.length > 0 && plot, all.map((v, i) => h('div.dim.mono', {}, h(`i.key${v === b ? '.other' : ''}`), i || v === b ? `${w('golden')} ` : '', told(v)))];
}

const kept = ([, x]) => x.data_name && x.data_name !== '-1';
const ask = (spot, name, golden, item) => get('histogram', {...spot, name, golden: golden ? 1 : 0, item}).catch(() => null);

// Draws histograms of all items whose elements were kept; null if there are none.
async function histograms(spot, name, golden, mine, partner, theirs) {
  const list = await Promise.all(mine.map(async (x, i) => {
    const other = theirs[i];
    const [a, b] = await Promise.all([kept(x) && ask(spot, name, golden, x[0]), other && kept(other) && ask(spot, partner, true, other[0])]);
    return (a || b) && [h('h3', {}, itemName(x[0], name)), histogram(a || null, b || null)];
  }));
  return list.some(Boolean) ? [h('h2', {}, w('spread')), list] : null;
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

// Draws the state of the node on every rank and step, one letter each.
async function matrix(name, golden) {
  const {rows} = await get('matrix', {name, golden: golden ? 1 : 0});
  if (rows.length < 2) return null;
  const steps = [...new Set(rows.map((r) => r.step))], ranks = [...new Set(rows.map((r) => r.rank))];
  const at = new Map(rows.map((r) => [`${r.step} ${r.rank}`, r]));
  return h('table.matrix', {}, h('tr', {}, h('th', {}, `${w('step')} \\ ${w('rank')}`), ranks.map((r) => h('th', {}, r))),
      steps.map((s) => h('tr', {}, h('th', {}, s), ranks.map((r) => {
        const row = at.get(`${s} ${r}`);
        return h('td', {}, row && h('a', {href: `#${place.write({screen: 'graph', step: s, rank: r, node: name})}`}, row.state === 'none' ? '·' : mark(row.state)));
      }))));
}

// Returns the partners of a communication call: [{rank, node}], sorted by rank.
function partnersOf(links) {
  try {
    return [JSON.parse(links || '{}')].flat().flatMap((x) => Object.entries(x?.nodes_info ?? {}))
        .map(([rank, [, node]]) => ({rank: Number(rank), node})).sort((a, b) => a.rank - b.rank);
  } catch {
    return [];
  }
}

function partnerList(list, step) {
  if (!list.length) return null;
  return [h('h2', {}, w('partners')), h('div.facts', {}, list.map((p) => [h('span.dim', {}, `${w('rank')} ${p.rank}`),
    h('a.mono', {href: `#${place.write({screen: 'graph', step, rank: p.rank, node: p.node})}`}, p.node)]))];
}

// Draws the states of a module's children on every rank, so that a differing rank stands out.
async function strip(row, golden, spot, ranks) {
  if (!row.children || ranks.length < 2) return null;
  const {nodes, ranks: list} = await get('strip', {step: spot.step, name: row.name, golden: golden ? 1 : 0});
  if (!nodes.length) return null;
  const cell = (n, state, rank) => h('td', {}, state && h('a', {href: `#${place.write({screen: 'graph', step: spot.step, rank, node: n.name})}`}, mark(state)));
  return [h('h2', {}, w('belowOnRanks')), h('div.scroll', {}, h('table.matrix', {}, h('tr', {}, h('th', {}, w('rank')), list.map((r) => h('th', {}, r))),
      nodes.map((n) => h('tr', {}, h('th.mono', {title: n.name}, shortName(n)), n.states.map((s, i) => cell(n, s, list[i]))))))];
}

// Fills the drawer; returns the node's partners on other ranks.
export async function openNode({line, golden, spot, showDrawer, reveal, verdict, about}) {
  const row = line.row, partner = golden ? null : line.pair.golden;
  const [d, other, grid, below] = await Promise.all([
    get('node', {...spot, name: row.name, golden: golden ? 1 : 0}),
    partner && get('node', {...spot, name: partner.name, golden: 1}),
    matrix(row.name, golden),
    strip(row, golden, spot, about.graph.ranks),
  ]);
  const mine = [...items(d.input), ...items(d.output)];
  const theirs = other ? [...items(other.input), ...items(other.output)] : [];
  const name = h('h2.mono', {}, mark(row.state), ' ', row.name, ' ', h('button', {title: w('copyName'), onclick: () => copy(row.name)}, w('copy')));
  const goTo = (other) => h('a', {href: '#', onclick: (e) => {
    e.preventDefault();
    reveal(other, !golden);
  }}, other);
  const paired = partner && h('div.dim.mono', {}, '= ', goTo(partner.name));
  // The nodes in place of a fused operator; q, k and v of one merged projection.
  const also = d.also?.length > 0 && h('div.dim.mono', {title: w('alsoWith')}, '+ ', d.also.map((k, i) => [i > 0 && ', ', goTo(k.name)]));
  const {dual} = about.graph;
  const why = dual && d.how && h('div.dim', {}, `${w('why')} ${d.how}`, d.confidence ? ` · ${w('confidence')} ${percent(d.confidence)}` : '');
  const fate = dual && d.fate && d.fate !== 'matched' && h('div.dim', {}, `${w('fate')}: ${d.fate}`, d.kin ? ` · ${d.kin}` : '');
  const partners = partnersOf(d.links);
  const show = (spread) => showDrawer(name, verdict && h('p.E', {}, `E■ ${verdict}`), paired, also, messages(mine), why, fate,
      mine.length > 0 && [h('h2', {}, w('inputs')), itemTable(row, mine, partner?.name, theirs)],
      ranges(row.name, mine, theirs), spread, partnerList(partners, spot.step), grid && h('div.scroll', {}, grid), below, stackOf(d.stack));
  show(null);
  if (mine.some(kept)) show(await histograms(spot, row.name, golden, mine, partner?.name, theirs));
  return {partners};
}
