// SPDX-License-Identifier: MIT
// Lanes on a canvas: slices by kind, names where they fit, what is too small as one strip.
import {textOf} from './api.js';
import {time} from './util.js';

export const ROW = 18, PAD = 4, GROUP = 22, RULER = 28;
const NAME_MIN = 44; // px in which six characters fit
const COUNTER_HEIGHT = 32;

const COMM = /^(hccl|nccl|mpi_|all_?reduce|all_?gather|reduce_?scatter|broadcast|send|recv|barrier|c10d|gloo)/i;
const COPY = /memcpy|copy|memset|h2d|d2h|to_host|to_device/i;
const WAIT = /wait|idle|synchronize|sleep|poll/i;

// What a slice is about decides its colour, the same in every lane and run.
export function kindOf(domain, name) {
  if (domain === 'communication' || domain === 'NCCL' || COMM.test(name)) return 'comm';
  if (WAIT.test(name)) return 'idle';
  if (COPY.test(name)) return 'copy';
  return 'mark';
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
    this.c = Object.fromEntries(['bg', 'panel', 'line', 'text', 'dim', 'accent', 'error', 'compute',
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
    // Marks of a program: the accent's family, within 25 degrees by their name.
    const hue = 217 + (hash(name) % 51) - 25;
    const colour = kind === 'mark' ? `hsl(${hue} ${this.dark ? 38 : 48}% ${this.dark ? 44 : 66}%)` : this.c[kind];
    this.colours.set(key, colour);
    return colour;
  }

  clear() {
    this.g.fillStyle = this.c.bg;
    this.g.fillRect(0, 0, this.width, this.height);
  }

  text(s, x, y, max, colour = this.c.text) {
    const fits = Math.floor(max / 6.7);
    if (fits < 2) return;
    this.g.fillStyle = colour;
    this.g.fillText(s.length > fits ? `${s.slice(0, fits - 1)}…` : s, x, y);
  }

  // A picture of the slices, in pixels of the screen: writing them is several times faster than asking
  // the canvas for tens of thousands of rectangles.
  begin(view, x0) {
    const {width, height} = this.canvas;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = new ImageData(Math.max(1, width), Math.max(1, height));
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(this.pixel(this.c.bg));
    this.titles = new Map();
    this.ratio = devicePixelRatio || 1;
    for (const t of this.ticks(view)) this.box(x0 + (t - view.from) * view.scale, RULER, 1 / this.ratio, this.height, this.pixel(this.c.line), 0);
  }

  finish() {
    this.g.putImageData(this.image, 0, 0);
  }

  // A colour of CSS as the number that is its pixel.
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

  box(x, y, wide, tall, number, top) {
    const {width, height} = this.image, r = this.ratio, p = this.pixels;
    const a = Math.max(0, Math.round(x * r)), b = Math.min(width, Math.max(Math.round((x + wide) * r), a + 1));
    const end = Math.min(height, Math.round((y + tall) * r));
    for (let line = Math.max(0, Math.round(Math.max(y, top) * r)); line < end; line++) {
      const at = line * width;
      if (b - a > 16) p.fill(number, at + a, at + b);
      else for (let i = at + a; i < at + b; i++) p[i] = number;
    }
  }

  // Slices of a lane.  What begins within the last drawn pixel of its row is drawn with it.
  slices(c, lane, y, x0, view, low = RULER) {
    const scale = view.scale, last = new Float64Array(lane.rows + 1).fill(-1), torn = this.pixel(this.c.error), names = [];
    const colours = new Map();
    for (let i = 0; i < c.n; i++) {
      const a = x0 + (c.start[i] - view.from) * scale;
      if (a > this.width) break;
      const b = a + Math.max(c.dur[i] * scale, 1), depth = c.depth[i];
      if (b < x0 || b - last[depth] < 0.5) continue;
      last[depth] = b;
      const left = Math.max(a, x0), wide = b - left, top = y + depth * ROW;
      let number = colours.get(c.name[i]);
      if (number === undefined) colours.set(c.name[i], number = this.pixel(this.colour(lane.domain, c.name[i])));
      this.box(left, top, wide > 3 ? wide - 0.6 : wide, ROW - 2, number, low);
      if (c.flags[i] & 1) this.box(b - 2, top, 2, ROW - 2, torn, low);
      if (wide >= NAME_MIN && c.count[i] === 1) names.push(c.name[i], left, top, wide);
    }
    this.titles?.set(lane, names);
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

  // The end of a range that never ended.
  torn(x, y, restore) {
    this.g.fillStyle = this.c.error;
    this.g.fillRect(x - 2, y, 2, ROW - 2);
    restore();
  }

  counter(c, y, x0, view) {
    let most = 0;
    for (let i = 0; i < c.n; i++) most = Math.max(most, Math.abs(c.dur[i]));
    if (most === 0) return;
    const g = this.g, base = y + COUNTER_HEIGHT - 2;
    g.fillStyle = this.c.compute;
    for (let i = 0; i < c.n; i++) {
      const a = Math.max(x0, x0 + (c.start[i] - view.from) * view.scale);
      const end = i + 1 < c.n ? c.start[i + 1] : view.to;
      const b = Math.min(this.width, x0 + (end - view.from) * view.scale);
      const tall = Math.abs(c.dur[i]) / most * (COUNTER_HEIGHT - 4);
      if (b > a) g.fillRect(a, base - tall, Math.max(b - a, 1), tall);
    }
    this.text(String(most), x0 + 4, y + 8, 120, this.c.dim);
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

  // Times of the ruler's lines: 1, 2 or 5 times a power of ten apart.
  ticks(view) {
    const span = view.to - view.from, list = [];
    let step = 10 ** Math.floor(Math.log10(span / 6));
    for (const k of [5, 2]) if (span / (step * k) >= 6) { step *= k; break; }
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) list.push(t);
    return list;
  }

  ruler(view, x0) {
    const g = this.g;
    g.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
    g.textBaseline = 'middle';
    g.fillStyle = this.c.panel;
    g.fillRect(x0, 0, this.width - x0, RULER);
    for (const t of this.ticks(view)) {
      const x = Math.round(x0 + (t - view.from) * view.scale);
      g.fillStyle = this.c.line;
      g.fillRect(x, 0, 1, RULER);
      this.text(time(Math.round(t)), x + 4, RULER / 2, 100, this.c.dim);
    }
  }
}

export function laneHeight(lane) {
  if (lane.track === undefined) return GROUP;
  return lane.kind === 'counter' ? COUNTER_HEIGHT : lane.rows * ROW + PAD;
}
