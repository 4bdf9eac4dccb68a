// SPDX-License-Identifier: MIT
// A heat map on a canvas, in one hue: as many cells as there are pixels. A cell is said below the map, under the pointer
// or chosen by arrow keys.
import {h, onFrame} from './util.js';

const CELL_MOST = 22, CELL_LEAST = 3, LETTER = 7.3, EDGE = 16, STRONGEST = 0.85, STRONGEST_TOLD = 0.5, TOLD = 16, TOLD_WIDE = 64; // px; share of the accent colour

const numbers = (css) => {
  const g = new OffscreenCanvas(1, 1).getContext('2d');
  g.fillStyle = css;
  g.fillRect(0, 0, 1, 1);
  return g.getImageData(0, 0, 1, 1).data;
};

// map: rows, columns (labels), value(i, j) (NaN: none), tell(i, j) (a sentence), go(i, j) (may be missing), low and high
// (the ends of the scale, as text), share(v) (0 to 1), mark(i, j) (tells whether a cell has a frame; may be missing),
// wide (room in px), label (for screen readers).
export function heatMap(map) {
  const canvas = h('canvas.heatmap', {tabIndex: 0, role: 'img', 'aria-label': map.label}), said = h('output.dim.mono', {});
  const {rows, columns} = map, left = Math.min(220, Math.max(...rows.map((r) => String(r).length), 2) * LETTER + 8);
  const told = map.show && columns.length <= TOLD;
  const each = told ? TOLD_WIDE : Math.max(CELL_LEAST, Math.min(CELL_MOST, Math.floor((map.wide - left) / columns.length))), tall = Math.max(CELL_LEAST, Math.min(CELL_MOST, each, Math.max(8, Math.floor(1200 / rows.length))));
  const W = left + each * columns.length, H = EDGE + tall * rows.length;
  canvas.style.cssText = `width:${W}px;height:${H}px`;
  let at = null;
  const paint = () => {
    const ratio = devicePixelRatio || 1, g = canvas.getContext('2d'), css = getComputedStyle(document.documentElement), of = (n) => css.getPropertyValue(`--${n}`).trim();
    const bg = numbers(of('bg')), accent = numbers(of('accent'));
    canvas.width = W * ratio;
    canvas.height = H * ratio;
    g.scale(ratio, ratio);
    g.font = '11px ui-monospace, monospace';
    g.textBaseline = 'middle';
    for (let i = 0; i < rows.length; i++) {
      for (let j = 0; j < columns.length; j++) {
        const v = map.value(i, j);
        if (Number.isNaN(v)) continue;
        const s = (told ? STRONGEST_TOLD : STRONGEST) * Math.min(1, Math.max(0, map.share(v))) + 0.04;
        g.fillStyle = `rgb(${[0, 1, 2].map((k) => Math.round(bg[k] + (accent[k] - bg[k]) * s)).join(',')})`;
        g.fillRect(left + j * each, EDGE + i * tall, each - (each > 6 ? 1 : 0), tall - (tall > 6 ? 1 : 0));
        if (told && v > 0) {
          g.fillStyle = of('text');
          g.textAlign = 'right';
          g.fillText(map.show(v), left + (j + 1) * each - 5, EDGE + (i + 0.5) * tall);
          g.textAlign = 'left';
        }
        if (!map.mark?.(i, j)) continue;
        g.strokeStyle = of('error');
        g.lineWidth = 2;
        g.strokeRect(left + j * each + 1, EDGE + i * tall + 1, Math.max(each - 2, 2), Math.max(tall - 2, 2));
      }
    }
    g.fillStyle = of('dim');
    labels(g, columns, each, 5 * LETTER, (j, t) => g.fillText(t, left + j * each + 1, EDGE / 2));
    labels(g, rows, tall, 12, (i, t) => g.fillText(t.length * LETTER > left - 8 ? `${t.slice(0, 8)}…${t.slice(-(Math.floor((left - 8) / LETTER) - 9))}` : t, 2, EDGE + (i + 0.5) * tall));
    if (!at) return;
    g.strokeStyle = of('text');
    g.lineWidth = 1.5;
    g.strokeRect(left + at[1] * each - 0.5, EDGE + at[0] * tall - 0.5, each, tall);
  };
  const draw = onFrame(paint);
  const choose = (i, j) => {
    at = i >= 0 && j >= 0 && i < rows.length && j < columns.length ? [i, j] : null;
    said.textContent = at && !Number.isNaN(map.value(i, j)) ? map.tell(i, j) : '';
    draw();
  };
  const under = (e) => [Math.floor((e.offsetY - EDGE) / tall), Math.floor((e.offsetX - left) / each)];
  canvas.addEventListener('pointermove', (e) => choose(...under(e)));
  canvas.addEventListener('pointerleave', () => choose(-1, -1));
  const go = () => at && map.go?.(...at);
  canvas.addEventListener('click', (e) => {
    choose(...under(e));
    go();
  });
  canvas.addEventListener('keydown', (e) => {
    const by = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key];
    if (e.key === 'Enter') go();
    else if (by) choose(Math.min(rows.length - 1, Math.max(0, (at?.[0] ?? 0) + by[0])), Math.min(columns.length - 1, Math.max(0, (at?.[1] ?? 0) + by[1])));
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  new MutationObserver(draw).observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
  draw();
  return [h('div.dim.legend', {}, h('span', {}, map.low), h('i.scale'), h('span', {}, map.high), map.more && h('span', {}, map.more)), h('div.scroll', {}, canvas), h('div.told', {}, said)];
}

// Writes as many labels as there is room for.
function labels(g, list, each, least, put) {
  const step = Math.max(1, Math.ceil(least / each));
  list.forEach((t, i) => {
    if (i % step === 0) put(i, String(t));
  });
}
