// SPDX-License-Identifier: MIT
// The timeline under the hands: wheel, pointer, minimap and keys.
import {LABEL, RULER} from './painter.js';

const CLICK_PX = 3, ROLL_PX = 60, PAN = 0.15, ZOOM = 0.7;

export function listen(tl) {
  new ResizeObserver(() => {
    if (tl.ready) tl.layout();
    tl.draw();
  }).observe(tl.root);
  tl.canvas.addEventListener('wheel', (e) => wheel(tl, e), {passive: false});
  drags(tl);
  tl.mini.addEventListener('pointerdown', (e) => fromMini(tl, e));
  tl.mini.addEventListener('pointermove', (e) => { if (e.buttons) fromMini(tl, e); });
}

function wheel(tl, e) {
  const c = tl.canvas;
  e.preventDefault();
  if (e.ctrlKey || e.metaKey) tl.zoom(1.0015 ** e.deltaY, (e.offsetX - LABEL) / (c.clientWidth - LABEL));
  else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) tl.pan((e.deltaX || e.deltaY) / c.clientWidth);
  else tl.roll(e.deltaY);
}

// Handles drags: a plain drag moves the window; with Shift it selects an area of times and lanes; without
// movement it is a click.
function drags(tl) {
  const c = tl.canvas;
  let drag = null;
  c.addEventListener('pointerdown', (e) => {
    c.setPointerCapture(e.pointerId);
    drag = {x: e.offsetX, y: e.offsetY, from: tl.view.from, to: tl.view.to, moved: false, area: e.shiftKey};
  });
  c.addEventListener('pointermove', (e) => {
    tl.pointer = e.offsetX;
    if (!drag) tl.hoverAt(e.offsetX, e.offsetY);
    else {
      drag.moved ||= Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) > CLICK_PX;
      if (drag.moved && drag.area) tl.takeIn(drag.x, drag.y, e.offsetX, e.offsetY);
      else if (drag.moved) {
        const by = (drag.x - e.offsetX) / tl.view.scale;
        tl.show(drag.from + by, drag.to + by);
      }
    }
    tl.draw();
  });
  c.addEventListener('pointerup', (e) => {
    if (drag && !drag.moved) tl.click(e.offsetX, e.offsetY, e.altKey);
    else if (drag?.area) tl.sumUp();
    drag = null;
  });
  c.addEventListener('pointerleave', () => {
    tl.pointer = null;
    tl.draw();
  });
}

function fromMini(tl, e) {
  const span = tl.bounds[1] - tl.bounds[0], t = tl.bounds[0] + e.offsetX / tl.mini.clientWidth * span;
  const half = (tl.view.to - tl.view.from) / 2;
  tl.show(t - half, t + half);
}

export function addKeys(tl) {
  const add = (key, text, run) => tl.keys.add('view', key, text, run);
  const middle = () => (tl.pointer > LABEL ? (tl.pointer - LABEL) / (tl.canvas.clientWidth - LABEL) : 0.5);
  add('w', 'zoom in', () => tl.zoom(ZOOM, middle()));
  add('s', 'zoom out', () => tl.zoom(1 / ZOOM, middle()));
  add('a', 'earlier', () => tl.pan(-PAN));
  add('d', 'later', () => tl.pan(PAN));
  add('arrowleft', 'previous slice, or earlier', () => (tl.selected ? tl.neighbour(-1) : tl.pan(-PAN)));
  add('arrowright', 'next slice, or later', () => (tl.selected ? tl.neighbour(1) : tl.pan(PAN)));
  add('arrowup', 'slice of the lane above, or up', () => (tl.selected ? tl.acrossLanes(-1) : tl.roll(-ROLL_PX)));
  add('arrowdown', 'slice of the lane below, or down', () => (tl.selected ? tl.acrossLanes(1) : tl.roll(ROLL_PX)));
  add('space', 'fit all', () => tl.show(...tl.bounds, true));
  add('t', 'next step', () => tl.step(1));
  add('T', 'previous step', () => tl.step(-1));
  add('r', 'next rank', () => tl.turnRank(1));
  add('R', 'previous rank', () => tl.turnRank(-1));
  add(']', 'next communication partner or flow', () => tl.partner(1));
  add('[', 'previous communication partner or flow', () => tl.partner(-1));
  add('enter', 'open or close the process', () => tl.flipProcess());
  add('alt+enter', 'open or close all processes', () => tl.openAll());
  add('u', 'parent', () => tl.around());
  add('e', 'next finding', () => tl.seekFinding(1));
  add('E', 'previous finding', () => tl.seekFinding(-1));
  add('P', 'savePicture', () => tl.picture());
  add('p', 'pin or unpin the lane', () => tl.flipLane(tl.pinned));
  add('h', 'hide the lane', () => tl.flipLane(tl.hidden));
  add('H', 'show hidden lanes', () => tl.showHidden());
  add('o', 'open or close all processes', () => tl.openAll());
  add('x', 'show or hide the critical path', () => tl.replay.flip('path'));
  add('X', 'show or hide the ideal timeline', () => tl.replay.flip('ideal'));
  add('f', 'to the middle; again: fit it', () => tl.focusSelected());
  add('.', 'next slice', () => tl.neighbour(1));
  add(',', 'previous slice', () => tl.neighbour(-1));
  add('backspace', 'back to the window before', () => {
    const last = tl.history.pop();
    if (last) tl.show(...last);
    else history.back();
  });
  add('Z', 'zoom to the selected area', () => {
    if (tl.area) tl.show(...tl.area.times, true);
  });
  add('escape', 'clear the selection', () => tl.clear());
}
