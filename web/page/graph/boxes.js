// SPDX-License-Identifier: MIT
// A module as boxes and edges: its parts in layers from top to bottom, joined where one reads what another wrote.
import {get} from '../shared/api.js';
import {shortName, svg} from '../shared/util.js';
import {w} from '../shared/words.js';

const PARTS = 60, LEAVES = 240, AT_ONCE = 8; // children that are drawn; operators that are looked at; requests
const WIDE = 168, TALL = 34, GAP = 16, BETWEEN = 34, LETTERS = 21; // px
const LETTER = {error: 'E', warning: 'W', pass: '.'};

const rowsOf = (reply) => (reply.only?.rows ?? reply.rows).filter((p) => p.target);

// Calls fn for every value, a few at a time.
async function each(list, fn) {
  const left = [...list];
  await Promise.all(Array.from({length: AT_ONCE}, async () => {
    while (left.length) await fn(left.shift());
  }));
}

// The operators below each part: their values tell the flow.
async function leavesOf(spot, parts) {
  const owner = new Map(), open = parts.map((p) => [p.target, p.target.name]);
  while (open.length && owner.size < LEAVES) {
    const [row, name] = open.shift();
    owner.set(row.name, name);
    if (row.children) for (const p of rowsOf(await get('children', {...spot, target: row.name, limit: LEAVES}))) open.push([p.target, name]);
  }
  return owner;
}

async function edgesOf(spot, owner) {
  const edges = new Map(), outside = new Set();
  await each(owner.keys(), async (leaf) => {
    const {rows} = await get('flow', {...spot, name: leaf, readers: 0}).catch(() => ({rows: []}));
    for (const r of rows) {
      const from = owner.get(r.name), to = owner.get(leaf);
      if (from === undefined) outside.add(to);
      else if (from !== to) edges.set(`${from}\n${to}`, [from, to]);
    }
  });
  return {edges: [...edges.values()], outside};
}

// Parts that one fused operator of the other side stands for are one box.
function boxesOf(parts) {
  const list = [], by = new Map();
  for (const {target: t} of parts) {
    const same = t.partner && by.get(t.partner);
    if (same) same.rows.push(t);
    else list.push({rows: [t]});
    if (t.partner && !same) by.set(t.partner, list.at(-1));
  }
  return list;
}

// Puts every box below all that it reads; edges go forward in execution order.
function layer(boxes, edges) {
  const of = new Map(boxes.flatMap((b) => b.rows.map((r) => [r.name, b]))), rank = new Map(boxes.map((b, i) => [b, i]));
  const pairs = edges.map(([a, b]) => [of.get(a), of.get(b)]).filter(([a, b]) => a && b && rank.get(a) < rank.get(b));
  boxes.forEach((b, i) => {
    const above = pairs.filter(([, to]) => to === b).map(([from]) => from.layer);
    b.layer = above.length ? Math.max(...above) + 1 : pairs.length || i === 0 ? 0 : boxes[i - 1].layer + 1;
  });
  const layers = [];
  for (const b of boxes) (layers[b.layer] ??= []).push(b);
  const wide = Math.max(...layers.map((l) => l?.length ?? 0)) * (WIDE + GAP);
  layers.forEach((l, k) => l.forEach((b, i) => Object.assign(b, {x: wide / 2 + (i - l.length / 2) * (WIDE + GAP) + GAP / 2, y: 20 + k * (TALL + BETWEEN)})));
  return {pairs, wide, tall: 20 + layers.length * (TALL + BETWEEN)};
}

const cut = (s) => (s.length > LETTERS ? `${s.slice(0, LETTERS - 8)}…${s.slice(-7)}` : s);
const worst = (rows) => ['error', 'warning', 'pass'].find((s) => rows.some((r) => r.state === s)) ?? 'none';

// Returns a drawing of the parts of a module; null when it has none.
export async function boxes(spot, module, go) {
  const parts = rowsOf(await get('children', {...spot, target: module, limit: PARTS})).slice(0, PARTS);
  if (!parts.length) return null;
  const {edges, outside} = await edgesOf(spot, await leavesOf(spot, parts)), list = boxesOf(parts), {pairs, wide, tall} = layer(list, edges);
  const image = svg('svg', {class: 'boxes', viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: 'group', 'aria-label': `${w('boxes')} ${module}`});
  const curve = (x0, y0, x1, y1) => svg('path', {class: 'edge', d: `M${x0},${y0} C${x0},${y0 + BETWEEN / 2} ${x1},${y1 - BETWEEN / 2} ${x1},${y1 - 4}`});
  for (const [a, b] of pairs) image.append(curve(a.x + WIDE / 2, a.y + TALL, b.x + WIDE / 2, b.y), svg('path', {class: 'head', d: `M${b.x + WIDE / 2},${b.y} l-4,-7 h8 z`}));
  for (const b of list) {
    const state = worst(b.rows), name = b.rows.map((r) => shortName(r)).join(' + ');
    if (b.rows.some((r) => outside.has(r.name))) image.append(svg('path', {class: 'head dim', d: `M${b.x + 12},${b.y} l-4,-7 h8 z`}, svg('title', {}, w('fromOutside'))));
    const box = svg('g', {class: `box ${state}`, role: 'button', tabindex: 0, 'aria-label': `${name}: ${state}`}, svg('title', {}, b.rows.map((r) => r.name).join('\n')),
        svg('rect', {x: b.x, y: b.y, width: WIDE, height: TALL, rx: 4}), svg('text', {x: b.x + 8, y: b.y + 21, class: 'mark'}, LETTER[state] ?? '·'), svg('text', {x: b.x + 22, y: b.y + 21}, cut(name)));
    const press = () => go(b.rows[0].name);
    box.addEventListener('click', press);
    box.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter') return;
      e.stopPropagation();
      press();
    });
    image.append(box);
  }
  return {image, edges: pairs.length};
}
