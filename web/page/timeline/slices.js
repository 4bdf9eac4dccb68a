// SPDX-License-Identifier: MIT
// Slices of the visible lanes.  Requests cover a window twice as wide as the screen, so that panning
// needs no new one at once; until an answer arrives the last picture stays.
import {bytes, get} from '../shared/api.js';

const VERSION = 2;
const AHEAD = 0.5; // margin on each side, in screens
const COUNTS = 1, LINKS = 2, WIDE_SHAPES = 4, WIDE_DURATIONS = 8;

// Slices of one track. start, dur and shape are columns; fields shared by many slices are in the shape.
export class Columns {
  constructor(buffer, at) {
    const [track, n, shapes, has] = new Uint32Array(buffer, at, 4);
    let p = at + 16;
    const take = (Type, length) => {
      const a = new Type(buffer, p, length);
      p += a.byteLength;
      return a;
    };
    const words = take(Uint32Array, 2 * shapes);
    this.track = track;
    this.n = n;
    this.shapes = Array.from({length: shapes}, (_, i) =>
      ({name: words[2 * i], depth: words[2 * i + 1] & 0xffff, kind: words[2 * i + 1] >> 16 & 0xff, flags: words[2 * i + 1] >>> 24}));
    this.start = take(Float64Array, n);
    this.links = has & LINKS ? take(Float64Array, n) : null;
    this.dur = take(has & WIDE_DURATIONS ? Float64Array : Float32Array, n);
    this.counts = has & COUNTS ? take(Uint32Array, n) : null;
    this.shape = take(has & WIDE_SHAPES ? Uint32Array : Uint16Array, n);
    this.end = Math.ceil(p / 8) * 8;
  }

  name(i) { return this.shapes[this.shape[i]].name; }
  depth(i) { return this.shapes[this.shape[i]].depth; }
  flags(i) { return this.shapes[this.shape[i]].flags; }
  count(i) { return this.counts ? this.counts[i] : 1; }
  link(i) { return this.links ? this.links[i] : 0; }
}

export function parse(buffer) {
  const [version, tracks] = new Uint32Array(buffer, 0, 2);
  if (version !== VERSION) throw new Error('the server is of another version; reload the page');
  const out = [];
  for (let i = 0, at = 8; i < tracks; i++, at = out.at(-1).end) out.push(new Columns(buffer, at));
  return out;
}

// Reads the lanes, which travel as rows of values.
export async function readLanes() {
  const {fields, lanes} = await get('lanes');
  return lanes.map((row) => Object.fromEntries(row.map((v, i) => [fields[i], v])));
}

export class Slices {
  constructor(changed) {
    this.changed = changed;
    this.tracks = new Map(); // track → {from, to, px, data}
    this.request = null;
  }

  get(track) {
    return this.tracks.get(track)?.data;
  }

  // Tells whether the cached slices serve the window; up to four times finer than needed is accepted.
  serves(track, from, to, resolution) {
    const t = this.tracks.get(track);
    if (!t) return false;
    return t.from <= from && t.to >= to && t.resolution <= resolution * 1.01 && t.resolution > resolution / 4;
  }

  // Requests what the picture lacks; a newer picture aborts the request of an older one.
  async ask(tracks, from, to, px, bounds) {
    const missing = tracks.filter((t) => !this.serves(t, Math.max(from, bounds[0]), Math.min(to, bounds[1]), (to - from) / px));
    if (!missing.length) return;
    this.request?.abort();
    const request = this.request = new AbortController();
    try {
      await this.load(missing, from, to, px, bounds, request.signal);
      this.changed();
    } catch (e) {
      if (e.name !== 'AbortError') throw e;
    } finally {
      if (this.request === request) this.request = null;
    }
  }

  // Returns the slices of one track for a window; no picture that is drawn meanwhile aborts this.
  async of(track, from, to, px, bounds) {
    if (this.serves(track, Math.max(from, bounds[0]), Math.min(to, bounds[1]), (to - from) / px)) return this.get(track);
    const [data] = await this.load([track], from, to, px, bounds);
    this.changed();
    return data;
  }

  async load(tracks, from, to, px, bounds, signal) {
    const resolution = (to - from) / px, wide = (to - from) * AHEAD;
    const a = Math.floor(Math.max(from - wide, bounds[0])), b = Math.ceil(Math.min(to + wide, bounds[1]));
    const parts = Math.min(16384, Math.max(1, Math.round((b - a) / resolution)));
    const reply = parse(await bytes('slices', {tracks: tracks.join(','), from: a, to: b, px: parts}, signal));
    for (const data of reply) this.tracks.set(data.track, {from: a, to: b, resolution, data});
    return reply;
  }

  // Marks the cached slices as outdated; they are shown until the new ones arrive.
  renew() {
    for (const t of this.tracks.values()) t.resolution = Infinity;
  }
}

// Returns the slice at a time and a depth: the last that starts before the time and reaches it.
export function hit(c, t, depth, slack) {
  let low = 0, high = c.n;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (c.start[mid] <= t + slack) low = mid + 1;
    else high = mid;
  }
  for (let i = low - 1; i >= 0 && i > low - 5000; i--) {
    if (c.depth(i) === depth && c.start[i] + Math.max(c.dur[i], slack) >= t - slack) return i;
  }
  return -1;
}
