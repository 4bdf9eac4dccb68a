// SPDX-License-Identifier: MIT
// Lanes on a canvas: slices by kind, names where they fit, slices below a pixel merged.
import {textOf} from '../shared/api.js';
import {shown} from './counters.js';
import {digits, time} from '../shared/util.js';

export const ROW = 18, PAD = 4, GROUP = 22, RULER = 28; // px
const NARROW = 700, LABEL_NARROW = 120, LABEL_USUAL = 220; // px
export let LABEL = LABEL_USUAL; // px, width of the names of lanes
const NAME_MIN = 44; // px, room for six characters
const COUNTER_HEIGHT = 32, LETTER = 7.3; // px
const WIDE = /[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f000}-\u{3ffff}]/u; // scripts whose letters take the room of two, and pictures
const MIDDLE_LEAST = 12; // letters from which on a text is cut in its middle

const COMM = /^(hccl|nccl|mpi_|all_?reduce|all_?gather|reduce_?scatter|broadcast|send|recv|barrier|c10d|gloo)/i;
const COPY = /memcpy|copy|memset|h2d|d2h|to_host|to_device/i;
const WAIT = /wait|idle|synchronize|sleep|poll/i;

// The subject of a slice decides its colour, the same in every lane and run.
export function kindOf(domain, name) {
  if (domain === 'communication' || domain === 'NCCL' || COMM.test(name)) return 'comm';
  if (WAIT.test(name)) return 'idle';
  if (COPY.test(name)) return 'copy';
  return 'mark';
}

const channel = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);

// Relative luminance of a colour in hue, saturation and lightness, as contrast is computed.
function luminance(hue, sat, light) {
  const f = (n) => {
    const k = (n + hue / 30) % 12;
    return channel(light - sat * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return 0.2126 * f(0) + 0.7152 * f(8) + 0.0722 * f(4);
}

// Colour of a program's marks: the accent's hue plus or minus 25 degrees, by name. All have the luminance of the
// other kinds, so that they contrast with the background, and names with them.
export function markColour(name, dark) {
  const hue = 217 + (hash(name) % 51) - 25, sat = dark ? 0.38 : 0.48, want = dark ? 0.1365 : 0.262;
  let [low, high] = [0, 1];
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (luminance(hue, sat, middle) < want) low = middle;
    else high = middle;
  }
  return `hsl(${hue} ${100 * sat}% ${(100 * low).toFixed(2)}%)`;
}

function hash(s) {
  let v = 2166136261;
  for (let i = 0; i < s.length; i++) v = Math.imul(v ^ s.charCodeAt(i), 16777619);
  return v >>> 0;
}

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.g = canvas.getContext('2d', {alpha: false});
    this.colours = new Map();
    this.numbers = new Map();
    this.restyle();
  }

  restyle() {
    const css = getComputedStyle(document.documentElement);
    const of = (name) => css.getPropertyValue(`--${name}`).trim();
    this.c = Object.fromEntries(['bg', 'panel', 'line', 'text', 'dim', 'accent', 'error', 'warning', 'compute',
      'comm', 'copy', 'idle'].map((n) => [n, of(n)]));
    this.dark = document.documentElement.dataset.theme === 'dark';
    this.colours.clear();
  }

  resize() {
    const ratio = devicePixelRatio || 1, {clientWidth: w, clientHeight: h} = this.canvas;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
    }
    this.g.setTransform(ratio, 0, 0, ratio, 0, 0);
    LABEL = w < NARROW ? LABEL_NARROW : LABEL_USUAL;
    this.width = w;
    this.height = h;
  }

  colour(domain, id) {
    const key = `${domain}\0${id}`;
    const known = this.colours.get(key);
    if (known) return known;
    const name = textOf(id);
    if (name === undefined) return this.c.compute;
    const kind = kindOf(domain, name);
    const colour = kind === 'mark' ? markColour(name, this.dark) : this.c[kind];
    this.colours.set(key, colour);
    return colour;
  }

  clear() {
    this.g.fillStyle = this.c.bg;
    this.g.fillRect(0, 0, this.width, this.height);
  }

  text(s, x, y, max, colour = this.c.text) {
    const shown = this.fitted(s, max);
    if (!shown) return;
    this.g.fillStyle = colour;
    this.g.fillText(shown, x, y);
  }

  // As much of a text as there is room for, with its beginning and its end; a letter of a wide script takes the room
  // of two.
  fitted(s, max) {
    const letters = [...s], wide = letters.filter((l) => WIDE.test(l)).length, fits = Math.floor(max / LETTER * letters.length / (letters.length + wide));
    if (fits < 2 || letters.length <= fits) return fits < 2 ? '' : s;
    const tail = fits < MIDDLE_LEAST ? 0 : Math.floor(fits / 3);
    return `${letters.slice(0, fits - 1 - tail).join('')}…${tail ? letters.slice(-tail).join('') : ''}`;
  }

  // Starts a frame. Every row of slices is one line of pixels, written here and stretched to its height by the
  // canvas: many times faster than tens of thousands of rectangles.
  begin(view, x0, rows) {
    this.ratio = devicePixelRatio || 1;
    this.titles = new Map();
    this.placed = [];
    this.x0 = x0;
    this.makeStrip(Math.max(1, Math.round((this.width - x0) * this.ratio)), rows);
    this.clear();
    const ground = this.pixels.subarray(0, this.strip.width).fill(this.pixel(this.c.bg)), line = this.pixel(this.c.line);
    this.g.fillStyle = this.c.line;
    for (const t of this.ticks(view)) {
      const x = Math.round((t - view.from) * view.scale);
      this.g.fillRect(x0 + x, RULER, 1 / this.ratio, this.height);
      ground[Math.round(x * this.ratio)] = line;
    }
    for (let i = 1; i < rows; i++) this.pixels.copyWithin(i * ground.length, 0, ground.length);
  }

  makeStrip(wide, rows) {
    if (this.strip?.width === wide && this.strip.height >= rows) return;
    this.strip = new OffscreenCanvas(wide, Math.max(rows, 64));
    this.image = new ImageData(wide, this.strip.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  // Copies the lines to their positions; the part above `low` is hidden by pinned lanes.
  finish() {
    const rows = this.placed.reduce((sum, p) => sum + p.rows, 0);
    if (rows === 0) return;
    const {g, strip} = this;
    strip.getContext('2d').putImageData(this.image, 0, 0, 0, 0, strip.width, rows);
    g.imageSmoothingEnabled = false;
    for (const {first, rows, y, low} of this.placed) {
      for (let i = 0; i < rows; i++) {
        const top = Math.max(y + i * ROW, low), tall = y + i * ROW + ROW - 2 - top;
        if (tall > 0) g.drawImage(strip, 0, first + i, strip.width, 1, this.x0, top, strip.width / this.ratio, tall);
      }
    }
  }

  // Returns the pixel value of a CSS colour.
  pixel(colour) {
    const known = this.numbers.get(colour);
    if (known !== undefined) return known;
    const g = (this.probe ??= new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true}));
    g.fillStyle = colour;
    g.fillRect(0, 0, 1, 1);
    const number = new Uint32Array(g.getImageData(0, 0, 1, 1).data.buffer)[0];
    this.numbers.set(colour, number);
    return number;
  }

  // Draws the slices of a lane. A slice that begins within the last drawn pixel of its row is merged into it.
  slices(c, lane, y, view, low = RULER) {
    const {ratio, pixels} = this, wide = this.strip.width, scale = view.scale * ratio, names = [];
    const first = this.placed.length ? this.placed.at(-1).first + this.placed.at(-1).rows : 0;
    const last = new Int32Array(lane.rows).fill(-1), torn = this.pixel(this.c.error), gapFrom = 3 * ratio;
    const idle = this.pixel(this.c.idle), dim = this.pixel(this.c.dim), hatch = Math.round(5 * ratio);
    const colours = c.shapes.map((s) => this.pixel(this.colour(lane.domain, s.name)));
    this.placed.push({first, rows: lane.rows, y, low});
    for (let i = 0; i < c.n; i++) {
      let a = Math.round((c.start[i] - view.from) * scale);
      if (a >= wide) break;
      const end = Math.round((c.start[i] - view.from + c.dur[i]) * scale), shape = c.shape[i], {depth, flags, name} = c.shapes[shape];
      if (a < 0) a = 0;
      const b = end > wide ? wide : end > a ? end : a + 1;
      if (end < 0 || b <= last[depth]) continue;
      last[depth] = b;
      const at = (first + depth) * wide, stop = at + b - (end - a > gapFrom ? 1 : 0), colour = colours[shape];
      if (colour === idle) for (let k = at + a; k < stop; k++) pixels[k] = (k - at) % hatch === 0 ? dim : idle;
      else if (b - a > 16) pixels.fill(colour, at + a, stop);
      else for (let k = at + a; k < stop; k++) pixels[k] = colour;
      if (flags & 1) pixels.fill(torn, Math.max(at + a, stop - 2 * ratio), stop);
      if (b - a >= NAME_MIN * ratio && c.count(i) === 1) names.push(name, this.x0 + a / ratio, y + depth * ROW, (b - a) / ratio);
    }
    this.titles.set(lane, names);
  }

  names(lane) {
    const list = this.titles.get(lane) ?? [];
    this.g.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
    this.g.textBaseline = 'middle';
    for (let k = 0; k < list.length; k += 4) {
      const name = textOf(list[k]);
      if (name) this.text(name, list[k + 1] + 3, list[k + 2] + ROW / 2 - 1, list[k + 3] - 6);
    }
  }

  hatch(x, y, wide, tall) {
    const g = this.g;
    g.save();
    g.beginPath();
    g.rect(x, y, wide, tall);
    g.clip();
    g.fillStyle = this.c.idle;
    g.fillRect(x, y, wide, tall);
    g.strokeStyle = this.c.dim;
    g.lineWidth = 1;
    g.beginPath();
    for (let k = x - tall; k < Math.min(x + wide, this.width); k += 6) {
      g.moveTo(k, y + tall);
      g.lineTo(k + tall, y);
    }
    g.stroke();
    g.restore();
  }

  dot(x, y) {
    this.g.fillStyle = this.c.text;
    this.g.beginPath();
    this.g.arc(x, y, 3, 0, 7);
    this.g.fill();
  }

  counter(c, y, x0, view, label) {
    const {at, told, top} = shown(c, label);
    let most = top;
    for (let i = 0; i < c.n; i++) most = Math.max(most, at(i));
    if (most === 0) return;
    const g = this.g, base = y + COUNTER_HEIGHT - 2;
    g.fillStyle = this.c.compute;
    for (let i = 0; i < c.n; i++) {
      const a = Math.max(x0, x0 + (c.start[i] - view.from) * view.scale);
      const end = i + 1 < c.n ? c.start[i + 1] : view.to;
      const b = Math.min(this.width, x0 + (end - view.from) * view.scale);
      const tall = at(i) / most * (COUNTER_HEIGHT - 4);
      if (b > a) g.fillRect(a, base - tall, Math.max(b - a, 1), tall);
    }
    this.plate(told(most), x0 + 4, y + 9);
  }

  // A text that stays readable before anything.
  plate(s, x, y) {
    this.g.fillStyle = this.c.bg;
    this.g.fillRect(x - 2, y - 7, this.g.measureText(s).width + 4, 14);
    this.text(s, x, y, 120, this.c.dim);
  }

  // A verdict that ends at x, on a ground of its own; without room at the left it begins there.
  verdict(s, x, y, least) {
    const g = this.g, text = this.fitted(s, this.width - least - 16), wide = g.measureText(text).width + 10, a = Math.min(Math.max(x - wide, least + 4), this.width - wide - 4);
    g.fillStyle = this.c.bg;
    g.fillRect(a, y - 9, wide, 18);
    g.strokeStyle = this.c.error;
    g.lineWidth = 1;
    g.strokeRect(a + 0.5, y - 8.5, wide - 1, 17);
    g.fillStyle = this.c.error;
    g.fillText(text, a + 5, y + 1);
  }

  busy(shares, names, domain, y, x0) {
    const g = this.g, n = shares.length, each = (this.width - x0) / n;
    for (let i = 0; i < n; i++) {
      if (shares[i] <= 0) continue;
      g.fillStyle = this.colour(domain, names[i]);
      const tall = Math.max(1, shares[i] * (GROUP - 6));
      g.fillRect(x0 + i * each, y + GROUP - 3 - tall, each + 0.3, tall);
    }
  }

  // Returns the times of the ruler's lines: 1, 2 or 5 times a power of ten apart.
  ticks(view) {
    const span = view.to - view.from, list = [], least = Math.min(6, Math.max(1, Math.floor(span * view.scale / 150)));
    let step = 10 ** Math.floor(Math.log10(span / least));
    for (const k of [5, 2]) if (span / (step * k) >= least) { step *= k; break; }
    for (let t = Math.max(0, Math.ceil(view.from / step) * step); t <= view.to; t += step) list.push(t);
    return list;
  }

  // Labels that differ: where times from the start of the run look alike, the first is given in full and the
  // others by their distance from it.
  labels(ticks) {
    const plain = ticks.map((t) => (t === 0 ? '0' : time(Math.round(t))));
    if (new Set(plain).size === plain.length) return plain;
    return ticks.map((t, i) => (i ? `+${time(Math.round(t - ticks[0]))}` : `${digits(ticks[0] / 1e9, 12)} s`));
  }

  ruler(view, x0) {
    const g = this.g;
    g.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
    g.textBaseline = 'middle';
    g.fillStyle = this.c.panel;
    g.fillRect(x0, 0, this.width - x0, RULER);
    const ticks = this.ticks(view), labels = this.labels(ticks);
    ticks.forEach((t, i) => {
      const x = Math.round(x0 + (t - view.from) * view.scale);
      g.fillStyle = this.c.line;
      g.fillRect(x, 0, 1, RULER);
      this.text(labels[i], x + 4, RULER / 2, (ticks[1] - ticks[0]) * view.scale - 6 || 200, this.c.dim);
    });
  }
}

export function laneHeight(lane) {
  if (lane.track === undefined) return GROUP;
  return lane.kind === 'counter' ? COUNTER_HEIGHT : lane.rows * ROW + PAD;
}
