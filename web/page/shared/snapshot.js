// SPDX-License-Identifier: MIT
// Places to come back to: nine snapshots by their digit, and notes.  They stay in this browser.
import {openDialog} from './keys.js';
import * as place from './place.js';
import {fill, h} from './util.js';
import {w} from './words.js';

const KEY = 'msprobe-places';

const read = () => JSON.parse(localStorage.getItem(KEY) ?? '{"shots":{},"notes":[]}');
const write = (all) => localStorage.setItem(KEY, JSON.stringify(all));
const here = () => place.write(place.read());

function tell(text) {
  const box = h('div.toast', {role: 'status'}, text);
  document.body.append(box);
  setTimeout(() => box.remove(), 1600);
}

export function store(n) {
  const all = read();
  all.shots[n] = here();
  write(all);
  tell(`${w('stored')} ${n}`);
}

export function recall(n) {
  const at = read().shots[n];
  if (at) place.go(at);
  else tell(`${w('noSnapshot')} ${n}`);
}

export function note() {
  const text = h('input', {type: 'text', 'aria-label': w('note'), placeholder: w('note')});
  const close = openDialog(w('note'), text);
  text.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || !text.value.trim()) return;
    const all = read();
    all.notes.push({at: here(), text: text.value.trim()});
    write(all);
    close();
  });
  text.focus();
}

export function list() {
  const box = h('div.keylist');
  const close = openDialog(w('notes'), h('b', {}, w('notes')), box);
  const row = (label, at, drop) => h('div', {}, h('a', {href: `#${at}`, onclick: close}, label), h('span.dim.mono', {}, at.split('?')[0]),
      h('button', {title: w('remove'), 'aria-label': w('remove'), onclick: drop}, '×'));
  const draw = () => {
    const all = read();
    const drop = (change) => () => {
      change();
      write(all);
      draw();
    };
    fill(box, Object.entries(all.shots).map(([n, at]) => row(n, at, drop(() => delete all.shots[n]))),
        all.notes.map((x, i) => row(x.text, x.at, drop(() => all.notes.splice(i, 1)))),
        !all.notes.length && !Object.keys(all.shots).length && h('div.dim', {}, w('noNotes')));
  };
  draw();
  box.querySelector('a, button')?.focus();
}
