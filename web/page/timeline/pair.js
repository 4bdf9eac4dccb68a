// SPDX-License-Identifier: MIT
// The older of two runs below the newer one: a page of its own in a frame, which shows the same part of the same step.
// Steps are paired in their order. Both sides have a Pair; each tells the other what it shows.
import {h} from '../shared/util.js';
import {side} from '../shared/api.js';
import {w} from '../shared/words.js';

export class Pair {
  constructor(tl) {
    this.tl = tl;
    this.taking = false; // what is shown was told by the other side
    addEventListener('message', (e) => {
      if (e.origin === location.origin && e.source === this.other && e.data) this.take(e.data);
    });
  }

  get other() {
    return side ? parent : this.frame?.contentWindow;
  }

  // Puts the frame below the lanes of the newer run, with a line that says which is which.
  add(lanes) {
    const {about} = this.tl, old = about.golden.split('/').filter(Boolean).at(-1);
    this.frame = h('iframe', {src: '/?side=old#timeline', title: `${w('olderRun')}: ${old}`});
    const below = h('div.older', {}, h('div.caption', {}, h('b', {}, w('olderRun')), ' ', old, h('span.grow'), h('span.dim', {}, w('pairHint'))), this.frame);
    return h('div.pair', {}, lanes, below);
  }

  // The older run is there, and asks what it should show.
  ready() {
    if (side) this.other.postMessage({ask: true}, location.origin);
  }

  // The first step that begins in the window, else the one in which the window lies.
  stepIn({from, to}) {
    const {steps} = this.tl, i = steps.findIndex((s) => s[2] >= from && s[2] < to);
    return i >= 0 ? i : steps.findLastIndex((s) => s[2] <= from);
  }

  begin(step) {
    return this.tl.steps[Math.min(step, this.tl.steps.length - 1)]?.[2] ?? 0;
  }

  tell() {
    if (this.taking || !this.tl.ready) return;
    const {from, to} = this.tl.view, step = this.stepIn(this.tl.view), start = step < 0 ? 0 : this.begin(step);
    this.other?.postMessage({step, from: from - start, to: to - start}, location.origin);
  }

  take({ask, step, from, to}) {
    if (ask) return this.tell();
    if (!this.tl.ready) return;
    const {tl} = this, start = step < 0 ? 0 : this.begin(step);
    tl.bounds = [Math.min(tl.bounds[0], start + from), Math.max(tl.bounds[1], start + to)]; // a step of the other may be longer
    this.taking = true;
    tl.show(start + from, start + to);
    this.taking = false;
  }
}
