// SPDX-License-Identifier: MIT
// The evidence of a finding: its sentence above the lanes, and of all ranks the culprit of the worst collective and a
// few that wait for it, pinned, with the collective selected and the ideal timeline below each lane.
import {get} from '../shared/api.js';
import {fill, h} from '../shared/util.js';
import {w} from '../shared/words.js';

const PARTNERS = 7, BEFORE = 0.6, AFTER = 0.3; // ranks beside the culprit; margins as shares of the collective

export class Evidence {
  constructor(tl, bar) {
    this.tl = tl;
    this.bar = bar;
    this.only = null; // processes that are shown; null: all
  }

  read(text) {
    this.only = text ? new Set(text.split(',').map(Number).filter(Number.isInteger)) : null;
    this.tell(null);
  }

  write() {
    return this.only ? [...this.only].join(',') : '';
  }

  shows(process) {
    return !this.only || this.only.has(process);
  }

  // Shows all ranks again.
  leave() {
    if (!this.only) return;
    this.only = null;
    this.tl.pinned.clear();
    this.tell(null);
    this.tl.rearrange();
  }

  tell(finding) {
    this.finding = finding ?? null;
    this.bar.hidden = !finding && !this.only;
    const letter = {error: 'E', warning: 'W'}[finding?.severity] ?? 'I';
    fill(this.bar, finding && h(`b.${letter}`, {}, `${letter === 'I' ? 'i' : letter} `), h('span.text', {role: 'status'}, finding?.text ?? w('fewRanks')),
        this.only && h('button', {onclick: () => this.leave()}, w('allRanks')));
  }

  // Arrives by the link of a finding: a rank and a time range.
  async arrive(at) {
    const {tl} = this, [from, to] = [at.from, at.to].map((t) => Number(BigInt(t) - tl.first));
    const [list, c] = await Promise.all([tl.readFindings(), at.rank === undefined ? null : get('collective', {rank: at.rank, from, to})]);
    const finding = list.find((f) => f.at.from === at.from && f.at.rank === at.rank);
    this.only = null;
    this.tell(finding);
    if (c?.calls.length > 1) await this.showCollective(c, finding);
    else tl.rearrange();
  }

  async showCollective(c, finding) {
    const {tl} = this, culprit = c.calls.at(-1), calls = [culprit, ...c.calls.slice(0, -1).slice(0, PARTNERS)];
    const lanes = calls.map((k) => tl.laneOfCall(k)).filter(Boolean);
    this.only = new Set(calls.map((k) => k[1]));
    tl.pinned = new Set(lanes.map((l) => l.track));
    for (const p of this.only) tl.open.add(p);
    if (tl.about.timeline.replay) tl.replay.shown.add('ideal');
    this.tell(finding);
    tl.scroll = 0;
    tl.rearrange();
    const begin = c.calls[0][3], end = Math.max(...calls.map((k) => k[4])), long = Math.max(end - begin, 10);
    tl.show(begin - long * BEFORE, end + long * AFTER, true);
    const lane = tl.laneOfCall(culprit);
    if (lane) await tl.selectAt(lane, culprit[3], 0, false);
  }
}
