// SPDX-License-Identifier: MIT
// Ranks that use their steps alike as one row: of thousands of ranks the odd ones stand out.
import {get} from '../shared/api.js';
import {count} from '../shared/util.js';
import {w} from '../shared/words.js';

const FROM = 64; // processes from which on ranks are folded

export class Folds {
  constructor(tl) {
    this.tl = tl;
    this.list = []; // {lane, ranks: Set}
    this.open = new Set(); // indices
  }

  // Makes the groups of the current lanes, the odd ranks first.
  async read() {
    const heads = this.tl.lanes.filter((l) => l.track === undefined);
    this.list = [];
    if (heads.length < FROM) return;
    const byRank = new Map();
    for (const l of heads) byRank.set(l.rank, [...(byRank.get(l.rank) ?? []), l]);
    for (const {which, ranks} of await get('alike')) {
      const members = ranks.flatMap(([a, b]) => Array.from({length: b - a + 1}, (_, i) => byRank.get(a + i) ?? [])).flat();
      if (!members.length) continue;
      for (const l of members) byRank.delete(l.rank);
      this.list.push({members, lane: {fold: this.list.length, label: `${count(members.length)} × ${w('rank')} ${which}`, process: members[0].process, rank: -1}});
    }
    const rest = [...byRank.values()].flat();
    if (rest.length) this.list.push({members: rest, lane: {fold: this.list.length, label: `${count(rest.length)} × ${w('otherRanks')}`, process: rest[0].process, rank: -1}});
    if (this.list.length === 1 && this.list[0].members.length === rest.length) this.list = []; // nothing is known of them
  }

  readPlace(text) {
    this.open = new Set(text ? text.split(',').map(Number) : []);
  }

  write() {
    return [...this.open].join(',');
  }

  isOpen(lane) {
    return this.open.has(lane.fold);
  }

  flip(lane) {
    if (!this.open.delete(lane.fold)) this.open.add(lane.fold);
    this.tl.rearrange();
  }

  // Opens the group of a process.
  reveal(process) {
    const f = this.list.find((x) => x.members.length > 1 && x.members.some((l) => l.process === process));
    if (f) this.open.add(f.lane.fold);
  }

  // Returns the processes of a row, which may be a group.
  processesOf(lane) {
    return lane.fold === undefined ? [lane.process] : this.list[lane.fold].members.map((l) => l.process);
  }

  // Returns the rows of processes in order: groups, the members of open ones, and ranks that are like no other.
  heads(all) {
    if (!this.list.length || this.tl.evidence.only) return all;
    return this.list.flatMap((f) => (f.members.length === 1 ? f.members : [f.lane, ...(this.open.has(f.lane.fold) ? f.members : [])]));
  }
}
