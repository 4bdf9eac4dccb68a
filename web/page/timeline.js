// SPDX-License-Identifier: MIT
// The timeline: lanes of a run, zoomed and panned; a selection is summed up by the server.
import {bytes, fetchTexts, get, textOf} from './api.js';
import * as place from './place.js';
import {hit, Slices} from './tl_data.js';
import {GROUP, laneHeight, Painter, ROW, RULER} from './tl_draw.js';
import {copy, count, fill, h, onFrame, percent, save, time} from './util.js';
import {w} from './words.js';

const LABEL = 220, MINIMAP = 36, SHORTEST = 10, ROOM = 0.02;

// When the first events were to be seen: measured by the benchmark, shown by the browser's own tools.
function firstPicture() {
  if (!performance.getEntriesByName('timeline').length) performance.mark('timeline');
}

class Timeline {
  constructor({root, about, showDrawer, keys, status, place: at}) {
    Object.assign(this, {root, about, showDrawer, keys, status});
    this.length = about.timeline.length;
    this.first = BigInt(about.timeline.first);
    this.bounds = [-this.length * ROOM - SHORTEST, this.length * (1 + ROOM) + SHORTEST];
    this.view = {from: this.bounds[0], to: this.bounds[1], scale: 1};
    this.history = [];
    this.open = new Set();
    this.pinned = new Set();
    this.hidden = new Set();
    this.scroll = 0;
    this.draw = onFrame(() => this.paint());
    this.slices = new Slices(this.draw);
    this.busy = new Map();
    this.selected = null;
    this.make();
    this.at = at;
  }

  make() {
    this.canvas = h('canvas.lanes', {tabIndex: 0, 'aria-label': w('timeline')});
    this.mini = h('canvas.mini');
    fill(this.root, h('div.tl', {}, this.mini, this.canvas));
    this.painter = new Painter(this.canvas);
    this.miniPainter = new Painter(this.mini);
    this.listen();
    this.addKeys();
  }

  async start() {
    const [lanes, steps] = await Promise.all([get('lanes'), get('steps')]);
    this.steps = steps.length > 1 ? steps : [];
    this.lanes = lanes;
    for (const l of lanes) if (l.track === undefined && lanes.length < 400) this.open.add(l.process);
    this.layout();
    this.goTo(this.at);
    await this.loadMini();
    this.draw();
  }

  // More has been written: the end moves, and the window with it when it showed everything.
  async grow(about) {
    const followed = this.view.to >= this.bounds[1] - 1;
    this.about = about;
    this.length = about.timeline.length;
    this.bounds = [-this.length * ROOM - SHORTEST, this.length * (1 + ROOM) + SHORTEST];
    this.lanes = await get('lanes');
    this.layout();
    this.slices.renew();
    this.busy.clear();
    if (followed) this.show(this.view.from, this.bounds[1]);
    await this.loadMini();
    this.draw();
  }

  // ---- lanes ----------------------------------------------------------------------

  layout() {
    const shown = this.lanes.filter((l) => l.track !== undefined && this.pinned.has(l.track) && !this.hidden.has(l.track));
    const pins = shown.length;
    for (const l of this.lanes) {
      if (l.track === undefined) shown.push(l);
      else if (this.open.has(l.process) && !this.hidden.has(l.track) && !this.pinned.has(l.track)) shown.push(l);
    }
    let y = 0;
    this.rows = shown.map((lane, i) => {
      const row = {lane, y, height: laneHeight(lane), pinned: i < pins};
      y += row.height;
      return row;
    });
    this.pinHeight = this.rows[pins]?.y ?? y;
    this.total = y;
    this.scroll = Math.max(0, Math.min(this.scroll, this.total - this.canvas.clientHeight + RULER));
  }

  top(row) {
    return RULER + row.y - (row.pinned ? 0 : this.scroll);
  }

  rowsInSight() {
    const low = RULER + this.pinHeight;
    return this.rows.filter((r) => {
      const y = this.top(r);
      return r.pinned ? y < this.canvas.clientHeight : y + r.height > low && y < this.canvas.clientHeight;
    });
  }

  // ---- window ---------------------------------------------------------------------

  show(from, to, remember = false) {
    if (remember) this.history.push([this.view.from, this.view.to]);
    const span = Math.min(Math.max(to - from, SHORTEST), this.bounds[1] - this.bounds[0]);
    const a = Math.min(Math.max(from, this.bounds[0]), this.bounds[1] - span);
    Object.assign(this.view, {from: a, to: a + span});
    place.noteSoon({t0: Math.round(a), t1: Math.round(a + span), from: null, to: null});
    this.draw();
  }

  zoom(factor, still = 0.5) {
    const span = this.view.to - this.view.from, t = this.view.from + span * still;
    this.show(t - span * factor * still, t + span * factor * (1 - still));
  }

  pan(share) {
    const by = (this.view.to - this.view.from) * share;
    this.show(this.view.from + by, this.view.to + by);
  }

  timeAt(x) {
    return this.view.from + (x - LABEL) / this.view.scale;
  }

  // A place says relative times (t0, t1) or, in a finding, Unix nanoseconds (from, to).
  goTo(at) {
    let {t0, t1} = at;
    if (at.from) [t0, t1] = [at.from, at.to].map((t) => Number(BigInt(t) - this.first));
    if (t0 !== undefined) {
      const [a, b] = [Number(t0), Number(t1)], room = at.from ? (b - a) * 0.1 : 0;
      this.show(a - room, b + room);
    }
    if (at.rank !== undefined) this.revealRank(Number(at.rank));
  }

  revealRank(rank) {
    const row = this.rows.find((r) => r.lane.track === undefined && r.lane.rank === rank);
    if (row) this.scroll = Math.min(row.y, Math.max(0, this.total - this.canvas.clientHeight + RULER));
    this.draw();
  }

  // ---- painting -------------------------------------------------------------------

  paint() {
    if (!this.rows) return;
    const p = this.painter;
    p.resize();
    this.view.scale = Math.max((p.width - LABEL) / (this.view.to - this.view.from), 1e-12);
    const seen = this.rowsInSight();
    this.paintSlices(seen);
    p.ruler(this.view, LABEL);
    p.g.save();
    this.clip(RULER + this.pinHeight);
    for (const r of seen) if (!r.pinned) this.paintRow(r);
    p.g.restore();
    p.g.save();
    this.clip(RULER);
    for (const r of seen) if (r.pinned) this.paintRow(r);
    this.paintMarks();
    p.g.restore();
    if (seen.some((r) => this.slices.get(r.lane.track) || this.busy.get(r.lane.process)?.share)) firstPicture();
    this.paintClock();
    this.paintMini();
    this.fetch(seen);
  }

  clip(top) {
    const p = this.painter;
    p.g.beginPath();
    p.g.rect(0, top, p.width, p.height);
    p.g.clip();
  }

  // All slices go into one picture first; names, labels and marks are drawn on it.
  paintSlices(seen) {
    const p = this.painter;
    const drawn = seen.filter((r) => r.lane.track !== undefined && r.lane.kind !== 'counter' && this.slices.get(r.lane.track));
    p.begin(this.view, LABEL, drawn.reduce((sum, r) => sum + r.lane.rows, 0));
    for (const r of drawn) p.slices(this.slices.get(r.lane.track), r.lane, this.top(r), this.view, RULER + (r.pinned ? 0 : this.pinHeight));
    p.finish();
  }

  paintRow(r) {
    const p = this.painter, y = this.top(r), lane = r.lane;
    if (lane.track === undefined) {
      p.g.fillStyle = p.c.panel;
      p.g.fillRect(0, y, p.width, r.height - 1);
      p.text(`${this.open.has(lane.process) ? '▾' : '▸'} ${lane.label}`, 8, y + GROUP / 2, LABEL - 12);
      const b = this.busy.get(lane.process);
      if (!this.open.has(lane.process) && b?.share) p.busy(b.share, b.name, '', y, LABEL);
      return;
    }
    const data = this.slices.get(lane.track);
    if (data && lane.kind === 'counter') p.counter(data, y, LABEL, this.view);
    else if (data) p.names(lane, ROW);
    p.g.fillStyle = p.c.bg;
    p.g.fillRect(0, y, LABEL, r.height);
    p.text(lane.label, 24, y + ROW / 2, LABEL - 30, p.c.dim);
    p.g.fillStyle = p.c.line;
    p.g.fillRect(0, y + r.height - 1, p.width, 1);
  }

  // Selected slice, its partner on the device, the selected area, the pointer.
  paintMarks() {
    const {g, c} = this.painter;
    if (this.selected) {
      const {lane, i, data} = this.selected;
      const row = this.rows.find((r) => r.lane === lane);
      if (row) this.outline(row, data.start[i], data.dur[i], data.depth(i), c.accent);
    }
    this.paintCollective();
    if (this.hovered?.data.link(this.hovered.i)) this.flowLine(this.hovered);
    if (this.selected?.data.link(this.selected.i)) this.flowLine(this.selected);
    if (this.area) {
      const [a, b] = [this.area[0], this.area[1]].map((t) => LABEL + (t - this.view.from) * this.view.scale);
      g.fillStyle = `${c.accent}22`;
      g.fillRect(Math.min(a, b), RULER, Math.abs(b - a), this.painter.height);
    }
    if (this.pointer > LABEL) {
      g.fillStyle = c.dim;
      g.fillRect(this.pointer, RULER, 1, this.painter.height);
    }
  }

  // The time under the pointer, from the start of the run and of the day.
  paintPointer() {
    if (!(this.pointer > LABEL)) return;
    const p = this.painter, t = this.timeAt(this.pointer), at = this.first + BigInt(Math.round(t));
    const clock = new Date(Number(at / 1000000n)), part = String(at % 1000000000n).padStart(9, '0');
    const told = `${time(t)}  ${clock.toISOString().slice(11, 19)}.${part}`, wide = told.length * 7.3 + 12;
    const x = Math.min(this.pointer, p.width - wide);
    p.g.fillStyle = p.c.panel;
    p.g.fillRect(x, 0, wide, RULER - 1);
    p.text(told, x + 6, RULER / 2, wide);
  }

  // How sure times of different hosts are, beside the ruler.
  paintClock() {
    const p = this.painter, {clock} = this.about.timeline;
    p.g.fillStyle = p.c.panel;
    p.g.fillRect(0, 0, LABEL, RULER);
    this.paintPointer();
    const begins = new Date(Number((this.first + BigInt(Math.round(this.view.from))) / 1000000n)).toISOString().slice(11, 23);
    p.text(`${begins}${clock > 0 ? `  ±${time(clock)}` : ''}`, 8, RULER / 2, LABEL - 12, p.c.dim);
    p.g.fillStyle = p.c.line;
    p.g.fillRect(0, RULER - 1, p.width, 1);
  }

  // A collective on all ranks: dots where each came, hatched while it waits, the last one outlined.
  paintCollective() {
    if (!this.collective) return;
    const {calls} = this.collective, last = calls.at(-1), p = this.painter;
    const x = (t) => LABEL + (t - this.view.from) * this.view.scale;
    for (const call of calls) {
      const row = this.rowsInSight().find((r) => r.lane.process === call[1] && r.lane.domain === 'communication' && r.lane.tid === call[2]);
      if (!row) continue;
      const y = this.top(row), a = Math.max(LABEL, x(call[3])), b = x(Math.min(last[3], call[4]));
      if (b > a) p.hatch(a, y, b - a, ROW - 2);
      p.dot(x(call[3]), y + ROW / 2 - 1);
      if (call === last) this.outline(row, call[3], call[4] - call[3], 0, p.c.error);
    }
  }

  async askCollective(lane, start) {
    this.collective = null;
    if (lane.domain !== 'communication') return null;
    const c = await get('collective', {process: lane.process, start});
    if (!c || c.calls.length < 2) return null;
    this.collective = c;
    this.draw();
    const last = c.calls.at(-1), longest = last[3] - c.calls[0][3];
    return [h('p', {}, `${w('rank')} ${last[0]} ${w('verdictLast')}; ${w('othersWait')} ${time(longest)}`),
      h('table.sums', {}, h('tr', {}, [w('rank'), w('arrival'), w('waiting'), w('duration')].map((t) => h('th.num', {}, t))), c.calls.map((k) => h('tr', {},
          h('td.num', {}, k === last ? h('span.E', {}, '■ ') : '', k[0]), h('td.num', {}, `+${time(k[3] - c.calls[0][3])}`), h('td.num', {}, time(last[3] - k[3])), h('td.num', {}, time(k[4] - k[3])))))];
  }

  outline(row, start, dur, depth, colour) {
    const {g} = this.painter, y = this.top(row) + depth * ROW;
    const a = LABEL + (start - this.view.from) * this.view.scale;
    g.strokeStyle = colour;
    g.lineWidth = 2;
    g.strokeRect(a, y, Math.max(dur * this.view.scale, 2), ROW - 2);
    return [a, y];
  }

  // From a mark on the host to where its stream reached it, or back.
  flowLine({lane, data, i}) {
    const here = this.rows.find((r) => r.lane === lane), {g, c} = this.painter;
    if (!here) return;
    const [x0, y0] = this.outline(here, data.start[i], data.dur[i], data.depth(i), c.accent);
    for (const [x1, y1] of this.outlineLinked(lane, data.link(i))) {
      g.beginPath();
      g.lineWidth = 1.5;
      g.moveTo(x0, y0 + ROW / 2);
      g.bezierCurveTo(x0 + 30, y0 + ROW / 2, x1 - 30, y1 + ROW / 2, x1, y1 + ROW / 2);
      g.stroke();
    }
  }

  outlineLinked(from, link) {
    const ends = [];
    for (const row of this.rowsInSight()) {
      const data = row.lane.track !== undefined && row.lane !== from && row.lane.process === from.process
          ? this.slices.get(row.lane.track) : null;
      for (let i = 0; data?.links && i < data.n; i++) {
        if (data.links[i] === link) ends.push(this.outline(row, data.start[i], data.dur[i], data.depth(i), this.painter.c.accent));
      }
    }
    return ends;
  }

  // ---- data -----------------------------------------------------------------------

  fetch(seen) {
    const px = Math.max(100, Math.round(this.painter.width - LABEL));
    const tracks = seen.filter((r) => r.lane.track !== undefined).map((r) => r.lane.track);
    const fail = (e) => this.status(e.message);
    this.slices.ask(tracks, this.view.from, this.view.to, px, this.bounds).catch(fail);
    for (const r of seen) {
      if (r.lane.track === undefined && !this.open.has(r.lane.process)) this.fetchBusy(r.lane.process, px);
    }
    fetchTexts(this.draw).catch(fail);
  }

  async fetchBusy(process, px) {
    const key = `${Math.round(this.view.from)} ${Math.round(this.view.to)} ${px}`;
    const known = this.busy.get(process);
    if (known?.key === key || known?.asked === key) return;
    this.busy.set(process, {...known, asked: key});
    const n = Math.min(px, 800);
    const b = await bytes('busy', {process, from: Math.round(this.view.from), to: Math.round(this.view.to), px: n});
    this.busy.set(process, {key, asked: key, share: new Float32Array(b, 0, n), name: new Uint32Array(b, 4 * n, n)});
    this.draw();
  }

  async loadMini() {
    const groups = this.lanes.filter((l) => l.track === undefined).slice(0, 16), n = 400;
    const sums = new Float32Array(n);
    await Promise.all(groups.map(async (l) => {
      const b = new Float32Array(await bytes('busy', {process: l.process, from: 0, to: this.length, px: n}), 0, n);
      b.forEach((v, i) => { sums[i] += v / groups.length; });
    }));
    this.miniShares = sums;
  }

  paintMini() {
    const p = this.miniPainter;
    p.resize();
    p.clear();
    const n = this.miniShares?.length ?? 0, each = p.width / n;
    p.g.fillStyle = p.c.compute;
    for (let i = 0; i < n; i++) {
      const tall = this.miniShares[i] * (p.height - 4);
      p.g.fillRect(i * each, p.height - 2 - tall, each + 0.3, tall);
    }
    const span = this.bounds[1] - this.bounds[0];
    const a = (this.view.from - this.bounds[0]) / span * p.width, b = (this.view.to - this.bounds[0]) / span * p.width;
    p.g.strokeStyle = p.c.accent;
    p.g.lineWidth = 2;
    p.g.strokeRect(a + 1, 1, Math.max(b - a, 4) - 2, p.height - 2);
  }

  // ---- selection ------------------------------------------------------------------

  rowAt(y) {
    return this.rowsInSight().find((r) => {
      const top = this.top(r);
      return y >= top && y < top + r.height && (r.pinned || y >= RULER + this.pinHeight);
    });
  }

  hoverAt(x, y) {
    const row = x > LABEL ? this.rowAt(y) : null, data = row?.lane.track !== undefined ? this.slices.get(row.lane.track) : null;
    const i = data && row.lane.kind !== 'counter' ? hit(data, this.timeAt(x), Math.floor((y - this.top(row)) / ROW), 2 / this.view.scale) : -1;
    this.hovered = i >= 0 ? {lane: row.lane, data, i} : null;
    const name = this.hovered ? textOf(data.name(i)) : '';
    this.canvas.title = this.hovered ? `${name ?? ''}  ${time(data.dur[i])}` : '';
  }

  click(x, y) {
    const row = this.rowAt(y);
    if (!row) return;
    if (row.lane.track === undefined) {
      if (!this.open.delete(row.lane.process)) this.open.add(row.lane.process);
      this.layout();
    } else if (x < LABEL) {
      this.laneMenu(row.lane);
    } else {
      this.select(row, x, y);
    }
    this.draw();
  }

  select(row, x, y) {
    const data = this.slices.get(row.lane.track);
    const depth = Math.floor((y - this.top(row)) / ROW);
    const i = data && row.lane.kind !== 'counter' ? hit(data, this.timeAt(x), depth, 2 / this.view.scale) : -1;
    this.selected = i >= 0 ? {lane: row.lane, data, i} : null;
    if (this.selected) this.showSlice();
    else this.showDrawer();
  }

  async showSlice() {
    const {lane, data, i} = this.selected;
    const rows = [[w('start'), time(data.start[i])], [w('duration'), time(data.dur[i])], [w('domain'), lane.domain],
      ['', lane.label]];
    if (data.count(i) > 1) rows.push([w('times'), count(data.count(i))]);
    if (data.flags(i) & 1) rows.push(['', w('neverEnded')]);
    const show = (extra) => this.showDrawer(h('h2.mono', {}, textOf(data.name(i)) ?? ''),
        h('div.facts', {}, rows.map(([k, v]) => [h('span.dim', {}, k), h('span.mono', {}, v)])), extra);
    show();
    const ev = await get('find', {tracks: lane.track, t: Math.floor(data.start[i]) - 1, q: textOf(data.name(i))});
    const args = ev?.args && h('pre.mono', {}, JSON.stringify(ev.args, null, 1));
    show(args);
    const aligned = await this.askCollective(lane, data.start[i]);
    if (aligned) show([aligned, args]);
  }

  laneMenu(lane) {
    const flip = (set) => () => {
      if (!set.delete(lane.track)) set.add(lane.track);
      this.layout();
      this.draw();
    };
    this.showDrawer(h('h2', {}, lane.label), h('div.facts', {}, h('span.dim', {}, w('events')), count(lane.events)),
        h('button', {onclick: flip(this.pinned)}, w('pin')), h('button', {onclick: flip(this.hidden)}, w('hide')));
  }

  async sumUp() {
    const [from, to] = [...this.area].sort((a, b) => a - b).map(Math.round);
    const tracks = this.rowsInSight().filter((r) => r.lane.track !== undefined && r.lane.kind !== 'counter').map((r) => r.lane.track);
    const rows = await get('sum', {tracks: tracks.join(','), from, to});
    this.showSums(rows, 'total', to - from);
  }

  showSums(rows, by, length) {
    const sorted = [...rows].sort((a, b) => (by === 'name' ? a.name.localeCompare(b.name) : b[by] - a[by]));
    this.showDrawer(h('h2', {}, `${w('selection')}: ${time(length)} `, h('button', {onclick: () => copy(sumsAsCsv(sorted))}, w('copy')), ' ',
        h('button', {onclick: () => save('selection.csv', 'text/csv', sumsAsCsv(sorted))}, w('exportCsv'))),
    rows.length ? sumTable(sorted, by, (k) => this.showSums(rows, k, length)) : h('p.dim', {}, w('noHits')));
  }

  // Next or previous hit of a search over the lanes in sight.
  async search(text, direction) {
    if (!text) return;
    const tracks = this.lanes.filter((l) => l.track !== undefined).map((l) => l.track).slice(0, 4096);
    const from = direction === 0 ? this.view.from : this.found ?? this.view.from;
    const ev = await get('find', {tracks: tracks.join(','), t: Math.floor(from), q: text, back: direction < 0 ? 1 : 0});
    if (!ev) {
      this.status(w('noHits'));
      return;
    }
    this.found = ev.start;
    const room = Math.max(ev.duration * 2, (this.view.to - this.view.from) / 4, 100);
    this.show(ev.start - room, ev.start + ev.duration + room, true);
    this.revealTrack(ev.track);
  }

  revealTrack(track) {
    const lane = this.lanes.find((l) => l.track === track);
    this.open.add(lane.process);
    this.hidden.delete(track);
    this.layout();
    const row = this.rows.find((r) => r.lane === lane);
    if (!row.pinned) this.scroll = Math.max(0, Math.min(row.y - this.canvas.clientHeight / 2, this.total - this.canvas.clientHeight + RULER));
    this.draw();
  }

  async neighbour(direction) {
    if (!this.selected) return;
    const {lane, data, i} = this.selected;
    const ev = await get('find', {tracks: lane.track, t: Math.floor(data.start[i]), back: direction < 0 ? 1 : 0});
    if (!ev) return;
    const span = this.view.to - this.view.from;
    if (ev.start < this.view.from || ev.start + ev.duration > this.view.to) this.show(ev.start - span / 2, ev.start + span / 2);
    const again = this.slices.get(lane.track);
    for (let k = 0; k < again.n; k++) {
      if (again.start[k] === ev.start && again.depth(k) === ev.depth) this.selected = {lane, data: again, i: k};
    }
    this.showSlice();
    this.draw();
  }

  // ---- hands ----------------------------------------------------------------------

  listen() {
    const c = this.canvas;
    let drag = null;
    new ResizeObserver(() => {
      if (this.rows) this.layout();
      this.draw();
    }).observe(this.root);
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) this.zoom(1.0015 ** e.deltaY, (e.offsetX - LABEL) / (c.clientWidth - LABEL));
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / c.clientWidth);
      else {
        this.scroll = Math.max(0, Math.min(this.scroll + e.deltaY, this.total - c.clientHeight + RULER));
        this.draw();
      }
    }, {passive: false});
    c.addEventListener('pointerdown', (e) => {
      c.setPointerCapture(e.pointerId);
      drag = {x: e.offsetX, y: e.offsetY, from: this.view.from, to: this.view.to, moved: false, area: e.shiftKey};
      if (drag.area) this.area = [this.timeAt(e.offsetX), this.timeAt(e.offsetX)];
    });
    c.addEventListener('pointermove', (e) => {
      this.pointer = e.offsetX;
      if (!drag) this.hoverAt(e.offsetX, e.offsetY);
      if (drag) {
        drag.moved ||= Math.abs(e.offsetX - drag.x) > 3;
        if (drag.area) this.area[1] = this.timeAt(e.offsetX);
        else if (drag.moved) {
          const by = (drag.x - e.offsetX) / this.view.scale;
          this.show(drag.from + by, drag.to + by);
        }
      }
      this.draw();
    });
    c.addEventListener('pointerup', (e) => {
      if (drag && !drag.moved) {
        this.area = null;
        this.click(e.offsetX, e.offsetY);
      } else if (drag?.area) this.sumUp();
      drag = null;
    });
    this.mini.addEventListener('pointerdown', (e) => this.fromMini(e));
    this.mini.addEventListener('pointermove', (e) => { if (e.buttons) this.fromMini(e); });
  }

  fromMini(e) {
    const span = this.bounds[1] - this.bounds[0], t = this.bounds[0] + e.offsetX / this.mini.clientWidth * span;
    const half = (this.view.to - this.view.from) / 2;
    this.show(t - half, t + half);
  }

  addKeys() {
    const add = (key, text, run) => this.keys.add('view', key, text, run);
    const middle = () => (this.pointer > LABEL ? (this.pointer - LABEL) / (this.canvas.clientWidth - LABEL) : 0.5);
    add('w', 'zoom in', () => this.zoom(0.7, middle()));
    add('s', 'zoom out', () => this.zoom(1 / 0.7, middle()));
    add('a', 'earlier', () => this.pan(-0.15));
    add('d', 'later', () => this.pan(0.15));
    add('arrowleft', 'earlier', () => this.pan(-0.15));
    add('arrowright', 'later', () => this.pan(0.15));
    add('space', 'fit all', () => this.show(...this.bounds, true));
    add('arrowup', 'up', () => this.roll(-60));
    add('arrowdown', 'down', () => this.roll(60));
    add('t', 'next step', () => this.step(1));
    add('T', 'previous step', () => this.step(-1));
    add('r', 'next rank', () => this.turnRank(1));
    add('R', 'previous rank', () => this.turnRank(-1));
    add(']', 'next communication partner or flow', () => this.partner(1));
    add('[', 'previous communication partner or flow', () => this.partner(-1));
    add('enter', 'open or close the process', () => this.flipProcess());
    add('alt+enter', 'open or close all processes', () => this.openAll());
    add('u', 'parent', () => this.around());
    add('e', 'next finding', () => this.seekFinding(1));
    add('E', 'previous finding', () => this.seekFinding(-1));
    add('P', 'savePicture', () => this.picture());
    add('p', 'pin or unpin the lane', () => this.pinLane());
    add('o', 'open or close all processes', () => this.openAll());
    add('f', 'fit the selected slice', () => this.fitSelected());
    add('.', 'next slice', () => this.neighbour(1));
    add(',', 'previous slice', () => this.neighbour(-1));
    add('backspace', 'back to the window before', () => {
      const last = this.history.pop();
      if (last) this.show(...last);
      else history.back();
    });
    add('Z', 'zoom to the selected area', () => {
      if (this.area) this.show(Math.min(...this.area), Math.max(...this.area), true);
    });
    add('escape', 'clear the selection', () => {
      this.selected = this.area = this.collective = null;
      this.showDrawer();
      this.draw();
    });
  }

  // Ranks and steps for the frame to choose from.
  choices() {
    const ranks = [...new Set(this.lanes.filter((l) => l.track === undefined && l.rank >= 0).map((l) => l.rank))];
    const steps = this.steps.map((s) => String(s[1])), {rank = ranks[0], step = ''} = place.read();
    return [[w('step'), ['', ...steps], step, (v) => this.goToStep(v)],
      [w('rank'), ranks, rank, (v) => {
        place.note({rank: v});
        this.revealRank(Number(v));
      }]];
  }

  goToStep(number) {
    const s = this.steps.find((x) => String(x[1]) === number);
    if (!s) return;
    place.note({step: number});
    this.show(s[2] - s[3] * 0.1, s[2] + s[3] * 1.1, true);
  }

  roll(by) {
    this.scroll = Math.max(0, Math.min(this.scroll + by, this.total - this.canvas.clientHeight + RULER));
    this.draw();
  }

  // The step behind or before the middle of the window, with some room around it.
  async step(by) {
    const process = (this.selected?.lane ?? this.rows[0]?.lane)?.process, room = (this.view.to - this.view.from) * 0.01;
    const found = await get('step', {process, t: Math.round((this.view.from + this.view.to) / 2 + by * room), back: by < 0 ? 1 : 0});
    if (found) this.show(found[2] - found[3] * 0.1, found[2] + found[3] * 1.1, true);
  }

  turnRank(by) {
    const groups = this.rows.filter((r) => r.lane.track === undefined);
    const now = groups.findLastIndex((r) => r.y <= this.scroll);
    const next = groups[Math.max(0, Math.min(groups.length - 1, now + by))];
    if (next) this.roll(next.y - this.scroll);
  }

  // The same collective on the next rank or the one before; of any other slice the other end of its flow.
  async partner(by) {
    if (!this.selected) return;
    if (!this.collective) {
      await this.followFlow();
      return;
    }
    const calls = [...this.collective.calls].sort((a, b) => a[0] - b[0]), {lane} = this.selected;
    const now = calls.findIndex((k) => k[1] === lane.process), next = calls[(now + by + calls.length) % calls.length];
    const there = this.lanes.find((l) => l.process === next[1] && l.domain === 'communication' && l.tid === next[2]);
    if (there) await this.selectAt(there, next[3], 0);
  }

  // The slice of a lane that begins at a time, wherever it is.
  async selectAt(lane, start, depth) {
    this.revealTrack(lane.track);
    const span = this.view.to - this.view.from;
    if (start < this.view.from || start > this.view.to) this.show(start - span / 2, start + span / 2, true);
    await this.slices.ask([lane.track], this.view.from, this.view.to, Math.max(100, Math.round(this.painter.width - LABEL)), this.bounds);
    const data = this.slices.get(lane.track);
    for (let i = 0; data && i < data.n; i++) {
      if (data.start[i] === start && data.depth(i) === depth) this.selected = {lane, data, i};
    }
    if (this.selected?.lane === lane) this.showSlice();
    this.draw();
  }

  // What the selected slice lies in.
  around() {
    if (!this.selected) return;
    const {lane, data, i} = this.selected, depth = data.depth(i) - 1;
    const k = depth >= 0 ? hit(data, data.start[i], depth, 0) : -1;
    if (k < 0) return;
    this.selected = {lane, data, i: k};
    this.showSlice();
    this.draw();
  }

  flipProcess() {
    const {process} = this.selected?.lane ?? this.rows.find((r) => !r.pinned && r.y >= this.scroll)?.lane ?? {};
    if (process === undefined) return;
    if (!this.open.delete(process)) this.open.add(process);
    this.layout();
    this.draw();
  }

  // From one finding of the timeline to the next.
  async seekFinding(by) {
    this.findings ??= (await get('findings')).map((f) => ({...f, at: place.read(f.place)})).filter((f) => f.at.screen === 'timeline' && f.at.from);
    const {findings: list} = this;
    if (!list.length) {
      this.say(w('nothingFound'));
      return;
    }
    this.finding = ((this.finding ?? (by > 0 ? -1 : 0)) + by + list.length) % list.length;
    this.history.push([this.view.from, this.view.to]);
    this.goTo(list[this.finding].at);
    this.say(list[this.finding].text, list[this.finding].severity);
  }

  say(text, severity) {
    this.showDrawer(h(`p.${{error: 'E', warning: 'W'}[severity] ?? 'dim'}`, {role: 'status'}, text));
  }

  async picture() {
    const {saveCanvases} = await import('./picture.js');
    this.paint();
    await saveCanvases([this.mini, this.canvas], this.about.title);
  }

  async followFlow() {
    if (!this.selected) return;
    const {lane, data, i} = this.selected;
    if (!data.link(i)) return;
    for (const other of this.lanes) {
      const there = other.track !== undefined && other !== lane && other.process === lane.process ? this.slices.get(other.track) : null;
      const k = there?.links ? there.links.indexOf(data.link(i)) : -1;
      if (k < 0) continue;
      this.selected = {lane: other, data: there, i: k};
      this.revealTrack(other.track);
      this.showSlice();
      return;
    }
  }

  pinLane() {
    if (!this.selected) return;
    const {track} = this.selected.lane;
    if (!this.pinned.delete(track)) this.pinned.add(track);
    this.layout();
    this.draw();
  }

  openAll() {
    const all = this.lanes.filter((l) => l.track === undefined).map((l) => l.process);
    this.open = this.open.size === all.length ? new Set() : new Set(all);
    this.layout();
    this.draw();
  }

  fitSelected() {
    if (!this.selected) return;
    const {data, i} = this.selected, room = Math.max(data.dur[i] * 0.1, SHORTEST);
    this.show(data.start[i] - room, data.start[i] + data.dur[i] + room, true);
  }
}

const SUMS = ['name', 'events', 'total', 'mean', 'p99', 'max', 'share'];

function sumTable(rows, by, sortBy) {
  const title = {name: w('name'), events: w('times'), total: w('total'), mean: w('mean'), p99: 'p99', max: w('longest'), share: w('share')};
  return h('table.sums', {}, h('tr', {}, SUMS.map((k) => h(k === 'name' ? 'th' : 'th.num', {'aria-sort': k === by ? (k === 'name' ? 'ascending' : 'descending') : null},
      h('button', {onclick: () => sortBy(k)}, `${k === by ? '▾ ' : ''}${title[k]}`)))),
  rows.map((r) => h('tr', {}, h('td', {title: `${r.domain}: ${r.name}`}, r.name), h('td.num', {}, count(r.events)),
      ['total', 'mean', 'p99', 'max'].map((k) => h('td.num', {}, time(r[k]))), h('td.num', {}, percent(r.share)))));
}

function sumsAsCsv(rows) {
  const quoted = (s) => (/[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
  const head = 'domain,name,count,total_ns,mean_ns,p50_ns,p99_ns,max_ns,share';
  return `${[head, ...rows.map((r) => [quoted(r.domain), quoted(r.name), r.events, r.total, r.mean, r.p50, r.p99, r.max, r.share].join(','))].join('\n')}\n`;
}

export async function open(app) {
  if (!app.about.timeline) {
    fill(app.root, h('div.empty', {}, w('noTimeline')));
    return {go() {}};
  }
  const t = new Timeline(app);
  await t.start();
  return {
    go: (at) => t.goTo(at),
    search: (text, direction) => t.search(text, direction),
    restyle: () => {
      t.painter.restyle();
      t.miniPainter.restyle();
      t.draw();
    },
    refresh: (about) => {
      t.grow(about).catch(() => {});
    },
    choices: () => t.choices(),
    hint: () => w('timelineHint'),
  };
}
