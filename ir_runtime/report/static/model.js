'use strict';
// The layers and scopes of a model as a tree, with the edges of every scope.

class Model {
  constructor(data) {
    this.data = data;
    this.nodes = data.nodes;
    this.scopes = data.scopes.map((s, i) => ({ isScope: true, index: i, key: 's' + i, label: s.l, copies: s.copies, size: s.n, open: !!s.open, node: null, kids: [], leaves: [] }));
    data.scopes.forEach((s, i) => { const scope = this.scopes[i]; scope.parent = s.p < 0 ? null : this.scopes[s.p]; scope.parent?.kids.push(scope); scope.depth = scope.parent ? scope.parent.depth + 1 : 0; });
    this.root = this.scopes[0];
    this.nodes.forEach((n, i) => { n.index = i; n.key = 'n' + i; n.parent = this.scopes[n.s]; n.label = n.t; n.readers = []; });
    for (const n of this.nodes) {
      if (n.b !== undefined) { this.scopes[n.b].node = n; } else { n.parent.leaves.push(n); }
    }
    for (const [a, port, b, input, back] of data.edges) this.nodes[a].readers.push([b, port, input, back]);
    this.common = this.commonType();
    this.showShapes = false;
    this.connect();
  }

  commonType() { // the element type of most tensors, which needs no mention at every edge
    const count = new Map();
    for (const n of this.nodes) for (const o of n.o) count.set(o[0], (count.get(o[0]) || 0) + 1);
    return [...count].sort((x, y) => y[1] - x[1])[0]?.[0];
  }

  item(index) { const n = this.nodes[index]; return n.b === undefined ? n : this.scopes[n.b]; }
  isShown(item) { return item.isScope || this.showShapes || !item.h; }
  leavesOf(scope) { return scope.leaves.filter(n => this.isShown(n)); }
  chain(item) { const found = [item]; while (found[0].parent) found.unshift(found[0].parent); return found; }

  connect() { // an edge belongs to the scope in which its ends part; inside, it comes from a pill on the border
    for (const s of this.scopes) { s.edges = new Map(); s.ins = new Map(); s.outs = new Map(); s.box = null; }
    const add = (map, key, make, edge) => { let e = map.get(key); if (!e) map.set(key, e = Object.assign(make(), { list: [] })); e.list.push(edge); };
    for (const edge of this.data.edges) {
      const a = this.item(edge[0]), b = this.item(edge[2]), back = !!edge[4];
      if (!this.isShown(a) || !this.isShown(b)) continue;
      const A = this.chain(a), B = this.chain(b);
      let i = 0;
      while (A[i] && A[i] === B[i]) i++;
      if (!A[i] || !B[i]) continue;
      add(A[i - 1].edges, A[i].key + '>' + B[i].key + (back ? 'b' : ''), () => ({ a: A[i], b: B[i], back }), edge);
      for (let k = i; k < A.length - 1; k++) add(A[k].outs, A[k + 1].key + '>' + B[i].key, () => ({ inner: A[k + 1], outer: B[i], to: edge[2] }), edge);
      for (let k = i; k < B.length - 1; k++) add(B[k].ins, A[i].key + '>' + B[k + 1].key, () => ({ inner: B[k + 1], outer: A[i], to: edge[0] }), edge);
    }
  }

  setShapes(shown) { this.showShapes = shown; this.connect(); }
  tensor([index, port]) { // a Result of a body gives on what it reads
    const n = this.nodes[index], source = n.i[0]?.[1];
    if (n.o[port] || n.t !== 'Result') return n.o[port] || [null, null, null, []];
    if (typeof source === 'number') return this.tensor([source, n.i[0][2]]);
    const c = source ? this.data.constants[+source.slice(1)] : null;
    return c?.s === undefined ? [null, null, null, []] : [c.e, c.s, null, []];
  }

  edgeLabel(list) { // the shape of a tensor, or how many there are
    const tensors = new Map(list.map(e => [e[0] + ':' + e[1], e]));
    const made = (full, differs) => ({ text: cut(full, LABEL), full, differs });
    if (tensors.size > 1) return made(tensors.size + ' tensors', [...tensors.values()].some(e => this.tensor(e)[4]));
    const [type, shape, declared, , differs] = this.tensor(list[0]);
    if (shape === null) return made(declared ? declared[1] : '', false);
    return made((type === this.common ? '' : type + ' ') + shape, !!differs);
  }

  edgeTitle(list) {
    const lines = list.slice(0, 12).map(e => {
      const [type, shape, declared] = this.tensor(e), a = this.nodes[e[0]], b = this.nodes[e[2]], wanted = b.i[e[3]]?.[3];
      const inferred = shape === null ? 'not inferred' : `inferred ${type} ${shape}`;
      return `${a.n} → ${b.n}: ${inferred}; declared ${declared ? declared.join(' ') : wanted || 'the same'}${e[4] ? '; to the next iteration' : ''}`;
    });
    return lines.join('\n') + (list.length > 12 ? `\n… and ${list.length - 12} more` : '');
  }

  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return this.nodes.filter(n => {
      n.text ??= [n.n, n.v, n.d, ...n.o.map(o => `${o[0]} ${o[1]} ${o[3].join(' ')}`)].join(' ').toLowerCase();
      return words.every(w => n.text.includes(w));
    });
  }
}

const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.ceil(most * .6) - 1) + '…' + text.slice(text.length - Math.floor(most * .4));

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')));
}
