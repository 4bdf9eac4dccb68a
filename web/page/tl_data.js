// SPDX-License-Identifier: MIT
// Slices of the lanes in sight.  A window twice as wide as the screen is asked for, so that
// panning finds what it needs; until an answer is there the last picture stays.
import {bytes, textOf} from './api.js';

const VERSION = 1;
const AHEAD = 0.5; // screens on each side

// One track's columns out of the reply.
function columns(buffer, at) {
  const head = new Uint32Array(buffer, at, 2);
  const [track, n] = head;
  let p = at + 8;
  const take = (Type, size) => {
    const a = new Type(buffer, p, n);
    p += n * size;
    return a;
  };
  const c = {
    track, n,
    start: take(Float64Array, 8), dur: take(Float64Array, 8), link: take(Float64Array, 8),
    name: take(Uint32Array, 4), count: take(Uint32Array, 4), depth: take(Uint16Array, 2),
    kind: take(Uint8Array, 1), flags: take(Uint8Array, 1),
  };
  return [c, Math.ceil(p / 8) * 8];
}

export function parse(buffer) {
  const [version, tracks] = new Uint32Array(buffer, 0, 2);
  if (version !== VERSION) throw new Error('the server is of another version; reload the page');
  const out = [];
  for (let i = 0, at = 8, c; i < tracks; i++) {
    [c, at] = columns(buffer, at);
    out.push(c);
  }
  return out;
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

  // Is what we have good enough for the window? Finer than needed is fine, up to a factor of four.
  serves(track, from, to, resolution) {
    const t = this.tracks.get(track);
    if (!t) return false;
    return t.from <= from && t.to >= to && t.resolution <= resolution * 1.01 && t.resolution > resolution / 4;
  }

  async ask(tracks, from, to, px, bounds) {
    const resolution = (to - from) / px;
    const missing = tracks.filter((t) => !this.serves(t, Math.max(from, bounds[0]), Math.min(to, bounds[1]), resolution));
    if (!missing.length) return;
    this.request?.abort();
    const request = this.request = new AbortController();
    const wide = (to - from) * AHEAD;
    const a = Math.floor(Math.max(from - wide, bounds[0])), b = Math.ceil(Math.min(to + wide, bounds[1]));
    const parts = Math.min(16384, Math.max(1, Math.round((b - a) / resolution)));
    try {
      const reply = parse(await bytes('slices', {tracks: missing.join(','), from: a, to: b, px: parts}, request.signal));
      for (const data of reply) this.tracks.set(data.track, {from: a, to: b, resolution, data});
      this.changed();
    } catch (e) {
      if (e.name !== 'AbortError') throw e;
    } finally {
      if (this.request === request) this.request = null;
    }
  }

  // What we have is of an older state: it is shown until the new one is here.
  renew() {
    for (const t of this.tracks.values()) t.resolution = Infinity;
  }
}

// The slice under a time and a depth: the last that starts before it and reaches it.
export function hit(c, t, depth, slack) {
  let low = 0, high = c.n;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (c.start[mid] <= t + slack) low = mid + 1;
    else high = mid;
  }
  for (let i = low - 1; i >= 0 && i > low - 5000; i--) {
    if (c.depth[i] === depth && c.start[i] + Math.max(c.dur[i], slack) >= t - slack) return i;
  }
  return -1;
}

export const nameOf = (c, i) => textOf(c.name[i]);
