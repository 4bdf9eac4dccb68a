// SPDX-License-Identifier: MIT
// Keys: one table drives what they do, the help and the palette.
import {fill, h} from './util.js';
import {w} from './words.js';

export class Keys {
  constructor() {
    this.list = [];
    addEventListener('keydown', (e) => this.press(e));
  }

  // Adds a key; group 'view' is removed with its view, and a view's key takes precedence over the app's.
  add(group, key, text, run) {
    this.list.unshift({group, key, text, run});
  }

  clear(group) {
    this.list = this.list.filter((k) => k.group !== group);
  }

  static ARROWS = {arrowup: '↑', arrowdown: '↓', arrowleft: '←', arrowright: '→'};

  // Returns a key as printed on keyboards.
  static shown(key) {
    return key.replace(/arrow(up|down|left|right)/, (arrow) => Keys.ARROWS[arrow]);
  }

  static nameOf(e) {
    const named = e.key === ' ' ? 'space' : e.key.toLowerCase();
    const single = e.key.length === 1 && e.key !== ' ';
    const key = single ? e.key : named;
    return (e.ctrlKey || e.metaKey ? 'ctrl+' : '') + (e.altKey ? 'alt+' : '') +
        (e.shiftKey && (!single || e.ctrlKey) ? 'shift+' : '') + (e.ctrlKey || e.altKey ? key.toLowerCase() : key);
  }

  // Returns Shift and a digit, independent of the keyboard layout.
  static digitOf(e) {
    const digit = /^Digit([1-9])$/.exec(e.code)?.[1];
    return digit && e.shiftKey && !e.ctrlKey && !e.altKey && !e.metaKey ? `shift+${digit}` : null;
  }

  find(name) {
    return name && this.list.find((k) => k.key === name);
  }

  press(e) {
    if (e.target.matches?.('input, textarea, select') || e.defaultPrevented) return;
    const found = this.find(Keys.nameOf(e)) ?? this.find(Keys.digitOf(e));
    if (!found) return;
    e.preventDefault();
    found.run(e);
  }

  show() {
    const list = h('div.keylist', {tabIndex: 0, role: 'region', 'aria-label': w('keysOf')}), filter = h('input', {type: 'search', placeholder: w('filterKeys')});
    const ordered = ['view', 'app'].flatMap((g) => this.list.filter((k) => k.group === g).reverse()); // the view's keys first
    const lines = together(ordered);
    const draw = () => fill(list, lines.filter(({keys, text}) => `${keys.join(' ')} ${w(text)}`.toLowerCase().includes(filter.value.toLowerCase()))
        .map(({keys, text}) => h('div', {}, h('div', {}, keys.map((key) => (key === TO ? ` ${TO} ` : [h('kbd', {}, Keys.shown(key)), ' ']))), h('span', {}, w(text)))));
    filter.addEventListener('input', draw);
    openDialog(w('keysOf'), filter, list);
    draw();
    filter.focus();
  }
}

// Joins keys with the same action in one line, and also nine keys that differ in a digit.
const TO = '–';
function together(list) {
  const lines = new Map();
  for (const {key, text} of list) {
    const what = text.replace(/ \d$/, '');
    if (!lines.has(what)) lines.set(what, []);
    if (key && !lines.get(what).includes(key)) lines.get(what).push(key);
  }
  return [...lines].map(([text, keys]) => ({text, keys: keys.length > 8 ? [keys[0], TO, keys.at(-1)] : keys}));
}

// Handles Escape, which closes the dialog wherever the focus is, and Tab, which cycles within the dialog.
function holdKeys(e, box, close) {
  const stops = [...box.querySelectorAll('button, a[href], input, select, textarea')], inside = box.contains(document.activeElement);
  const edge = e.shiftKey ? stops[0] : stops.at(-1);
  if (e.key === 'Escape') close();
  else if (e.key === 'Tab' && (!inside || document.activeElement === edge)) (e.shiftKey ? stops.at(-1) : stops[0])?.focus();
  else if (inside) return;
  e.preventDefault();
  e.stopPropagation();
}

// Opens a modal dialog that Escape closes; returns a function that closes it. Meanwhile the page behind the
// dialog is inert.
export function openDialog(title, ...content) {
  const before = document.activeElement, behind = [...document.body.children].filter((e) => !e.inert);
  const cover = h('div.cover'), box = h('div.floating.dialog', {role: 'dialog', 'aria-modal': 'true', 'aria-label': title}, content);
  for (const e of behind) e.inert = true;
  const hold = (e) => holdKeys(e, box, close);
  const close = () => {
    removeEventListener('keydown', hold, true);
    cover.remove();
    box.remove();
    for (const e of behind) e.inert = false;
    before?.focus?.();
  };
  cover.addEventListener('click', close);
  box.addEventListener('keydown', (e) => e.stopPropagation());
  addEventListener('keydown', hold, true);
  document.body.append(cover, box);
  return close;
}
