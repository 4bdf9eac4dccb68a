// SPDX-License-Identifier: MIT
// Marks over the slices of the timeline: the selection, flows, collectives, an area.
import {LABEL, ROW, RULER} from './painter.js';
import {time} from '../shared/util.js';
import {w} from '../shared/words.js';

const xOf = (tl, t) => LABEL + (t - tl.view.from) * tl.view.scale;

// Draws the selected slice, its partner on the device, the selected area and the pointer.
export function paintMarks(tl) {
  const {g, c} = tl.painter;
  if (tl.selected) {
    const {lane, i, data} = tl.selected;
    const row = tl.rows.find((r) => r.lane === lane);
    if (row) outline(tl, row, data.start[i], data.dur[i], data.depth(i), c.accent);
  }
  paintCollective(tl);
  if (tl.hovered?.data.link(tl.hovered.i)) flowLine(tl, tl.hovered);
  if (tl.selected?.data.link(tl.selected.i)) flowLine(tl, tl.selected);
  if (tl.area) paintArea(tl);
  if (tl.pointer > LABEL) {
    g.fillStyle = c.dim;
    g.fillRect(tl.pointer, RULER, 1, tl.painter.height);
  }
}

// Highlights the area over its lanes.
function paintArea(tl) {
  const {g, c} = tl.painter, [a, b] = tl.area.times.map((t) => xOf(tl, t)), left = Math.max(LABEL, Math.min(a, b));
  g.fillStyle = `${c.accent}22`;
  for (const r of tl.rowsInSight()) {
    if (tl.area.tracks.includes(r.lane.track)) g.fillRect(left, tl.top(r), Math.max(a, b) - left, r.height);
  }
}

const HEAD = 5; // px, size of an arrow's head

// Draws a collective on all ranks: dots at the arrivals, hatching while waiting, an outline around the last, arrows
// from it to those that wait, and the verdict where the last one was not yet there.
export function paintCollective(tl) {
  if (!tl.collective) return;
  const {calls} = tl.collective, last = calls.at(-1), p = tl.painter, seen = tl.rowsInSight(), x = xOf(tl, last[3]), ends = [];
  for (const call of calls) {
    const row = seen.find((r) => r.lane.process === call[1] && r.lane.domain === 'communication' && r.lane.tid === call[2]);
    if (!row) continue;
    const y = tl.top(row), a = Math.max(LABEL, xOf(tl, call[3])), b = xOf(tl, Math.min(last[3], call[4]));
    if (b > a) p.hatch(a, y, b - a, ROW - 2);
    if (xOf(tl, call[3]) >= LABEL) p.dot(xOf(tl, call[3]), y + ROW / 2 - 1);
    if (call === last) outline(tl, row, call[3], call[4] - call[3], 0, p.c.error);
    ends.push([call, y + ROW / 2 - 1]);
  }
  const from = ends.find(([call]) => call === last);
  if (!from || x < LABEL || x > p.width) return;
  for (const [call, y] of ends) if (call !== last) arrow(p, x, from[1], y);
  const told = `${w('rank')} ${last[0]} ${w('verdictLast')}; ${w('othersWait')} ${time(last[3] - calls[0][3])}`;
  p.verdict(told, x - 10, from[1], LABEL);
}

// Draws an arrow up or down, from one lane to another.
function arrow({g, c}, x, y0, y1) {
  const by = y1 > y0 ? -HEAD : HEAD;
  g.strokeStyle = g.fillStyle = c.error;
  g.lineWidth = 1.5;
  g.beginPath();
  g.moveTo(x, y0);
  g.lineTo(x, y1 + by);
  g.stroke();
  g.beginPath();
  g.moveTo(x, y1);
  g.lineTo(x - HEAD, y1 + by);
  g.lineTo(x + HEAD, y1 + by);
  g.fill();
}

function outline(tl, row, start, dur, depth, colour) {
  const {g} = tl.painter, y = tl.top(row) + depth * ROW, a = xOf(tl, start), b = a + Math.max(dur * tl.view.scale, 2);
  g.strokeStyle = colour;
  g.lineWidth = 2;
  if (b > LABEL) g.strokeRect(Math.max(a, LABEL), y, b - Math.max(a, LABEL), ROW - 2);
  return [a, y];
}

// Draws the line from a mark on the host to the same mark on its stream, or back.
function flowLine(tl, {lane, data, i}) {
  const here = tl.rows.find((r) => r.lane === lane), {g, c} = tl.painter;
  if (!here) return;
  const [x0, y0] = outline(tl, here, data.start[i], data.dur[i], data.depth(i), c.accent);
  for (const [x1, y1] of outlineLinked(tl, lane, data.link(i))) {
    g.beginPath();
    g.lineWidth = 1.5;
    g.moveTo(x0, y0 + ROW / 2);
    g.bezierCurveTo(x0 + 30, y0 + ROW / 2, x1 - 30, y1 + ROW / 2, x1, y1 + ROW / 2);
    g.stroke();
  }
}

function outlineLinked(tl, from, link) {
  const ends = [];
  for (const row of tl.rowsInSight()) {
    const data = row.lane.track !== undefined && row.lane !== from && row.lane.process === from.process
        ? tl.slices.get(row.lane.track) : null;
    for (let i = 0; data?.links && i < data.n; i++) {
      if (data.links[i] === link) ends.push(outline(tl, row, data.start[i], data.dur[i], data.depth(i), tl.painter.c.accent));
    }
  }
  return ends;
}
