// SPDX-License-Identifier: MIT
// Two runs as one flame graph: a step, what lies in it, and what lies in that.  A box is as wide as the longer of both
// sides; its colour says which side is longer, and by how much of a step.
import {get} from './shared/api.js';
import * as place from './shared/place.js';
import {fill, h, time} from './shared/util.js';
import {w} from './shared/words.js';

const ROW = 22, DEEPEST = 16, NARROW = 0.002, FULL = 0.1, STRONG = 50, LETTERS = 0.015; // px; rows; share of the width; share of a step
// with the full colour, per cent of it; share of the width that letters need

// Makes a tree of the rows and returns its root.
function grow(rows) {
  const nodes = new Map(rows.map(([id, parent, name, before, now]) => [id, {id, parent, name, before, now, size: Math.max(before, now), below: []}]));
  for (const n of nodes.values()) if (n.id !== n.parent) nodes.get(n.parent).below.push(n);
  return nodes.get(0);
}

// Lays a node and all below it out, from x on; children that take longer than their parent, on other threads, share its room.
function lay(n, x, wide, depth, out) {
  if (wide < NARROW || depth > DEEPEST) return;
  out.push({n, x, wide, depth});
  const sum = n.below.reduce((s, c) => s + c.size, 0), unit = wide / Math.max(sum, n.size);
  let at = x;
  for (const c of [...n.below].sort((a, b) => b.size - a.size)) {
    lay(c, at, c.size * unit, depth + 1, out);
    at += c.size * unit;
  }
}

const ms = (v) => time(Math.round(v * 1e6));
const sentence = (n) => `${n.name || w('step')}: ${ms(n.before)} → ${ms(n.now)} (${n.now >= n.before ? '+' : '−'}${ms(Math.abs(n.now - n.before))})`;

export async function drawFlame() {
  const rows = await get('flame');
  if (rows.length < 2) return null;
  const root = grow(rows), box = h('div.flame', {role: 'group', 'aria-label': w('flame')}), told = h('div.told', {role: 'status'});
  const say = (n) => fill(told, sentence(n), ' ', n.name && h('a', {href: `#${place.write({screen: 'timeline', q: `"${n.name.split('"')[0]}"`})}`}, w('timeline')));
  const draw = (top) => {
    const boxes = [];
    lay(top, 0, 1, 0, boxes);
    box.style.height = `${(1 + Math.max(...boxes.map((b) => b.depth))) * ROW}px`;
    fill(box, boxes.map(({n, x, wide, depth}) => {
      const share = (n.now - n.before) / root.size, strong = Math.round(Math.min(1, Math.abs(share) / FULL) * STRONG);
      const b = h('button', {title: sentence(n), 'aria-label': sentence(n), onclick: () => { say(n); draw(n === top ? root : n); }, onfocus: () => say(n)}, wide < LETTERS ? '' : n.name || w('step'));
      Object.assign(b.style, {left: `${x * 100}%`, width: `calc(${wide * 100}% - 1px)`, top: `${depth * ROW}px`,
        background: `color-mix(in srgb, var(--${share > 0 ? 'error' : 'accent'}) ${strong}%, var(--panel))`});
      return b;
    }));
    say(top);
  };
  draw(root);
  return [h('h2', {}, w('flame')), h('p.dim', {}, w('flameHint')), box, told];
}
