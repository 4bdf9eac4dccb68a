// SPDX-License-Identifier: MIT
// Small helpers that every view uses: elements, numbers, times.

// h('div.row.dim', {title: 'x', onclick: f}, child, 'text', [more]) creates an element. Text is inserted as
// text, never as HTML: names come from programs and may contain anything.
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const e = document.createElement(name || 'div');
  if (classes.length) e.className = classes.join(' ');
  for (const [k, v] of Object.entries(props ?? {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (k === 'style') e.style.cssText = v; // a style attribute would violate the page's own policy
    else if (k in e && typeof v !== 'string') e[k] = v;
    else e.setAttribute(k, v === true ? '' : v);
  }
  add(e, children);
  return e;
}

function add(e, children) {
  for (const c of children.flat(Infinity)) {
    if (c !== null && c !== undefined && c !== false) e.append(c);
  }
}

export function fill(e, ...children) {
  e.replaceChildren();
  add(e, children);
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';
export function svg(tag, props, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(props ?? {})) e.setAttribute(k, v);
  add(e, children);
  return e;
}

export const count = (n) => Math.round(n).toLocaleString('en-US');

// Formats nanoseconds with three significant digits and a unit.
export function time(ns) {
  const a = Math.abs(ns);
  const [f, unit] = a < 1e3 ? [1, 'ns'] : a < 1e6 ? [1e3, 'µs'] : a < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  if (a >= 60e9) return `${Math.trunc(ns / 60e9)} min ${(a / 1e9 % 60).toFixed(0)} s`;
  return `${digits(ns / f, 3)} ${unit}`;
}

// Formats a time in an unambiguous form, by the clock of this machine: "2026-11-23 01:51:41".
export function moment(ms) {
  const at = new Date(ms), two = (n) => String(n).padStart(2, '0');
  return `${[at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`;
}

// Formats a number with n significant digits, without exponent if that is short.
export function digits(v, n = 4) {
  if (!Number.isFinite(v)) return Number.isNaN(v) ? 'NaN' : v > 0 ? 'inf' : '-inf';
  if (v === 0 || Number.isInteger(v) && Math.abs(v) < 1e6) return String(v);
  const a = Math.abs(v);
  return a >= 1e-3 && a < 1e6 ? String(Number(v.toPrecision(n))) : v.toExponential(n - 1);
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
export function bytes(n) {
  let i = 0, v = n;
  while (v >= 1000 && i < UNITS.length - 1) {
    v /= 1000;
    i++;
  }
  return `${digits(v, 3)} ${UNITS[i]}`;
}

export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

// Delays a call until no further call has come for `ms` milliseconds.
export function debounce(fn, ms) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), ms);
  };
}

export function onFrame(fn) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      fn();
    });
  };
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure origin: use the old API
    const area = h('textarea', {}, text);
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

// Saves the concatenated texts as a file on the visitor's machine.
export function save(name, type, ...parts) {
  const a = h('a', {href: URL.createObjectURL(new Blob(parts, {type})), download: name});
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

// The short name of a node, computed by the server.
export const shortName = (row) => row.short ?? row.name;

// A list of rows of equal height of which only the visible ones are elements.
export class VirtualList {
  constructor(root, rowHeight, makeRow, drawn = () => {}) {
    this.root = root;
    this.drawn = drawn;
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.n = 0;
    this.space = h('div.vspace');
    this.rows = new Map();
    root.classList.add('vlist');
    root.append(this.space);
    this.update = onFrame(() => this.draw());
    root.addEventListener('scroll', this.update, {passive: true});
    new ResizeObserver(this.update).observe(root);
  }

  // Replaces the content: every row is created again.
  reset(n) {
    this.n = n;
    this.space.replaceChildren();
    this.rows.clear();
    this.space.style.height = `${n * this.rowHeight}px`;
    this.update();
  }

  range() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / this.rowHeight) - 4);
    const seen = Math.ceil(this.root.clientHeight / this.rowHeight) + 8;
    return [first, Math.min(this.n, first + seen)];
  }

  draw() {
    const [first, end] = this.range();
    for (const [i, row] of this.rows) {
      if (i >= first && i < end) continue;
      row.remove();
      this.rows.delete(i);
    }
    for (let i = first; i < end; i++) {
      if (this.rows.has(i)) continue;
      const row = this.makeRow(i);
      row.style.transform = `translateY(${i * this.rowHeight}px)`;
      this.rows.set(i, row);
      this.space.append(row);
    }
    this.drawn();
  }

  // Creates the visible rows again.
  refresh() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.update();
  }

  resize(rowHeight) {
    this.rowHeight = rowHeight;
    this.reset(this.n);
  }

  // Returns the scroll position at which row i is in the middle.
  middle(i) {
    const most = Math.max(0, this.root.scrollHeight - this.root.clientHeight);
    return Math.min(most, Math.max(0, Math.round((i + 0.5) * this.rowHeight - this.root.clientHeight / 2)));
  }

  reveal(i) {
    const top = i * this.rowHeight, h = this.root.clientHeight;
    if (top < this.root.scrollTop || top + this.rowHeight > this.root.scrollTop + h) {
      this.root.scrollTop = Math.max(0, top - h / 2);
    }
    this.update();
  }
}
