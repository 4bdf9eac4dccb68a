// SPDX-License-Identifier: MIT
// The cluster: where the time of each rank goes, who waits for whom, what was sent, how fast.
import {get} from '../shared/api.js';
import {overlap, shareBars, stepBars} from '../shared/bars.js';
import {heatMap} from '../shared/heat.js';
import * as place from '../shared/place.js';
import {bytes as size, count, fill, h, percent, svg, time} from '../shared/util.js';
import {w} from '../shared/words.js';

const WIDE = 1100; // px, room of a map
const LISTED = 16; // ranks of the ranking, when there are too many for all

// Table of a mean step for each rank: how much communication is hidden by computing, how much is exposed.
function stepTable(use) {
  const columns = [['step', 'step'], ['computing', 'computing'], ['transfer', 'communication'], ['overlapped', 'overlapped'], ['exposed', 'exposed'],
    ['waiting', 'waiting'], ['bubble', 'bubble'], ['idle', 'free']];
  return h('table.sums.narrow', {}, h('tr', {}, h('th.num', {}, w('rank')), h('th.num', {}, w('times')), columns.map(([t]) => h('th.num', {}, w(t))), h('th.num', {}, w('overlap'))),
      use.map((u) => h('tr', {}, h('td.num', {}, u.which ?? u.rank), h('td.num', {}, count(u.steps)), columns.map(([, k]) => h('td.num', {}, time(u[k]))), h('td.num', {}, overlap(u)))));
}

function breakdown(c) {
  if (!c.use.length) return [h('h2', {}, w('perRank')), shareBars(c.ranks), more(c)];
  return [h('h2', {}, w('perStep')), stepBars(c.use), h('details', {}, h('summary', {}, w('figures')), stepTable(c.use))];
}

// A map of pairs of ranks. With bin > 1 a row or column stands for that many neighbouring ranks and has the lowest as
// its name.
function pairMap(title, rows, columns, value, show, corner, bin) {
  const named = (r) => (bin > 1 ? `${r}–${r + bin - 1}` : r), of = (i, j) => value(rows[i], columns[j]);
  const most = rows.reduce((m, r) => columns.reduce((n, c) => Math.max(n, value(r, c)), m), 1);
  return [h('h2', {}, title), heatMap({rows, columns, value: of, show, share: (v) => v / most, low: '0', high: show(most), wide: WIDE, label: title,
    more: `${corner[0]} ↓ ${corner[1]} →${bin > 1 ? ` · ${w('ranksEach')} ${bin}` : ''}`, go: (i) => place.go({screen: 'timeline', rank: rows[i]}),
    tell: (i, j) => `${corner[0]} ${named(rows[i])} → ${corner[1]} ${named(columns[j])}: ${show(of(i, j))}`})];
}

function waitMap(c) {
  const ranks = [...new Set(c.waits.flatMap(([r, late]) => [r, late]))].sort((a, b) => a - b), at = new Map(c.waits.map(([r, late, ns]) => [`${r} ${late}`, ns]));
  if (!c.waits.length) return null;
  return pairMap(w('whoWaits'), ranks, ranks, (r, l) => at.get(`${r} ${l}`) ?? 0, time, [w('waiting'), w('lastIs')], c.bin);
}

function transferMap(c) {
  if (!c.transfers.length) return [h('h2', {}, w('matrix')), h('p.dim', {}, w('noTransfers'))];
  const from = [...new Set(c.transfers.map((t) => t[0]))], to = [...new Set(c.transfers.map((t) => t[1]))].sort((a, b) => a - b);
  const at = new Map(c.transfers.map((t) => [`${t[0]} ${t[1]}`, t[2]]));
  return pairMap(w('matrix'), from, to, (a, b) => at.get(`${a} ${b}`) ?? 0, size, [w('from'), w('to')], c.bin);
}

const FIGURES = {late: (r) => r[2] / Math.max(r[1], 1), blamed: (r) => r[4], waited: (r) => r[3]};
const SHOWN = {late: percent, blamed: time, waited: time};

// Joins the ranks of each group of a parallel dimension; a group has the largest figure of its ranks.
function foldRanks(list, dimension) {
  if (!dimension) return list.map(([rank, v]) => ({rank, to: rank, step: 1, v}));
  const {size: n, stride} = dimension, groups = new Map();
  for (const [rank, v] of list) {
    const key = Math.floor(rank / (n * stride)) * stride + rank % stride, g = groups.get(key);
    if (!g) groups.set(key, {rank, to: rank, step: stride, v});
    else Object.assign(g, v > g.v ? {worst: rank, v, to: rank} : {to: rank});
  }
  return [...groups.values()];
}

// A cell for each rank, in the order of ranks or of what they cause, folded by a parallel dimension if that is chosen.
function rankMap(c) {
  if (!c.every?.length) return null;
  const box = h('div'), state = {figure: 'late', by: 'cause', fold: ''};
  const choice = (name, list) => h('label.dim', {}, `${w(name)} `, h('select', {onchange: (e) => { state[name] = e.target.value; draw(); }}, list.map(([v, t]) => h('option', {value: v, selected: v === state[name]}, t))));
  const bar = h('div.legend', {}, choice('figure', Object.keys(FIGURES).map((k) => [k, w(`of_${k}`)])), choice('by', [['cause', w('byCause')], ['rank', w('byRank')]]),
      c.dimensions.length > 0 && choice('fold', [['', w('everyRank')], ...c.dimensions.map((d, i) => [String(i), `${d.name} × ${d.size}`])]));
  const draw = () => {
    const cells = foldRanks(c.every.map((r) => [r[0], FIGURES[state.figure](r)]), c.dimensions[state.fold]);
    if (state.by === 'cause') cells.sort((a, b) => b.v - a.v || a.rank - b.rank);
    const across = Math.min(cells.length, cells.length > 2048 ? 200 : cells.length > 256 ? 128 : 64), most = cells.reduce((m, x) => Math.max(m, x.v), 0);
    const rows = Array.from({length: Math.ceil(cells.length / across)}, (_, i) => (state.by === 'rank' ? cells[i * across].rank : i * across + 1)), of = (i, j) => cells[i * across + j];
    const named = (x) => (x.to === x.rank ? `${w('rank')} ${x.rank}` : `${w('ranks')} ${x.rank}–${x.to}${x.step > 1 ? `, ${w('every')} ${x.step}` : ''}${x.worst === undefined ? '' : ` (${w('rank')} ${x.worst})`}`);
    fill(box, heatMap({rows, columns: Array.from({length: across}, (_, j) => j + 1), value: (i, j) => of(i, j)?.v ?? NaN, share: (v) => v / (most || 1), low: '0', high: SHOWN[state.figure](most), wide: WIDE,
      label: w('rankMap'), more: state.figure === 'late' ? '' : null, tell: (i, j) => `${named(of(i, j))}: ${w(`of_${state.figure}`)} ${SHOWN[state.figure](of(i, j).v)}`,
      go: (i, j) => of(i, j) && place.go({screen: 'timeline', rank: of(i, j).worst ?? of(i, j).rank})}));
  };
  draw();
  return [h('h2', {}, w('rankMap')), bar, box];
}

// Tells how many ranks are not listed.
function more(c, listed = Infinity) {
  return c.count > c.ranks.length ? h('p.dim', {}, `${w('moreRanks')} ${count(c.count - Math.min(c.ranks.length, listed))}`) : null;
}

function ranking(c) {
  const mostlyLast = (r) => (r.last > r.collectives / 2 ? 1 : 0);
  const all = c.ranks.filter((r) => r.collectives > 0).sort((a, b) => mostlyLast(b) - mostlyLast(a) || b.blamed - a.blamed);
  const list = c.count > c.ranks.length ? all.slice(0, LISTED) : all;
  if (!list.length) return null;
  const head = [w('rank'), w('cameLast'), w('madeWait'), w('waited'), w('ofTime')];
  return [h('h2', {}, w('ranking')), h('table.sums.narrow.ranking', {}, h('tr', {}, head.map((t) => h('th.num', {}, t))), list.map((r, i) => h('tr', {},
      h('td.num', {}, i === 0 && mostlyLast(r) ? h('span.W', {}, '▲ ') : '', r.rank), h('td.num', {}, `${count(r.last)} / ${count(r.collectives)} (${percent(r.last / r.collectives)})`),
      h('td.num', {}, time(r.blamed)), h('td.num', {}, time(r.wait)), h('td.num', {}, percent(r.wait / Math.max(r.span, 1)))))), more(c, LISTED)];
}

// Fits time = latency + bytes / rate, the model of a link, to the measurements; each operation and size is
// weighted by its relative error. Null when the sizes do not separate latency from rate.
export function fitLink(dots) {
  let [n, x, y, xx, xy] = [0, 0, 0, 0, 0];
  for (const d of dots) {
    const t = d.ns / d.calls, weight = 1 / (t * t);
    n += weight;
    x += weight * d.bytes;
    y += weight * t;
    xx += weight * d.bytes * d.bytes;
    xy += weight * d.bytes * t;
  }
  const det = n * xx - x * x;
  if (dots.length < 3 || !(det > 0)) return null;
  const slope = (n * xy - x * y) / det, latency = Math.max(0, (y - slope * x) / n);
  return slope > 0 ? {latency, rate: 1e9 / slope} : null;
}

// Plots bytes per second against bytes, both logarithmic; a dot for each operation and size.
function bandwidth(c) {
  const dots = c.sizes.filter((s) => s.bytes > 0 && s.ns > 0).map((s) => ({...s, rate: s.bytes * s.calls / s.ns * 1e9}));
  if (!dots.length) return null;
  const W = 900, H = 260, L = 80, B = 28;
  const range = (v) => [Math.floor(Math.log10(Math.min(...v))), Math.max(Math.ceil(Math.log10(Math.max(...v))), Math.floor(Math.log10(Math.min(...v))) + 1)];
  const [x0, x1] = range(dots.map((d) => d.bytes)), [y0, y1] = range(dots.map((d) => d.rate));
  const x = (v) => L + (Math.log10(v) - x0) / (x1 - x0) * (W - L - 16), y = (v) => H - B - (Math.log10(v) - y0) / (y1 - y0) * (H - B - 12);
  const plot = svg('svg', {viewBox: `0 0 ${W} ${H}`, class: 'plot', role: 'img', 'aria-label': w('bandwidth')});
  for (let e = x0; e <= x1; e++) plot.append(svg('line', {x1: x(10 ** e), x2: x(10 ** e), y1: 8, y2: H - B}), svg('text', {x: x(10 ** e), y: H - 8, 'text-anchor': e === x1 ? 'end' : 'middle'}, size(10 ** e)));
  for (let e = y0; e <= y1; e++) plot.append(svg('line', {x1: L, x2: W - 16, y1: y(10 ** e), y2: y(10 ** e)}), svg('text', {x: L - 6, y: y(10 ** e) + 4, 'text-anchor': 'end'}, `${size(10 ** e)}/s`));
  for (const d of dots) {
    const dot = svg('circle', {cx: x(d.bytes), cy: y(d.rate), r: 3});
    dot.append(svg('title', {}, `${d.op} ${size(d.bytes)} × ${count(d.calls)}: ${size(d.rate)}/s`));
    plot.append(dot);
  }
  const fit = fitLink(dots);
  if (fit) {
    const points = Array.from({length: 61}, (_, i) => 10 ** (x0 + (x1 - x0) * i / 60)).map((b) => [b, b / (fit.latency + b / fit.rate * 1e9) * 1e9])
        .filter(([, r]) => r >= 10 ** y0 && r <= 10 ** y1);
    plot.append(svg('polyline', {class: 'fit', points: points.map(([b, r]) => `${x(b).toFixed(1)},${y(r).toFixed(1)}`).join(' ')}));
  }
  return [h('h2', {}, w('bandwidth')), fit && h('p.dim', {}, `┄ ${w('fitted')}: ${w('latency')} ${time(fit.latency)}, ${size(fit.rate)}/s`), plot];
}

export async function open({root, about}) {
  const draw = async () => {
    if (!about.timeline) {
      fill(root, h('div.empty', {}, w('noTimeline')));
      return;
    }
    const c = await get('cluster');
    if (!c.ranks.length) {
      fill(root, h('div.empty', {}, w('noComm')));
      return;
    }
    fill(root, h('div.page', {tabIndex: 0, role: 'region', 'aria-label': w('cluster')}, breakdown(c), ranking(c), rankMap(c), waitMap(c), transferMap(c), bandwidth(c)));
  };
  await draw();
  return {
    go() {},
    refresh(now) {
      about = now;
      return draw();
    },
    hint: () => w('clusterHint'),
  };
}
