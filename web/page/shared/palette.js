// SPDX-License-Identifier: MIT
// The command palette: every key's action by its words.
import {Keys, openDialog} from './keys.js';
import {fill, h} from './util.js';
import {w} from './words.js';

// Scores a text that contains all letters in order; fewer gaps are better.
function score(text, want) {
  let at = -1, gaps = 0;
  for (const c of want.toLowerCase()) {
    const next = text.toLowerCase().indexOf(c, at + 1);
    if (next < 0) return -1;
    gaps += next - at - 1;
    at = next;
  }
  return gaps;
}

export function openPalette(keys) {
  const input = h('input', {type: 'text', role: 'combobox', 'aria-label': w('command'), 'aria-expanded': 'true', 'aria-controls': 'commands', placeholder: w('command')});
  const list = h('div.keylist', {role: 'listbox', id: 'commands'});
  let hits = [], chosen = 0;
  const close = openDialog(w('commands'), input, list);
  const run = (k) => {
    close();
    k.run();
  };
  const draw = () => {
    fill(list, hits.map((k, i) => h('div', {
      role: 'option', id: `command-${i}`, 'aria-selected': i === chosen ? 'true' : 'false', onclick: () => run(k),
    }, h('span', {}, w(k.text)), h('kbd', {hidden: !k.key}, Keys.shown(k.key)))), hits.length === 0 && h('div.dim', {}, w('noHits')));
    input.setAttribute('aria-activedescendant', hits.length ? `command-${chosen}` : '');
    list.children[chosen]?.scrollIntoView({block: 'nearest'});
  };
  const seek = () => {
    hits = keys.list.map((k) => [score(w(k.text), input.value), k]).filter(([s]) => s >= 0)
        .sort((a, b) => a[0] - b[0]).map(([, k]) => k);
    chosen = 0;
    draw();
  };
  input.addEventListener('input', seek);
  input.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && hits[chosen]) run(hits[chosen]);
    else if (e.key === 'ArrowDown') chosen = Math.min(chosen + 1, hits.length - 1);
    else if (e.key === 'ArrowUp') chosen = Math.max(chosen - 1, 0);
    else return;
    e.preventDefault();
    draw();
  });
  seek();
  input.focus();
}
