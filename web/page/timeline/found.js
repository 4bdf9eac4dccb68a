// SPDX-License-Identifier: MIT
// Hits of a search in the timeline: listed and counted while a text is typed, stepped through on request.
import {get, told} from '../shared/api.js';
import {count, h, time} from '../shared/util.js';
import {w} from '../shared/words.js';

const PAGE = 200;

export class Found {
  constructor(tl) {
    this.tl = tl;
    this.forget();
  }

  forget() {
    Object.assign(this, {text: '', rows: [], count: 0, cut: false, at: -1});
  }

  // Lists the hits of a text; the window stays as it is.
  seek(text) {
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    this.forget();
    this.text = text;
    this.pending = this.ask(text, asked.signal);
    return this.pending;
  }

  async ask(text, signal) {
    if (!text.trim()) {
      this.tl.showDrawer();
      this.tl.draw();
      return;
    }
    try {
      const {rows, count: n, cut} = await get('hits', {q: text, limit: PAGE}, signal);
      Object.assign(this, {rows, count: n, cut});
      this.show();
    } catch (e) {
      if (e.name !== 'AbortError') this.tl.say(told(e));
    }
    this.tl.draw();
  }

  // Reads hits that follow the listed ones.
  async more() {
    const last = this.rows.at(-1)?.[1] ?? -1, known = new Set(this.rows.filter((r) => r[1] === last).map((r) => `${r[0]}:${r[3]}`));
    const {rows} = await get('hits', {q: this.text, t: last, limit: PAGE + known.size});
    this.rows.push(...rows.filter((r) => r[1] > last || !known.has(`${r[0]}:${r[3]}`)));
  }

  // Goes to the next or previous hit; at first to the first one that is not before the window.
  async step(by) {
    await this.pending;
    if (!this.rows.length) {
      this.tl.say(w('noHits'));
      return;
    }
    if (this.at + by >= this.rows.length && this.rows.length < this.count) await this.more();
    const n = this.rows.length, first = this.rows.findIndex((r) => r[1] + r[2] >= this.tl.view.from);
    const next = this.at < 0 ? (by > 0 ? Math.max(first, 0) : n - 1) : (this.at + by + n) % n;
    await this.go(next);
  }

  async go(i) {
    this.at = i;
    const [track, start, , depth] = this.rows[i], lane = this.tl.lanes.find((l) => l.track === track);
    if (!this.tl.evidence.shows(lane.process)) this.tl.evidence.leave();
    await this.tl.selectAt(lane, start, depth);
  }

  get total() {
    return `${this.cut ? '> ' : ''}${count(this.count)} ${w(this.count === 1 ? 'hit' : 'hits')}`;
  }

  // Tells which hit is selected, above its details.
  bar() {
    if (this.at < 0) return null;
    return h('div.legend.hitbar', {}, h('span', {role: 'status'}, `${count(this.at + 1)} / ${this.total}`),
        h('button', {onclick: () => this.step(-1), title: w('previousHit'), 'aria-label': w('previousHit')}, '‹'),
        h('button', {onclick: () => this.step(1), title: w('nextHit'), 'aria-label': w('nextHit')}, '›'), h('button', {onclick: () => this.show()}, w('listHits')));
  }

  show() {
    const {tl} = this, whose = new Map(tl.lanes.filter((l) => l.track !== undefined).map((l) => [l.track, l]));
    const draw = () => tl.showDrawer(h('h2', {role: 'status'}, this.rows.length ? this.total : w('noHits'), this.rows.length > 0 && h('span.dim', {}, ` · ${w('hitKeys')}`)),
        this.rows.length > 0 && h('div.hitlist', {}, this.rows.map(([track, start, dur, , name], i) => h(`button.hit${i === this.at ? '.now' : ''}`, {onclick: () => this.go(i).catch((e) => tl.say(told(e), 'error'))},
            h('span.num', {}, time(start)), h('span.num', {}, time(dur)), h('span.dim', {}, tl.whose(whose.get(track))), h('span', {}, name))),
        this.rows.length < this.count && h('button', {onclick: () => this.more().then(draw, () => {})}, `${w('more')} (${count(this.count - this.rows.length)})`)));
    draw();
  }
}
