// SPDX-License-Identifier: MIT
// The timeline: lanes of a run, zoomed and panned; a selection is summed up by the server.
import {bytes, fetchTexts, get, knownText, side, textOf, told} from '../shared/api.js';
import * as place from '../shared/place.js';
import {nameOf} from './counters.js';
import {Evidence} from './evidence.js';
import {Folds} from './folds.js';
import {Found} from './found.js';
import {hit, readLanes, Slices} from './slices.js';
import {GROUP, LABEL, laneHeight, Painter, ROW, RULER} from './painter.js';
import {Pair} from './pair.js';
import {addKeys, listen} from './hands.js';
import {Replay} from './replay.js';
import {paintMarks} from './marks.js';
import {sumsOf} from './sums.js';
import {bytes as size, count, fill, h, onFrame, time} from '../shared/util.js';
import {language, w} from '../shared/words.js';

const SHORTEST = 10, ROOM = 0.02; // ns; margin as a share of the run
const OPEN_LANES = 400; // from this number of lanes on, the processes are closed at first
const MINI_PROCESSES = 16, MINI_PARTS = 400, BUSY_PARTS = 800;

// Marks the time of the first picture, for the benchmark and the browser's performance tools.
function firstPicture() {
  if (!performance.getEntriesByName('timeline').length) performance.mark('timeline');
}

// "AllReduce · tensor_1 · 16.8 MB", as far as the arguments of a slice tell.
function titleOf(name, args) {
  return [name, args?.communicator, args?.bytes > 0 && size(args.bytes)].filter(Boolean).join(' · ');
}

// What the picture shows, for a screen reader: findings, which name the longest waits, and the longest steps.
function asList(findings, steps) {
  const longest = [...steps].sort((a, b) => b[3] - a[3]).slice(0, 10), link = (to, text) => h('li', {}, h('a', {href: `#${to}`}, text));
  return [h('h2', {}, w('wrong')), h('ul', {}, findings.map((f) => link(f.place, f.text))),
    longest.length > 0 && [h('h2', {}, w('longestSteps')), h('ul', {}, longest.map((s) => link(place.write({screen: 'timeline', t0: s[2], t1: s[2] + s[3]}), `${w('step')} ${s[1]}: ${time(s[3])}`)))]];
}

class Timeline {
  constructor({root, about, showDrawer, keys, status, frame, place: at}) {
    Object.assign(this, {root, about, showDrawer, keys, status, frame});
    this.length = about.timeline.length;
    this.first = BigInt(about.timeline.first);
    this.bounds = [-this.length * ROOM - SHORTEST, this.length * (1 + ROOM) + SHORTEST];
    this.view = {from: this.bounds[0], to: this.bounds[1], scale: 1};
    this.history = [];
    this.open = new Set();
    this.pinned = new Set();
    this.hidden = new Set();
    this.scroll = this.total = 0;
    this.lanes = this.rows = this.steps = []; // until read
    this.ready = false;
    this.draw = onFrame(() => this.paint());
    this.slices = new Slices(this.draw);
    this.busy = new Map();
    this.replay = new Replay(this);
    this.folds = new Folds(this);
    this.found = new Found(this);
    this.selected = null;
    this.make();
    this.at = at;
  }

  make() {
    this.canvas = h('canvas.lanes', {tabIndex: 0, 'aria-label': w('timeline')});
    this.mini = h('canvas.mini');
    const bar = h('div.verdict', {hidden: true});
    this.evidence = new Evidence(this, bar);
    this.list = h('section.unseen', {'aria-label': w('timelineAsList')});
    this.pair = side || this.about.pair ? new Pair(this) : null;
    const lanes = h('div.tl', {}, this.mini, bar, this.canvas, this.list);
    fill(this.root, this.about.pair ? this.pair.add(lanes) : lanes);
    this.painter = new Painter(this.canvas);
    this.miniPainter = new Painter(this.mini);
    listen(this);
    addKeys(this);
  }

  async start() {
    const [lanes, steps] = await Promise.all([readLanes(), get('steps')]);
    this.steps = steps.length > 1 ? steps : [];
    this.lanes = lanes;
    await this.folds.read();
    this.ready = true;
    this.takePlace(this.at);
    this.layout();
    this.goTo(this.at);
    this.pair?.ready();
    await this.loadMini();
    this.paint();
    this.restore(this.at).catch((e) => this.say(told(e), 'error'));
  }

  // Goes to another place of the same view, by a link or by "back".
  async go(at) {
    if (at.flip || at.pin || at.hide || at.replay || at.only || at.folds || this.evidence.only) {
      this.takePlace(at);
      this.layout();
    }
    this.goTo(at);
    place.noteSoon(this.lanesAsPlace());
    await this.restore(at);
  }

  // Extends the run after more was written; a window that showed the end follows.
  async grow(about) {
    const followed = this.view.to >= this.bounds[1] - 1;
    this.about = about;
    this.length = about.timeline.length;
    this.bounds = [-this.length * ROOM - SHORTEST, this.length * (1 + ROOM) + SHORTEST];
    this.lanes = await readLanes();
    await this.folds.read();
    this.layout();
    this.slices.renew();
    this.busy.clear();
    this.replay.renew();
    if (followed) this.show(this.view.from, this.bounds[1]);
    await this.loadMini();
    this.draw();
  }

  // ---- lanes ----------------------------------------------------------------------

  layout() {
    const tracks = new Map(), shown = [], isShown = (l) => l && !this.hidden.has(l.track) && this.evidence.shows(l.process);
    for (const l of this.lanes) if (l.track !== undefined) tracks.set(l.process, [...(tracks.get(l.process) ?? []), l]);
    for (const track of this.pinned) shown.push(...this.lanes.filter((l) => l.track === track && isShown(l)));
    const pins = shown.length;
    for (const head of this.folds.heads(this.lanes.filter((l) => l.track === undefined && this.evidence.shows(l.process)))) {
      shown.push(head);
      if (head.fold === undefined && this.open.has(head.process)) shown.push(...(tracks.get(head.process) ?? []).filter((l) => isShown(l) && !this.pinned.has(l.track)));
    }
    let y = 0;
    this.rows = shown.map((lane, i) => {
      const row = {lane, y, height: laneHeight(lane) + this.replay.height(lane), pinned: i < pins};
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

  // Updates the view after a change of the visible lanes.
  rearrange() {
    if (!this.ready) return;
    this.layout();
    place.noteSoon(this.lanesAsPlace());
    this.status();
    this.draw();
  }

  // ---- the address -----------------------------------------------------------------

  get openAtFirst() {
    return this.lanes.length < OPEN_LANES ? this.lanes.filter((l) => l.track === undefined).map((l) => l.process) : [];
  }

  // Returns the lane settings for the address: processes that differ from the initial state, pinned and hidden
  // lanes.
  lanesAsPlace() {
    const first = new Set(this.openAtFirst), all = this.lanes.filter((l) => l.track === undefined).map((l) => l.process);
    const list = (set) => [...set].join(',');
    return {flip: list(all.filter((p) => first.has(p) !== this.open.has(p))), pin: list(this.pinned), hide: list(this.hidden), replay: this.replay.write(), only: this.evidence.write(), folds: this.folds.write()};
  }

  takePlace({flip, pin, hide, replay, only, folds}) {
    this.replay.read(replay);
    this.evidence.read(only);
    this.folds.readPlace(folds);
    const numbers = (text) => (text ? text.split(',').map(Number).filter(Number.isInteger) : []);
    this.open = new Set(this.openAtFirst);
    for (const p of numbers(flip)) if (!this.open.delete(p)) this.open.add(p);
    this.pinned = new Set(numbers(pin));
    this.hidden = new Set(numbers(hide));
  }

  // Restores the selection from the address.
  async restore({sel, area, top}) {
    const [track, start, depth] = (sel ?? '').split(':').map(Number), lane = this.lanes.find((l) => l.track === track);
    if (top) this.roll(Number(top) - this.scroll);
    if (sel && lane) await this.selectAt(lane, start, depth, false);
    const [from, to, ...tracks] = (area ?? '').split(',').map(Number);
    if (!area) return;
    this.area = {times: [from, to], tracks};
    await this.sumUp();
  }

  noteSelected() {
    const {lane, data, i} = this.selected ?? {};
    place.noteSoon({sel: lane ? `${lane.track}:${data.start[i]}:${data.depth(i)}` : null,
      area: this.area ? [...this.area.times, ...this.area.tracks].join(',') : null});
  }

  // ---- window ---------------------------------------------------------------------

  show(from, to, remember = false) {
    if (remember) this.history.push([this.view.from, this.view.to]);
    const span = Math.min(Math.max(to - from, SHORTEST), this.bounds[1] - this.bounds[0]);
    const a = Math.min(Math.max(from, this.bounds[0]), this.bounds[1] - span);
    Object.assign(this.view, {from: a, to: a + span});
    place.noteSoon({t0: Math.round(a), t1: Math.round(a + span), from: null, to: null});
    this.pair?.tell();
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

  // Pixels of the window, also before the first picture.
  get px() {
    return Math.max(100, Math.round((this.painter.width ?? this.canvas.clientWidth) - LABEL));
  }

  timeAt(x) {
    return this.view.from + (x - LABEL) / this.view.scale;
  }

  // Goes to a place in relative times (t0, t1) or, for a finding, in Unix nanoseconds (from, to).
  // Values that are no numbers are as if they were not given.
  goTo(at) {
    let {t0, t1} = at;
    const whole = /^-?\d{1,19}$/;
    if (whole.test(at.from) && whole.test(at.to)) [t0, t1] = [at.from, at.to].map((t) => Number(BigInt(t) - this.first));
    const [a, b] = [Number(t0), Number(t1)], room = at.from ? (b - a) * 0.1 : 0;
    if (t0 !== undefined && a <= b && b >= this.bounds[0] && a <= this.bounds[1]) this.show(a - room, b + room);
    if (whole.test(at.rank)) this.revealRank(Number(at.rank));
    if (at.q && at.q !== this.found.text) this.search(at.q, 1)?.catch((e) => this.say(told(e), 'error'));
    if (whole.test(at.from) && whole.test(at.to)) this.evidence.arrive(at).catch((e) => this.say(told(e), 'error'));
  }

  chooseRank(rank) {
    place.note({rank});
    this.revealRank(rank);
    this.frame();
  }

  revealRank(rank) {
    this.rank = rank;
    const head = this.lanes.find((l) => l.track === undefined && l.rank === rank);
    if (head && !this.rows.some((r) => r.lane === head)) {
      this.folds.reveal(head.process);
      this.layout();
    }
    const row = this.rows.find((r) => r.lane.track === undefined && r.lane.rank === rank);
    if (row) this.scroll = Math.min(row.y, Math.max(0, this.total - this.canvas.clientHeight + RULER));
    this.draw();
  }

  // ---- painting -------------------------------------------------------------------

  paint() {
    if (!this.ready) return;
    const p = this.painter;
    p.resize();
    this.view.scale = Math.max((p.width - LABEL) / (this.view.to - this.view.from), 1e-12);
    const seen = this.rowsInSight();
    this.paintSlices(seen);
    p.ruler(this.view, LABEL);
    p.g.save();
    this.clip(RULER + this.pinHeight);
    for (const r of seen) if (!r.pinned) this.paintRow(r);
    this.replay.paintPath();
    p.g.restore();
    p.g.save();
    this.clip(RULER);
    for (const r of seen) if (r.pinned) this.paintRow(r);
    paintMarks(this);
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

  // Draws all slices into one bitmap first, then names, labels and marks on top.
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
      if (lane.rank === this.rank) {
        p.g.fillStyle = p.c.accent;
        p.g.fillRect(0, y, 3, r.height - 1);
      }
      const isOpen = lane.fold === undefined ? this.open.has(lane.process) : this.folds.isOpen(lane);
      p.text(`${isOpen ? '▾' : '▸'} ${lane.label}`, 8, y + GROUP / 2, LABEL - 12);
      const b = this.busy.get(lane.process);
      if (!isOpen && b?.share) p.busy(b.share, b.name, '', y, LABEL);
      return;
    }
    const data = this.slices.get(lane.track);
    if (data && lane.kind === 'counter') p.counter(data, y, LABEL, this.view, lane.label);
    else if (data) p.names(lane, ROW);
    p.g.fillStyle = p.c.bg;
    p.g.fillRect(0, y, LABEL, r.height);
    p.text(r.pinned ? this.whose(lane) : lane.kind === 'counter' ? nameOf(lane.label) : lane.label, r.pinned ? 8 : 24, y + ROW / 2, LABEL - (r.pinned ? 12 : 30), p.c.dim);
    this.replay.paintIdeal(r);
    p.g.fillStyle = p.c.line;
    p.g.fillRect(0, y + r.height - 1, p.width, 1);
  }

  // Shows the time at the pointer, relative to the run and as time of day.
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

  // Shows the uncertainty between times of different hosts, beside the ruler.
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

  // ---- data -----------------------------------------------------------------------

  fetch(seen) {
    const {px} = this;
    const tracks = seen.filter((r) => r.lane.track !== undefined).map((r) => r.lane.track);
    const fail = (e) => this.say(told(e), 'error');
    this.slices.ask(tracks, this.view.from, this.view.to, px, this.bounds).catch(fail);
    for (const r of seen) {
      const closed = r.lane.fold === undefined ? !this.open.has(r.lane.process) : !this.folds.isOpen(r.lane);
      if (r.lane.track === undefined && closed) this.fetchBusy(r.lane.process, px);
    }
    this.replay.fetch(seen, px).catch(fail);
    fetchTexts(this.draw).catch(fail);
  }

  async fetchBusy(process, px) {
    const key = `${Math.round(this.view.from)} ${Math.round(this.view.to)} ${px}`;
    const known = this.busy.get(process);
    if (known?.key === key || known?.asked === key) return;
    this.busy.set(process, {...known, asked: key});
    const n = Math.min(px, BUSY_PARTS);
    const b = await bytes('busy', {process, from: Math.round(this.view.from), to: Math.round(this.view.to), px: n});
    this.busy.set(process, {key, asked: key, share: new Float32Array(b, 0, n), name: new Uint32Array(b, 4 * n, n)});
    this.draw();
  }

  async loadMini() {
    const heads = this.folds.heads(this.lanes.filter((l) => l.track === undefined)).slice(0, MINI_PROCESSES), n = MINI_PARTS;
    const sums = new Float32Array(n), names = new Uint32Array(n), most = new Float32Array(n);
    await Promise.all(heads.map(async (l) => {
      const b = await bytes('busy', {process: l.process, from: 0, to: this.length, px: n}), share = new Float32Array(b, 0, n), name = new Uint32Array(b, 4 * n, n);
      share.forEach((v, i) => {
        sums[i] += v / heads.length;
        if (v > most[i]) [most[i], names[i]] = [v, name[i]];
      });
    }));
    this.miniParts = {sums, names};
    this.readFindings().then((list) => {
      this.draw();
      fill(this.list, asList(list, this.steps));
    }, () => {});
  }

  // The whole run, coloured by what takes longest, with ticks of findings above and of hits below.
  paintMini() {
    const p = this.miniPainter, {sums, names} = this.miniParts ?? {sums: [], names: []}, each = p.width / sums.length, span = this.bounds[1] - this.bounds[0];
    p.resize();
    p.clear();
    const x = (t) => (t - this.bounds[0]) / span * p.width;
    sums.forEach((v, i) => {
      const tall = v * (p.height - 4);
      p.g.fillStyle = p.colour('', names[i]);
      p.g.fillRect(i * each, p.height - 2 - tall, each + 0.3, tall);
    });
    const tick = (t, y, colour) => {
      p.g.fillStyle = p.c.bg;
      p.g.fillRect(x(t) - 3, y - 1, 7, 8);
      p.g.fillStyle = colour;
      p.g.fillRect(x(t) - 2, y, 5, 6);
    };
    for (const [, start] of this.found.rows) tick(start, p.height - 7, p.c.accent);
    for (const f of this.findings?.list ?? []) tick(Number(BigInt(f.at.from) - this.first), 1, f.severity === 'error' ? p.c.error : f.severity === 'warning' ? p.c.warning : p.c.dim);
    const a = x(this.view.from), b = x(this.view.to);
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

  // The rank and the lane, for a title.
  whose(lane) {
    return lane.rank >= 0 ? `${w('rank')} ${lane.rank} · ${lane.domain === 'communication' ? lane.domain : lane.label}` : lane.label;
  }

  // The lane of a rank's part in a collective.
  laneOfCall([, process, tid]) {
    return this.lanes.find((l) => l.process === process && l.domain === 'communication' && l.tid === tid);
  }

  hoverAt(x, y) {
    const row = x > LABEL ? this.rowAt(y) : null, data = row?.lane.track !== undefined ? this.slices.get(row.lane.track) : null;
    const i = data && row.lane.kind !== 'counter' ? hit(data, this.timeAt(x), Math.floor((y - this.top(row)) / ROW), 2 / this.view.scale) : -1;
    this.hovered = i >= 0 ? {lane: row.lane, data, i} : null;
    const name = this.hovered ? textOf(data.name(i)) : '';
    this.canvas.title = this.hovered ? `${name ?? ''}\n${time(data.dur[i])}, ${w('start')} ${time(data.start[i])}, ${this.whose(row.lane)}` : '';
  }

  click(x, y, all) {
    const row = this.rowAt(y);
    if (!row) return;
    this.area = null;
    if (row.lane.fold !== undefined) {
      this.folds.flip(row.lane);
    } else if (row.lane.track === undefined) {
      if (all) this.openAll();
      else this.flipOpen(row.lane.process);
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
    this.choose(i >= 0 ? {lane: row.lane, data, i} : null);
  }

  choose(selected) {
    this.selected = selected;
    this.noteSelected();
    if (selected) this.showSlice().catch((e) => this.say(told(e), 'error'));
    else this.showDrawer();
    this.draw();
  }

  clear() {
    if (!this.selected && !this.area && !this.collective) this.evidence.leave();
    this.selected = this.area = this.collective = null;
    this.noteSelected();
    this.showDrawer();
    this.draw();
  }

  async showSlice() {
    const {lane, data, i} = this.selected, name = await knownText(data.name(i));
    if (this.selected?.data !== data || this.selected.i !== i) return; // another slice was selected meanwhile
    const rows = [[w('start'), time(data.start[i])], [w('duration'), time(data.dur[i])], [w('domain'), lane.domain],
      [w('lane'), this.whose(lane)]];
    if (data.count(i) > 1) rows.push([w('times'), count(data.count(i))]);
    if (data.flags(i) & 1) rows.push(['', w('neverEnded')]);
    const show = (args, ...extra) => this.showDrawer(this.found.bar(), h('h2.mono', {}, titleOf(name ?? '', args)),
        h('div.facts', {}, [...rows, ...Object.entries(args ?? {})].map(([k, v]) => [h('span.dim', {}, k),
          h('span.mono', {}, typeof v === 'object' ? JSON.stringify(v) : String(v))])), extra);
    show();
    const ev = await get('find', {tracks: lane.track, t: Math.floor(data.start[i]) - 1, q: name});
    show(ev?.args);
    const aligned = await this.askCollective(lane, data.start[i]);
    if (aligned) show(ev?.args, aligned);
  }

  laneMenu(lane) {
    const button = (set, text) => h('button', {onclick: () => this.flip(set, lane.track)}, w(text));
    this.showDrawer(h('h2', {}, lane.label), h('div.facts', {}, h('span.dim', {}, w('events')), count(lane.events)),
        button(this.pinned, 'pin'), ' ', button(this.hidden, 'hide'));
  }

  flip(set, what) {
    if (!set.delete(what)) set.add(what);
    this.rearrange();
  }

  flipOpen(process) {
    this.flip(this.open, process);
  }

  flipLane(set) {
    if (this.selected) this.flip(set, this.selected.lane.track);
    else this.say(w('selectFirst'));
  }

  showHidden() {
    this.hidden.clear();
    this.rearrange();
  }

  // Selects an area between two corners: its times, and the lanes in it. If only process rows are in it, all
  // lanes of these processes are selected.
  takeIn(x0, y0, x1, y1) {
    const low = Math.min(y0, y1), high = Math.max(y0, y1);
    const touched = this.rowsInSight().filter((r) => this.top(r) <= high && this.top(r) + r.height > low && r.lane.kind !== 'counter');
    const whole = new Set(touched.filter((r) => r.lane.track === undefined).flatMap((r) => this.folds.processesOf(r.lane))), some = touched.filter((r) => r.lane.track !== undefined);
    const lanes = some.length ? some.map((r) => r.lane) : this.lanes.filter((l) => l.track !== undefined && l.kind !== 'counter' && whole.has(l.process));
    this.area = {times: [x0, x1].map((x) => Math.round(this.timeAt(Math.max(x, LABEL)))).sort((a, b) => a - b), tracks: lanes.map((l) => l.track)};
  }

  async sumUp() {
    this.noteSelected();
    if (!this.area?.tracks.length) return;
    const {times: [from, to], tracks} = this.area;
    try {
      this.showSums(await get('sum', {tracks: tracks.join(','), from, to}), 'total', to - from);
    } catch (e) {
      this.say(told(e), 'error');
    }
  }

  showSums(rows, by, length) {
    this.showDrawer(sumsOf(rows, by, length, (k) => this.showSums(rows, k, length)));
  }

  // Lists the hits of a text, or goes to the next or previous one.
  search(text, direction) {
    if (direction && text === this.found.text) return this.found.step(direction);
    return this.found.seek(text).then(() => direction && this.found.step(direction));
  }

  revealTrack(track) {
    const lane = this.lanes.find((l) => l.track === track);
    this.open.add(lane.process);
    this.folds.reveal(lane.process);
    this.hidden.delete(track);
    this.rearrange();
    const row = this.rows.find((r) => r.lane === lane), y = this.top(row);
    if (!row.pinned && (y < RULER + this.pinHeight || y + row.height > this.canvas.clientHeight)) this.roll(row.y - this.canvas.clientHeight / 2 - this.scroll);
  }

  // Selects the next or previous slice of the lane; the first visible one if none is selected.
  async neighbour(direction) {
    if (!this.selected) {
      this.selectFirst();
      return;
    }
    const {lane, data, i} = this.selected;
    const ev = await get('find', {tracks: lane.track, t: Math.floor(data.start[i]), back: direction < 0 ? 1 : 0});
    if (ev) await this.selectAt(lane, ev.start, ev.depth);
  }

  selectFirst() {
    for (const {lane} of this.rowsInSight()) {
      const data = lane.track !== undefined && lane.kind !== 'counter' ? this.slices.get(lane.track) : null;
      const i = data?.start.findIndex((t, k) => t + data.dur[k] >= this.view.from && t <= this.view.to) ?? -1;
      if (i >= 0) {
        this.choose({lane, data, i});
        return;
      }
    }
    this.say(w('noSlices'));
  }

  // Selects the slice at the same time, or the next one, in the next lane that shows any.
  acrossLanes(by) {
    const {lane, data, i} = this.selected, t = Math.max(data.start[i], this.view.from);
    const lanes = this.rows.map((r) => r.lane).filter((l) => l.track !== undefined && l.kind !== 'counter');
    for (let k = lanes.indexOf(lane) + by; k >= 0 && k < lanes.length; k += by) {
      const there = this.slices.get(lanes[k].track);
      if (!there?.n) continue;
      const now = hit(there, t, 0, 0), next = there.start.findIndex((s) => s >= t);
      this.choose({lane: lanes[k], data: there, i: now >= 0 ? now : next >= 0 ? next : there.n - 1});
      this.revealTrack(lanes[k].track);
      return;
    }
  }

  // Returns the ranks and steps for the selectors of the frame.
  choices() {
    const ranks = [...new Set(this.lanes.filter((l) => l.track === undefined && l.rank >= 0).map((l) => l.rank))];
    const steps = this.steps.map((s) => String(s[1])), {rank = ranks[0], step = ''} = place.read();
    return [[w('step'), ['', ...steps], step, (v) => this.goToStep(v)],
      [w('rank'), ranks, rank, (v) => this.chooseRank(Number(v))]];
  }

  goToStep(number) {
    const s = this.steps.find((x) => String(x[1]) === number);
    if (!s) {
      place.note({step: null});
      this.show(0, this.length, true);
      return;
    }
    place.note({step: number});
    this.show(s[2] - s[3] * 0.1, s[2] + s[3] * 1.1, true);
  }

  roll(by) {
    this.scroll = Math.max(0, Math.min(this.scroll + by, this.total - this.canvas.clientHeight + RULER));
    place.noteSoon({top: this.scroll ? Math.round(this.scroll) : null});
    this.draw();
  }

  // Shows the step after or before the middle of the window, with a margin.
  async step(by) {
    const process = (this.selected?.lane ?? this.rows[0]?.lane)?.process, room = (this.view.to - this.view.from) * 0.01;
    const found = await get('step', {process, t: Math.round((this.view.from + this.view.to) / 2 + by * room), back: by < 0 ? 1 : 0});
    if (found) this.show(found[2] - found[3] * 0.1, found[2] + found[3] * 1.1, true);
  }

  turnRank(by) {
    const ranks = [...new Set(this.lanes.filter((l) => l.track === undefined && l.rank >= 0).map((l) => l.rank))];
    if (!ranks.length) return;
    const now = ranks.indexOf(this.rank), next = now < 0 ? (by > 0 ? 0 : ranks.length - 1) : (now + by + ranks.length) % ranks.length;
    this.chooseRank(ranks[next]);
  }

  // Goes to the same collective on the next or previous rank; for any other slice to the other end of its flow.
  async partner(by) {
    if (!this.selected) return;
    if (!this.collective) {
      await this.followFlow();
      return;
    }
    const calls = [...this.collective.calls].sort((a, b) => a[0] - b[0]), {lane} = this.selected;
    const now = calls.findIndex((k) => k[1] === lane.process), next = calls[(now + by + calls.length) % calls.length];
    const there = this.laneOfCall(next);
    if (there) await this.selectAt(there, next[3], 0);
  }

  // Requests the slices of a track. Painting meanwhile cancels the request by one of its own, so it is repeated.
  // Selects the slice of a lane that begins at a time; if several are merged into one, the slice that contains
  // it.
  async selectAt(lane, start, depth, reveal = true) {
    if (reveal) this.revealTrack(lane.track);
    const span = this.view.to - this.view.from;
    if (reveal && (start < this.view.from || start > this.view.to)) this.show(start - span / 2, start + span / 2, true);
    const {from, to} = this.view, data = await this.slices.of(lane.track, from, to, this.px, this.bounds);
    if (!data) return;
    const exact = data.start.findIndex((t, i) => t === start && data.depth(i) === depth);
    const i = exact >= 0 ? exact : hit(data, start, depth, 2 / this.view.scale);
    if (i >= 0) this.choose({lane, data, i});
  }

  // Selects the enclosing slice.
  around() {
    if (!this.selected) return;
    const {lane, data, i} = this.selected, depth = data.depth(i) - 1;
    const k = depth >= 0 ? hit(data, data.start[i], depth, 0) : -1;
    if (k >= 0) this.choose({lane, data, i: k});
  }

  flipProcess() {
    const {process} = this.selected?.lane ?? this.rows.find((r) => !r.pinned && r.y >= this.scroll)?.lane ?? {};
    if (process !== undefined) this.flipOpen(process);
  }

  // The findings that lie in the timeline; they stay until the run grows.
  async readFindings() {
    const {version} = this.about;
    if (this.findings?.version !== version) {
      const list = (await get('findings', {lang: language()})).map((f) => ({...f, at: place.read(f.place)})).filter((f) => f.at.screen === 'timeline' && f.at.from);
      this.findings = {version, list};
    }
    return this.findings.list;
  }

  // Goes to the next or previous finding of the timeline.
  async seekFinding(by) {
    const list = await this.readFindings();
    if (!list.length) {
      this.say(w('nothingFound'));
      return;
    }
    this.finding = ((this.finding ?? (by > 0 ? -1 : 0)) + by + list.length) % list.length;
    this.history.push([this.view.from, this.view.to]);
    this.goTo(list[this.finding].at);
  }

  say(text, severity) {
    this.showDrawer(h(`p.${{error: 'E', warning: 'W'}[severity] ?? 'dim'}`, {role: 'status'}, text));
  }

  async picture() {
    const {saveCanvases} = await import('../shared/picture.js');
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
      this.revealTrack(other.track);
      this.choose({lane: other, data: there, i: k});
      return;
    }
  }

  openAll() {
    const all = this.lanes.filter((l) => l.track === undefined).map((l) => l.process);
    this.open = this.open.size === all.length ? new Set() : new Set(all);
    this.rearrange();
  }

  // First call: moves the slice to the middle of the window. Second call: zooms to the slice.
  focusSelected() {
    if (!this.selected) {
      this.say(w('selectFirst'));
      return;
    }
    const {lane, data, i} = this.selected, middle = data.start[i] + data.dur[i] / 2, half = (this.view.to - this.view.from) / 2;
    const room = Math.max(data.dur[i] * 0.1, SHORTEST), there = Math.abs(this.view.from + half - middle) < 2 / this.view.scale;
    this.revealTrack(lane.track);
    if (there) this.show(data.start[i] - room, data.start[i] + data.dur[i] + room, true);
    else this.show(middle - half, middle + half, true);
  }
}

export async function open(app) {
  if (!app.about.timeline) {
    fill(app.root, h('div.empty', {}, w('noTimeline')));
    return {go() {}};
  }
  const t = new Timeline(app);
  await t.start();
  return {
    go: (at) => t.go(at).catch((e) => t.say(told(e), 'error')),
    search: (text, direction) => t.search(text, direction)?.catch((e) => t.say(told(e), 'error')),
    restyle: () => {
      t.painter.restyle();
      t.miniPainter.restyle();
      t.draw();
    },
    refresh: (about) => {
      t.grow(about).catch(() => {});
    },
    choices: () => t.choices(),
    summary: () => t.hidden.size > 0 && h('span', {}, `${count(t.hidden.size)} ${w('hiddenLanes')} (H)`),
    hint: () => w('timelineHint'),
  };
}
