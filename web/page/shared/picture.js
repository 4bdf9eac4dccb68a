// SPDX-License-Identifier: MIT
// Saves the view to a file: the unfolded lines of the graph as SVG, the lanes as a bitmap.
import {save, shortName, svg} from './util.js';

const ROW = 20, INDENT = 18, HALF = 640, LETTER = {error: 'E', warning: 'W', pass: '.', unmatched: '-'};
const TOKENS = ['bg', 'text', 'dim', 'line', 'error', 'warning', 'pass', 'unmatched'];

// Reads the current colours: a saved file has no style sheet.
function colours() {
  const css = getComputedStyle(document.documentElement);
  return Object.fromEntries(TOKENS.map((t) => [t, css.getPropertyValue(`--${t}`).trim()]));
}

function words(text, x, y, fill, more) {
  return svg('text', {x, y, fill, 'font-family': 'ui-monospace, monospace', 'font-size': 12, ...more}, text);
}

// Draws one line of one side: letter, name, states below.
function side(row, line, x, y, c) {
  if (!row) return [words('· · ·', x, y, c.dim)];
  const letter = row.overflow ? '!' : LETTER[row.state] ?? ' ', colour = row.overflow ? c.error : c[row.state] ?? c.dim;
  const times = line.kind === 'run' ? ` ×${line.members.length}` : '', below = line.pair.below ?? [];
  const told = ['E', 'W', '-', '!'].map((k, i) => (below[i] ? `${below[i]}${k}` : '')).filter(Boolean).join(' ');
  return [words(letter, x, y, colour, {'font-weight': 700}), words(shortName(row) + times, x + 16, y, c.text),
    told && words(told, x + HALF - line.depth * INDENT - 40, y, c.error, {'text-anchor': 'end'})];
}

function drawing(lines, both, c, x0) {
  return lines.map((line, i) => {
    if (line.kind === 'more') return words('…', x0 + line.depth * INDENT + 16, 28 + i * ROW, c.dim);
    const x = x0 + 12 + line.depth * INDENT, y = 28 + i * ROW, {target, golden} = line.pair;
    return [side(both ? target : target ?? golden, line, x, y, c), both ? side(golden, {...line, kind: line.kind, pair: {}}, x + HALF, y, c) : []];
  });
}

// Saves the panes side by side; `both`: one list shows both sides.
export function savePicture(panes, both, title) {
  const c = colours(), wide = (both ? 2 : panes.length) * HALF, tall = 40 + Math.max(...panes.map((p) => p.length)) * ROW;
  const image = svg('svg', {xmlns: 'http://www.w3.org/2000/svg', width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`},
      svg('rect', {width: wide, height: tall, fill: c.bg}), panes.map((lines, i) => drawing(lines, both, c, i * HALF)));
  save(`${title}.svg`, 'image/svg+xml', new XMLSerializer().serializeToString(image));
}

// Saves canvases as one picture, each below the previous one.
export function saveCanvases(list, title) {
  const all = new OffscreenCanvas(Math.max(...list.map((k) => k.width)), list.reduce((sum, k) => sum + k.height, 0)), g = all.getContext('2d');
  let y = 0;
  for (const canvas of list) {
    g.drawImage(canvas, 0, y);
    y += canvas.height;
  }
  return all.convertToBlob({type: 'image/png'}).then((blob) => save(`${title}.png`, 'image/png', blob));
}
