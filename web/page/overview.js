// SPDX-License-Identifier: MIT
// The first screen: the findings of this run, each with links to its evidence.
import {get} from './shared/api.js';
import {shareBars, stepBars} from './shared/bars.js';
import * as place from './shared/place.js';
import {heatMap} from './shared/heat.js';
import {bytes, count, digits, fill, h, moment, svg, time} from './shared/util.js';
import {extent, language, w} from './shared/words.js';

const SHOWN = 10, RANKS = 16, LAYERS = 200, MODULE = 0;
const ABOUT_RANKS = /straggl|slow_link|fail_slow|imbalance|wait|skew|hang|mismatch/;
const LETTER = {error: 'E', warning: 'W', info: 'i'};
const CLASS = {error: 'E', warning: 'W', info: 'I'};

// The sentence of a suspect begins with the name of its node.
function subject(f) {
  const at = place.read(f.place);
  return at.node && f.kind !== 'divergence' && [h('b.mono', {}, at.node), ' '];
}

// Links to the evidence: the place of the finding, and related views.
function evidence(f) {
  const at = place.read(f.place), links = [[at.screen, f.place]];
  if (at.screen === 'graph' && at.node) links.push(['rows', place.write({screen: 'table', step: at.step, rank: at.rank, q: `"${at.node}"`})]);
  if (at.screen === 'timeline' && ABOUT_RANKS.test(f.kind)) links.push(['cluster', 'cluster']);
  return links.map(([to, text]) => h('a', {href: `#${text}`}, w(to)));
}

function finding(f) {
  return h(`div.finding.${CLASS[f.severity]}`, {},
      h('span.letter', {title: f.severity}, LETTER[f.severity]), h('span.text', {}, subject(f), f.text), evidence(f));
}

function findingList(list, about) {
  const box = h('div.findings');
  const draw = (n) => fill(box, list.slice(0, n).map(finding),
      list.length > n && h('button', {onclick: () => draw(list.length)}, `${w('showAll')} (${list.length})`));
  if (list.length) draw(SHOWN);
  else fill(box, h('div.finding.P', {}, h('span.letter', {}, '.'), h('span.text', {}, w('nothingWrong'), ' ', checked(about))));
  return box;
}

function checked({timeline: t, graph: g, trend}) {
  const parts = [];
  if (t) parts.push(`${count(t.events)} ${w('events')} (${w('checkedRun')})`);
  if (trend) parts.push(w('checkedTrend'));
  if (g) parts.push(`${extent(g)}${g.dual ? `, ${w('target')} – ${w('golden')}` : ''}`);
  return parts.join('; ');
}

// Bars of the steps of a process, each the longest of several when there are many; a click goes to the step.
function stepPlot(steps, median) {
  const width = 900, height = 80, most = Math.max(...steps.map((s) => s[3]));
  const each = width / steps.length;
  const plot = svg('svg', {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'steps', role: 'img', 'aria-label': w('stepTime')});
  steps.forEach((s, i) => {
    const tall = Math.max(1, (s[3] / most) * (height - 4));
    const bar = svg('rect', {x: i * each, y: height - tall, width: Math.max(1, each - 1), height: tall});
    bar.append(svg('title', {}, `${w('step')} ${s[1]}: ${time(s[3])}`));
    bar.addEventListener('click', () => place.go({screen: 'timeline', t0: s[2], t1: s[2] + s[3]}));
    plot.append(bar);
  });
  return [h('div.dim.legend', {}, h('span', {}, `${w('longest')} ${time(most)}`), h('span', {}, `${w('stepMedian')} ${time(median)}`),
    h('span', {}, `${w('step')} ${steps[0][1]} – ${steps.at(-1)[1]}`)), plot];
}

const TALL = 110, DECADES_LEAST = 2;

// The largest difference of each node in execution order, on a logarithmic scale: what rounding explains
// is a line, suspects stand out, and a click goes to the node.
function differencePlot(p, at) {
  const real = p.points.filter(([, v]) => v > 0);
  if (!real.length) return null;
  const most = Math.max(...real.map(([, v]) => v)), least = Math.min(p.floor ?? Infinity, ...real.map(([, v]) => v));
  const low = Math.min(Math.log10(least), Math.log10(most) - DECADES_LEAST), high = Math.log10(most), width = 900;
  const y = (v) => TALL - 4 - (TALL - 12) * Math.max(0, (Math.log10(v) - low) / (high - low)), x = (i) => i / p.nodes * width;
  const each = Math.max(1, width / Math.max(p.points.length, 1) - 0.5), marked = new Map(p.suspects);
  const plot = svg('svg', {viewBox: `0 0 ${width} ${TALL}`, preserveAspectRatio: 'none', class: 'grows', role: 'img', 'aria-label': w('grows')});
  for (const [i, v, state, name] of real) {
    const bar = svg('rect', {x: x(i), y: y(v), width: each, height: TALL - y(v), class: marked.has(i) ? 'suspect' : state});
    bar.append(svg('title', {}, `${name}: ${digits(v, 3)}`));
    bar.addEventListener('click', () => place.go({screen: 'graph', ...at, node: name}));
    plot.append(bar);
  }
  if (p.floor > 0) plot.append(svg('line', {x1: 0, x2: width, y1: y(p.floor), y2: y(p.floor), class: 'floor'}));
  for (const [i] of p.suspects) plot.append(svg('line', {x1: x(i), x2: x(i), y1: 0, y2: TALL, class: 'suspect'}));
  return [h('h2', {}, w('grows')), h('div.dim.legend', {}, h('span', {}, `${p.figure}, ${w('largest')} ${digits(most, 3)}`),
      p.floor > 0 && h('span', {}, h('i.floor'), `${w('floor')}: ${digits(p.floor, 2)}`),
      p.suspects.map(([, name]) => h('a.E', {href: `#${place.write({screen: 'graph', ...at, node: name})}`}, `${w('suspect')} ${name}`))), plot];
}

const worst = ({target, golden, below = [0, 0, 0, 0]}) => {
  const row = target ?? golden;
  return row.state === 'error' || below[0] ? 'error' : row.state === 'warning' || below[1] ? 'warning' : row.state === 'unmatched' || below[2] ? 'unmatched' : row.state;
};

// The parts of the model in execution order, coloured by the worst state in them.
async function layerStrip(at) {
  const ask = (name) => get('children', {...at, limit: LAYERS, target: name, partner: undefined, unfold: name === undefined ? 1 : null});
  const top = await ask(), rows = top.only?.rows ?? top.rows;
  const model = rows.find((r) => r.target?.children && r.target.kind === MODULE);
  if (!model) return null;
  const parts = (await ask(model.target.name)).rows.filter((r) => r.target);
  return parts.some((r) => ['warning', 'error'].includes(worst(r))) && [h('div.dim.legend', {}, h('span', {}, `${w('layers')}: ${model.target.short ?? model.target.name}`)), h('div.layers', {},
      parts.map((r) => h(`a.${worst(r)}`, {href: `#${place.write({screen: 'graph', ...at, node: r.target.name})}`, title: `${r.target.name}: ${worst(r)}`})))];
}

// What proves the first finding of a comparison, at its step and rank.
async function comparison(g, list) {
  const {step, rank} = place.read(list.find((f) => place.read(f.place).screen === 'graph')?.place ?? 'graph');
  const at = {step: step ?? g.steps[0], rank: rank ?? g.ranks[0]};
  const [profile, layers] = await Promise.all([get('profile', at), layerStrip(at)]);
  return [differencePlot(profile, at), layers];
}

const LANES = 16; // steps and ranks of a dump

// The largest norm of each node in execution order, a row for each step and rank.
async function dumpMap(g) {
  const spots = g.steps.flatMap((step) => g.ranks.map((rank) => ({step, rank}))).slice(0, LANES);
  const rows = await Promise.all(spots.map((at) => get('profile', at))), n = Math.max(...rows.map((r) => r.nodes));
  const across = Math.min(n, 300), cells = rows.map((r) => {
    const list = new Map();
    for (const [i, v, , name] of r.points) list.set(Math.floor(i * across / n), [v, name]);
    return list;
  });
  const all = cells.flatMap((c) => [...c.values()].map(([v]) => v)).filter((v) => v > 0), low = Math.log10(all.reduce((a, b) => Math.min(a, b), Infinity)), high = Math.log10(all.reduce((a, b) => Math.max(a, b), 0));
  if (!all.length) return null;
  const named = spots.map(({step, rank}) => `${w('step')} ${step} ${w('rank')} ${rank}`);
  return [h('h2', {}, w('norms')), heatMap({rows: named, columns: Array.from({length: across}, (_, i) => i + 1), wide: 1100, label: w('norms'), low: digits(10 ** low, 3), high: digits(10 ** high, 3),
    value: (i, j) => cells[i].get(j)?.[0] ?? NaN, share: (v) => (v > 0 ? (Math.log10(v) - low) / (high - low || 1) : 0),
    tell: (i, j) => `${named[i]}: ${cells[i].get(j)[1]} ${digits(cells[i].get(j)[0], 3)}`, go: (i, j) => cells[i].has(j) && place.go({screen: 'graph', ...spots[i], node: cells[i].get(j)[1]})})];
}

// What the first failing rows of a table say; of a table without sentences, how many rows fail.
async function sheetFindings(sheet) {
  const {total, rows} = await get('sheet', {failing: 1, limit: SHOWN}), said = sheet.columns.indexOf('text');
  const link = () => h('a', {href: total ? '#table?failing=1' : '#table'}, w('table'));
  if (total && said >= 0) {
    const letter = (r) => (r.state === 'error' ? 'E' : 'W');
    return h('div.findings', {}, rows.map((r) => h(`div.finding.${letter(r)}`, {}, h('span.letter', {}, letter(r)), h('span.text', {}, r.values[said]), link())));
  }
  return h('div.findings', {}, h(`div.finding.${total ? 'E' : 'P'}`, {}, h('span.letter', {}, total ? 'E' : '.'),
      h('span.text', {}, `${count(sheet.rows)} ${w('rows')}, ${count(total)} ${w('failingRows')}`), link()));
}

// The lanes that prove the first finding of a run.
async function worstStep(about, list) {
  const f = list.map((x) => ({...x, at: place.read(x.place)})).find(({at}) => at.screen === 'timeline' && at.from && at.rank !== undefined);
  if (!f) return null;
  const {glimpse} = await import('./timeline/glimpse.js'), picture = await glimpse(about, f.at, () => place.go(f.place));
  return picture && [h('h2', {}, w('worstStep')), h('a', {href: `#${f.place}`, 'aria-label': w('worstStep')}, picture)];
}

function timelineFacts(t, more) {
  return [[w('command'), more.command], [w('started'), more.start_ms && moment(more.start_ms)], [w('recordedBy'), more.tool],
    [w('worldSize'), more.world], [w('hosts'), more.hosts], [w('events'), count(t.events)], [w('duration'), time(t.length)],
    [w('processes'), count(t.processes)], [w('tracks'), count(t.tracks)], [w('steps'), more.steps && count(more.steps)],
    [w('size'), more.bytes && bytes(more.bytes)], [w('overhead'), more.overhead && `${digits(100 * more.overhead, 2)} %`]];
}

function graphFacts(g, more) {
  return [[w('framework'), more.framework], [w('task'), g.task || '–'], [w('rank'), g.ranks.join(', ')], [w('step'), g.steps.join(', ')],
    [w('size'), more.bytes && bytes(more.bytes)], [w('made'), more.made_ms && moment(more.made_ms)], [w('recordedBy'), more.tool]];
}

function facts({timeline: t, graph: g, path, golden}, more) {
  const rows = [[w('path'), path], [w('golden'), golden ?? more.graph?.golden], ...(t ? timelineFacts(t, more.timeline ?? {}) : []),
    ...(g ? graphFacts(g, more.graph ?? {}) : [])];
  return h('div.facts', {}, rows.filter(([, v]) => v).map(([k, v]) => [h('span.dim', {}, k), h('span.mono', {}, v)]));
}

function breakdown(c) {
  if (!c?.ranks.length && !c?.use.length) return null;
  const all = c.use.length ? c.use : c.ranks;
  return [h('h2', {}, w(c.use.length ? 'perStep' : 'perRank')), (c.use.length ? stepBars : shareBars)(all.slice(0, RANKS)),
    all.length > RANKS && h('p', {}, h('a', {href: '#cluster'}, `${w('showAll')} (${all.length})`))];
}

// Keys that go from one finding to the next, by the first link of each.
function addKeys(keys, root) {
  const step = (by) => {
    const links = [...root.querySelectorAll('.finding a:first-of-type')], now = links.findIndex((a) => a.parentElement.contains(document.activeElement));
    links[now < 0 ? (by > 0 ? 0 : links.length - 1) : (now + by + links.length) % links.length]?.focus();
  };
  keys.add('view', 'e', 'next finding', () => step(1));
  keys.add('view', 'E', 'previous finding', () => step(-1));
}

export async function open({root, about, keys, opening}) {
  if (about.shelf && !about.timeline && !about.graph && !about.trend && !about.sheet) return (await import('./shelf.js')).open({root, about, opening});
  addKeys(keys, root);
  let drawn = null; // draws anew what the address says
  const draw = async () => {
    const [list, steps, cluster, more] = await Promise.all([get('findings', {lang: language()}), about.timeline ? get('steps') : [], about.timeline ? get('cluster') : null, get('facts')]);
    const proof = h('div'), into = (box) => (parts) => fill(box, parts), lanes = h('div'), trend = h('div');
    const trended = () => import('./trend.js').then((m) => m.drawTrend(trend));
    if (about.trend) trended().catch((e) => fill(trend, h('div.failure', {}, e.message)));
    drawn = about.trend ? trended : null;
    if (about.graph) (about.graph.dual ? comparison(about.graph, list) : dumpMap(about.graph)).then(into(proof), () => {});
    if (about.pair) import('./flame.js').then((m) => m.drawFlame()).then(into(proof), () => {});
    if (about.timeline) worstStep(about, list).then(into(lanes), () => {});
    fill(root, h('div.page', {tabIndex: 0, role: 'region', 'aria-label': w('overview')}, h('h2', {}, w('wrong')), about.sheet && !about.graph && await sheetFindings(about.sheet), about.sheet && !about.graph && !about.timeline ? null : findingList(list, about), proof, lanes, trend,
        steps.length > 1 && [h('h2', {}, w('stepTime')), stepPlot(steps, more.timeline.step_median_ns)],
        breakdown(cluster), h('h2', {}, w('facts')), facts(about, more)));
  };
  await draw();
  return {
    go: () => drawn?.().catch(() => {}),
    refresh(now) {
      about = now;
      return draw();
    },
    hint: () => w('overviewHint'),
  };
}

