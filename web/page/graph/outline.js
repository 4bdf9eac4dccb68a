// SPDX-License-Identifier: MIT
// The tree of the graph as the flat list of lines that are unfolded.
import {get} from '../shared/api.js';

const PAGE = 1000, RUN_LEAST = 3;

// One line of the outline: a pair, a run of equal layers, or "more".
export class Line {
  constructor(kind, depth, pair) {
    Object.assign(this, {kind, depth, pair, open: false});
  }

  get row() {
    return this.pair.target ?? this.pair.golden;
  }

  get foldable() {
    return this.kind !== 'node' || Boolean(this.pair.target?.children || this.pair.golden?.children);
  }
}

// The flat list of unfolded lines, of both sides or one. Pages come from the server; nothing else is kept.
export class Outline {
  constructor(spot, side = null) {
    this.spot = spot;
    this.side = side;
    this.lines = [];
  }

  // Returns the parent's names for a request; a side without a name is left out.
  parents(parent) {
    const {target, golden, where} = parent?.pair ?? {};
    if (this.side) return {[this.side === 'golden' ? 'partner' : 'target']: parent ? parent.pair[this.side].name : ''};
    return {target: target?.name, partner: where === 'moved' ? undefined : golden?.name};
  }

  lineOf(reply, depth) {
    const out = [];
    for (let i = 0; i < reply.rows.length;) {
      const p = reply.rows[i];
      if (p.run >= RUN_LEAST) {
        const line = new Line('run', depth, p);
        line.members = reply.rows.slice(i, i + p.run);
        out.push(line);
        i += p.run;
      } else {
        out.push(new Line('node', depth, p));
        i++;
      }
    }
    return out;
  }

  ask(parent, after, unfold) {
    return get('children', {...this.spot, limit: PAGE, after: after?.after, after_golden: after?.after_golden, unfold, ...this.parents(parent)});
  }

  linesOf(reply, parent, depth) {
    const lines = this.lineOf(reply, depth);
    if (reply.more) {
      const more = new Line('more', depth, {});
      Object.assign(more, {parent, after: reply});
      lines.push(more);
    }
    return lines;
  }

  async page(parent, depth, after) {
    return this.linesOf(await this.ask(parent, after), parent, depth);
  }

  // Reads the top; a single root comes with its children.
  async start() {
    const both = this.side === null, reply = await this.ask(null, null, both ? 1 : null);
    this.lines = this.linesOf(reply, null, 0);
    const [root] = this.lines;
    if (both && reply.only) {
      root.open = true;
      this.lines.push(...this.linesOf(reply.only, root, 1));
    } else if (this.lines.length === 1) {
      await this.unfold(0);
    }
  }

  end(i) {
    let j = i + 1;
    while (j < this.lines.length && this.lines[j].depth > this.lines[i].depth) j++;
    return j;
  }

  async unfold(i) {
    const line = this.lines[i];
    if (line.kind === 'run') {
      this.lines.splice(i, 1, ...line.members.map((p) => new Line('node', line.depth, p)));
    } else if (line.kind === 'more') {
      const lines = await this.page(line.parent, line.depth, line.after);
      this.lines.splice(this.lines.indexOf(line), 1, ...lines);
    } else if (!line.open && line.foldable) {
      line.open = true;
      const lines = await this.page(line, line.depth + 1);
      const at = this.lines.indexOf(line);
      if (at >= 0 && line.open) this.lines.splice(at + 1, 0, ...lines);
    }
  }

  fold(i) {
    if (!this.lines[i].open) return;
    this.lines.splice(i + 1, this.end(i) - i - 1);
    this.lines[i].open = false;
  }

  // Folds everything except for the ancestors of line i; returns its new index.
  foldAround(i) {
    const line = this.lines[i], above = new Set();
    for (let j = i; j > 0; j = this.parent(j)) above.add(this.lines[j]);
    for (let j = this.lines.length - 1; j > 0; j--) if (this.lines[j]?.open && !above.has(this.lines[j])) this.fold(j);
    return Math.max(0, this.lines.indexOf(line));
  }

  async unfoldAll(i, most = 5000) {
    const depth = this.lines[i].depth;
    for (let j = i; j < this.lines.length && (j === i || this.lines[j].depth > depth) && this.lines.length < most; j++) {
      if (this.lines[j].kind === 'node') await this.unfold(j);
    }
  }

  parent(i) {
    let j = i;
    while (j > 0 && this.lines[j].depth >= this.lines[i].depth) j--;
    return j;
  }

  // Unfolds the ancestors of a node and returns its line.
  async reveal(name, golden) {
    const {rows} = await get('path', {...this.spot, name, golden: golden ? 1 : 0});
    const side = golden ? 'golden' : 'target';
    let at = -1;
    for (const step of rows) {
      if (at >= 0) await this.unfold(at);
      at = await this.child(at, step, side);
      if (at < 0) break;
    }
    return at;
  }

  async child(parent, want, side) {
    const depth = parent < 0 ? 0 : this.lines[parent].depth + 1;
    for (let i = parent + 1; i < this.lines.length && this.lines[i].depth >= depth; i++) {
      const line = this.lines[i];
      if (line.depth !== depth) continue;
      if (line.kind === 'node' && line.pair[side]?.name === want.name) return i;
      const holds = line.kind === 'more' || line.kind === 'run' && line.members.some((m) => m[side]?.name === want.name);
      if (holds) {
        await this.unfold(i);
        i--;
      }
    }
    return -1;
  }
}
