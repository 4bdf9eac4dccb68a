// SPDX-License-Identifier: MIT
// A small picture of the worst step for the overview: the rank that comes last, a few that wait for it, and their lanes.
import {bytes, fetchTexts, get} from '../shared/api.js';
import {h} from '../shared/util.js';
import {w} from '../shared/words.js';
import {paintCollective} from './marks.js';
import {LABEL, laneHeight, Painter, ROW, RULER} from './painter.js';
import {parse, readLanes} from './slices.js';

const PARTNERS = 3, TALLEST = 260; // ranks beside the last one; px

function draw(tl) {
  const p = tl.painter, drawn = tl.rows.filter((r) => tl.slices.has(r.lane.track));
  p.resize();
  if (!p.width) return;
  tl.view.scale = (p.width - LABEL) / (tl.view.to - tl.view.from);
  p.begin(tl.view, LABEL, drawn.reduce((sum, r) => sum + r.lane.rows, 0));
  for (const r of drawn) p.slices(tl.slices.get(r.lane.track), r.lane, tl.top(r), tl.view);
  p.finish();
  p.ruler(tl.view, LABEL);
  for (const r of tl.rows) {
    p.names(r.lane);
    p.g.fillStyle = p.c.bg;
    p.g.fillRect(0, tl.top(r), LABEL, r.height);
    p.text(`${w('rank')} ${r.lane.rank} · ${r.lane.domain === 'communication' ? r.lane.domain : r.lane.label}`, 4, tl.top(r) + ROW / 2, LABEL - 10, p.c.dim);
  }
  paintCollective(tl);
}

// Returns a canvas with the evidence of a finding that has a rank and a time range; null without a collective.
export async function glimpse(about, at, go) {
  const first = BigInt(about.timeline.first), [from, to] = [at.from, at.to].map((t) => Number(BigInt(t) - first));
  const [collective, all] = await Promise.all([get('collective', {rank: at.rank, from, to}), readLanes()]);
  if (!(collective?.calls.length > 1)) return null;
  const ranks = [collective.calls.at(-1), ...collective.calls.slice(0, -1).slice(0, PARTNERS)].map((k) => k[1]);
  const lanes = ranks.flatMap((p) => all.filter((l) => l.track !== undefined && l.process === p && l.kind === 'thread').slice(0, 2));
  let y = 0;
  const rows = lanes.map((lane) => {
    const row = {lane, y, height: laneHeight(lane)};
    y += row.height;
    return row;
  });
  const canvas = h('canvas.glimpse', {role: 'img', 'aria-label': w('worstStep'), onclick: go, style: `height:${Math.min(RULER + y + 4, TALLEST)}px`});
  const data = parse(await bytes('slices', {tracks: lanes.map((l) => l.track).join(','), from: Math.floor(from), to: Math.ceil(to), px: 1200}));
  const tl = {canvas, collective, rows, painter: new Painter(canvas), view: {from, to, scale: 1}, slices: new Map(data.map((d) => [d.track, d])), top: (r) => RULER + r.y, rowsInSight: () => rows};
  const again = () => {
    draw(tl);
    fetchTexts(() => draw(tl)).catch(() => {});
  };
  new ResizeObserver(again).observe(canvas);
  new MutationObserver(() => {
    tl.painter.restyle();
    again();
  }).observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
  return canvas;
}
