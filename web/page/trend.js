// SPDX-License-Identifier: MIT
// Statistics over steps: a map of all targets of a metric, and the curves of the one that was chosen.
import {get} from './shared/api.js';
import {heatMap} from './shared/heat.js';
import * as place from './shared/place.js';
import {digits, fill, h, svg} from './shared/util.js';
import {w} from './shared/words.js';

const W = 1000, H = 180, LEFT = 70, BELOW = 20;

// The curves of a target, a line for each rank, on a logarithmic scale; a gap where a value is not finite.
function curvePlot(t, target, step) {
  const all = t.curves.flatMap((c) => c.points.map(([, v]) => Math.abs(v ?? 0))).filter((v) => v > 0);
  if (!all.length) return h('p.dim', {}, w('noHits'));
  const low = Math.log10(all.reduce((a, b) => Math.min(a, b))), high = Math.max(Math.log10(all.reduce((a, b) => Math.max(a, b))), low + 0.1);
  const x = (s) => LEFT + (s - t.first) / Math.max(t.last - t.first, 1) * (W - LEFT - 10), y = (v) => H - BELOW - (Math.log10(Math.max(Math.abs(v), 10 ** low)) - low) / (high - low) * (H - BELOW - 10);
  const plot = svg('svg', {viewBox: `0 0 ${W} ${H}`, class: 'plot', role: 'img', 'aria-label': `${t.metric} ${target}`});
  for (const v of [10 ** low, 10 ** ((low + high) / 2), 10 ** high]) plot.append(svg('line', {x1: LEFT, x2: W - 10, y1: y(v), y2: y(v)}), svg('text', {x: LEFT - 6, y: y(v) + 4, 'text-anchor': 'end'}, digits(v, 3)));
  for (const s of [t.first, t.last]) plot.append(svg('text', {x: x(s), y: H - 4, 'text-anchor': s === t.first ? 'start' : 'end'}, `${w('step')} ${s}`));
  t.curves.forEach((c) => {
    const parts = [[]];
    for (const [s, v] of c.points) v === null ? parts.push([]) : parts.at(-1).push(`${x(s).toFixed(1)},${y(v).toFixed(1)}`);
    for (const p of parts) {
      const line = svg('polyline', {class: 'curve', points: p.join(' ')});
      line.append(svg('title', {}, `${w('rank')} ${c.rank}`));
      plot.append(line);
    }
  });
  if (step !== undefined) plot.append(svg('line', {x1: x(step), x2: x(step), y1: 0, y2: H - BELOW, class: 'marked'}));
  return [h('p.mono', {}, `${target} (${t.metric}, ${t.stat}), ${t.ranks} ${w(t.ranks === 1 ? 'rank' : 'ranks')}`), plot];
}

// Draws into a box. The address holds the chosen target as "METRIC NAME", and its step.
export async function drawTrend(box) {
  const at = place.read(), [metric, ...rest] = (at.q ?? '').split(' '), target = rest.join(' ');
  const asked = at.metric ?? (metric || undefined), t = await get('trend', {metric: asked}), curve = h('div');
  const values = t.rows.flatMap(([, v]) => v).filter((v) => v > 0), low = Math.log10(values.reduce((a, b) => Math.min(a, b), Infinity)), high = Math.log10(values.reduce((a, b) => Math.max(a, b), 0));
  const show = async (name, step) => fill(curve, curvePlot(await get('trend', {metric: t.metric, target: name}), name, step));
  const stepOf = (j) => t.first + j * t.bin, columns = Array.from({length: t.rows[0]?.[1].length ?? 0}, (_, j) => stepOf(j));
  const choose = (i, j) => {
    const [name] = t.rows[i];
    place.note({q: `${t.metric} ${name}`, step: stepOf(j), metric: null});
    show(name, stepOf(j)).then(() => curve.scrollIntoView({block: 'nearest'}), () => {});
  };
  fill(box, h('h2', {}, w('trendMap')), h('div.legend', {}, h('label.dim', {}, `${w('metric')} `, h('select', {onchange: (e) => {
    place.note({metric: e.target.value, q: null});
    drawTrend(box).catch(() => {});
  }}, t.metrics.map((m) => h('option', {value: m, selected: m === t.metric}, m))))),
  t.rows.length ? heatMap({rows: t.rows.map(([n]) => n), columns, wide: 1100, label: w('trendMap'), low: digits(10 ** low, 3), high: digits(10 ** high, 3),
    value: (i, j) => (t.rows[i][1][j] === null ? NaN : t.rows[i][1][j]), share: (v) => (v === 'nan' ? 1 : v > 0 ? (Math.log10(v) - low) / (high - low || 1) : 0), mark: (i, j) => t.rows[i][1][j] === 'nan',
    tell: (i, j) => `${t.rows[i][0]}, ${w('step')} ${stepOf(j)}${t.bin > 1 ? `–${stepOf(j) + t.bin - 1}` : ''}: ${t.rows[i][1][j] === 'nan' ? w('notFinite') : digits(t.rows[i][1][j], 3)}`, go: choose,
    more: t.targets > t.rows.length ? `${t.rows.length} / ${t.targets}` : null}) : h('p.dim', {}, w('noHits')), curve);
  if (target) await show(target, at.step === undefined ? undefined : Number(at.step));
}
