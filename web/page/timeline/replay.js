// SPDX-License-Identifier: MIT
// The critical path of the steps as a line over the lanes, and the ideal timeline of each lane below it.
import {get} from '../shared/api.js';
import {GROUP, LABEL, ROW} from './painter.js';
import {w} from '../shared/words.js';

export const IDEAL = 12; // px, height of an ideal timeline
const AHEAD = 0.5, AT_ONCE = 12; // margin of a request in screens; processes in a request
const WAIT = 1, COMM = 2;

export class Replay {
  constructor(tl) {
    this.tl = tl;
    this.shown = new Set(); // 'path', 'ideal'
    this.path = null;
    this.ideal = new Map(); // process → {key, spans by track}
    this.tracks = new Set(); // tracks that have an ideal timeline
  }

  read(text) {
    this.shown = new Set((text ?? '').split(',').filter((t) => t === 'path' || t === 'ideal'));
  }

  write() {
    return [...this.shown].join(',');
  }

  flip(what) {
    if (!this.tl.about.timeline.replay) {
      this.tl.say(w('noReplay'));
      return;
    }
    if (!this.shown.delete(what)) this.shown.add(what);
    this.tl.rearrange();
  }

  // Returns the height that a lane takes more for its ideal timeline.
  height(lane) {
    return this.shown.has('ideal') && this.tracks.has(lane.track) ? IDEAL : 0;
  }

  renew() {
    this.path = null;
    this.ideal.clear();
  }

  // ---- data -----------------------------------------------------------------------

  // Returns a request for the window and its margins, as long as the one before does not serve the window.
  missing(known, px) {
    const {view, bounds} = this.tl, resolution = (view.to - view.from) / px;
    const serves = known && known.from <= Math.max(view.from, bounds[0]) && known.to >= Math.min(view.to, bounds[1]) &&
        known.resolution <= resolution * 1.01 && known.resolution > resolution / 4;
    if (serves) return null;
    const wide = (view.to - view.from) * AHEAD;
    const from = Math.floor(Math.max(view.from - wide, bounds[0])), to = Math.ceil(Math.min(view.to + wide, bounds[1]));
    return {from, to, resolution, px: Math.min(16384, Math.max(1, Math.round((to - from) / resolution)))};
  }

  async fetch(seen, px) {
    if (!this.tl.about.timeline.replay) return;
    await Promise.all([this.shown.has('path') && this.fetchPath(px), this.shown.has('ideal') && this.fetchIdeal(seen, px)]);
  }

  async fetchPath(px) {
    const ask = this.missing(this.path, px);
    if (!ask) return;
    this.path = {...ask, spans: this.path?.spans ?? []}; // the last picture stays until the answer
    const mine = this.path;
    mine.spans = await get('replay', {from: ask.from, to: ask.to, px: ask.px});
    this.tl.draw();
  }

  async fetchIdeal(seen, px) {
    const open = [...new Set(seen.filter((r) => r.lane.track !== undefined).map((r) => r.lane.process))];
    const ask = open.map((p) => [p, this.missing(this.ideal.get(p), px)]).filter(([, a]) => a).slice(0, AT_ONCE);
    if (!ask.length) return;
    const [, {from, to, px: parts}] = ask[0];
    for (const [p, a] of ask) this.ideal.set(p, {...a, tracks: this.ideal.get(p)?.tracks ?? new Map()});
    const spans = await get('replay', {processes: ask.map(([p]) => p).join(','), from, to, px: parts});
    for (const [p] of ask) this.ideal.get(p).tracks = new Map();
    const before = this.tracks.size;
    for (const s of spans) {
      const of = this.ideal.get(s[0]).tracks;
      if (!of.has(s[1])) of.set(s[1], []);
      of.get(s[1]).push(s);
      this.tracks.add(s[1]);
    }
    if (this.tracks.size !== before) this.tl.layout();
    this.tl.draw();
  }

  // ---- painting -------------------------------------------------------------------

  x(t) {
    return LABEL + (t - this.tl.view.from) * this.tl.view.scale;
  }

  // Draws the ideal timeline at the lower edge of a lane: work, communication, and hatched waiting.
  paintIdeal(row) {
    if (!this.height(row.lane)) return;
    const {tl} = this, p = tl.painter, y = tl.top(row) + row.height - IDEAL, tall = IDEAL - 3;
    p.g.fillStyle = p.c.bg;
    p.g.fillRect(LABEL, y - 1, p.width, IDEAL);
    for (const [, , , kind, from, to] of this.ideal.get(row.lane.process)?.tracks.get(row.lane.track) ?? []) {
      const a = Math.max(LABEL, this.x(from)), b = Math.min(p.width, Math.max(this.x(to), this.x(from) + 1));
      if (b <= a) continue;
      if (kind === WAIT) p.hatch(a, y, b - a, tall);
      else {
        p.g.fillStyle = kind === COMM ? p.c.comm : p.c.compute;
        p.g.fillRect(a, y, b - a - (b - a > 3 ? 1 : 0), tall);
      }
    }
    p.text(w('ideal'), 36, y + tall / 2, LABEL - 42, p.c.dim);
  }

  // Draws the critical path: along the lane that a step needs at each time, down or up where it goes to another.
  paintPath() {
    if (!this.shown.has('path') || !this.path) return;
    const {tl} = this, {g, c, width} = tl.painter, rows = new Map();
    for (const r of tl.rows) rows.set(r.lane.track ?? `p${r.lane.process}`, r);
    g.beginPath();
    let last = null;
    for (const [process, track, step, , from, to] of this.path.spans) {
      const row = rows.get(track) ?? rows.get(`p${process}`), a = this.x(from), b = this.x(to);
      if (!row || b < LABEL || a > width) {
        last = null;
        continue;
      }
      const y = tl.top(row) + (row.lane.track === undefined ? GROUP - 5 : ROW - 3);
      if (last && (last.to === from || last.step === step)) g.lineTo(Math.max(a, LABEL), last.y);
      else g.moveTo(Math.max(a, LABEL), y);
      g.lineTo(Math.max(a, LABEL), y);
      g.lineTo(Math.min(b, width), y);
      last = {to, step, y};
    }
    for (const [style, wide] of [[c.bg, 5], [c.accent, 2.5]]) {
      g.strokeStyle = style;
      g.lineWidth = wide;
      g.stroke();
    }
  }
}
