'use strict';
// What is known about a layer or a scope, beside the graph.

function make(parent, tag, attributes = {}, text) {
  const e = document.createElement(tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

function breakable(parent, text) { // text that narrow columns break behind its separators
  for (const part of text.split(/(?<=[_/]|[.:×](?=\p{L}))/u)) parent.append(part, document.createElement('wbr'));
}

class Details {
  constructor(place, app) { this.place = place; this.app = app; }

  show(item, view) {
    this.view = view; this.model = view.model;
    this.place.replaceChildren();
    const back = make(this.place, 'button', { class: 'link' }, '← the model');
    back.addEventListener('click', () => this.app.choose(null, view));
    if (item.isScope) this.scope(item); else this.layer(item);
  }

  section(title) { make(this.place, 'h3', {}, title); return this.place; }
  list(rows) { const dl = make(this.place, 'dl'); for (const [name, value] of rows) { if (value === '' || value === null || value === undefined) continue; make(dl, 'dt', {}, name); const dd = make(dl, 'dd'); if (value instanceof Node) dd.append(value); else dd.textContent = value; } return dl; }

  link(index, text) { // goes to a layer
    const n = this.model.nodes[index], b = make(null, 'button', { class: 'link' }, text || n.n);
    b.addEventListener('click', () => this.app.show(this.model.item(index), this.view));
    return b;
  }

  layer(n) {
    make(this.place, 'h2', {}, n.t);
    make(this.place, 'p', {}, n.n);
    this.list([['operation', n.v], ['group', this.model.data.groups[n.g]], ['line in the file', n.line], ['layer id', n.id], ['in', this.scopeLinks(n)]]);
    this.measures(n);
    this.findings(n);
    this.pictures(n);
    this.inputs(n);
    this.outputs(n);
    this.pairs('Attributes', n.a);
    this.constants(n);
    this.histogram(n);
    this.pairs('Runtime information', n.r || {});
    this.change(n);
  }

  scopeLinks(n) {
    const span = make(null, 'span'), chain = this.model.chain(n).slice(1, -1);
    chain.forEach((s, i) => { if (i) span.append(' › '); const b = make(span, 'button', { class: 'link' }, s.label); b.addEventListener('click', () => this.app.show(s, this.view)); });
    return chain.length ? span : '';
  }

  measures(item) {
    const rows = this.app.overlays(this.view).filter(o => o.kind !== 'category').map(o => [o.label, o.text(item)]).filter(r => r[1]);
    const notes = item.isScope ? [] : (this.model.data.notes?.[item.index] || []).map(text => ['', text]);
    if (rows.length + notes.length) { this.section('Measures'); this.list([...rows, ...notes]); }
  }

  findings(n) {
    if (!n.f) return;
    this.section('Findings');
    for (const k of n.f) { const f = this.model.data.findings[k], box = make(this.place, 'div', { class: `finding ${f.severity}` }); make(box, 'strong', {}, `${f.severity}[${f.code}] `); box.append(f.message); for (const c of f.causes) make(box, 'p', { class: 'soft' }, 'because ' + c); if (f.hint) make(box, 'p', {}, 'hint: ' + f.hint); }
  }

  inputs(n) {
    if (!n.i.length) return;
    const ul = make(this.section('Inputs'), 'ul', { class: 'plain' });
    for (const [name, source, port, declared] of n.i) {
      const li = make(ul, 'li');
      make(li, 'strong', {}, name); li.append(' ← ');
      if (source === '') { li.append('nothing in this graph'); if (declared) li.append(`, declared ${declared}`); continue; }
      if (typeof source === 'string') { const c = this.model.data.constants[+source.slice(1)]; li.append(`${c.t} ${c.e || ''} ${c.s || ''}`); if (c.x?.values) li.append(`: ${c.x.values}`); continue; }
      const from = this.model.nodes[source], o = from.o[port] || [null, null];
      li.append(this.link(source, from.b === undefined ? `${from.t} ${from.n}` : from.n)); this.tensor(li, o, declared);
    }
  }

  tensor(li, [type, shape, , , differs], declared) { // declared and inferred
    const inferred = shape === null ? null : `${type} ${shape}`;
    make(li, 'div', { class: 'soft' }, inferred === null ? 'not inferred' : `inferred ${inferred}`);
    if (declared) make(li, 'div', { class: differs ? 'bad' : 'soft' }, `declared ${declared}`);
  }

  outputs(n) {
    if (!n.o.length) return;
    const ul = make(this.section('Outputs'), 'ul', { class: 'plain' });
    n.o.forEach((o, port) => {
      const li = make(ul, 'li');
      if (o[3].length) make(li, 'strong', {}, o[3].join(', '));
      make(li, 'div', { class: 'soft' }, o[1] === null ? 'not inferred' : `inferred ${o[0]} ${o[1]}`);
      make(li, 'div', { class: o[4] ? 'bad' : 'soft' }, o[2] ? `declared ${o[2].join(' ')}` : 'declared the same, or not at all');
      const readers = n.readers.filter(r => r[1] === port);
      for (const r of readers.slice(0, 12)) { const d = make(li, 'div'); d.append(r[3] ? '↻ next iteration ' : '→ '); d.append(this.link(r[0], `${this.model.nodes[r[0]].t} ${this.model.nodes[r[0]].n}`)); }
      if (readers.length > 12) make(li, 'div', { class: 'soft' }, `… and ${readers.length - 12} more`);
    });
  }

  pairs(title, data) {
    const rows = []; const walk = (prefix, d) => { for (const k in d) { if (d[k] !== null && typeof d[k] === 'object') walk(prefix + k + '.', d[k]); else rows.push([prefix + k, String(d[k])]); } };
    walk('', data);
    if (rows.length) { this.section(title); this.list(rows); }
  }

  constants(n) {
    for (const k of n.c || []) {
      const c = this.model.data.constants[k], x = c.x || {};
      if (c.bytes === undefined) continue;
      this.section(c.t);
      this.list([['name', c.n], ['line in the file', c.line], ['type', `${c.e} ${c.s}`], ['size', number(c.bytes, 'B')], ['values', x.values], ...['min', 'max', 'mean', 'std'].filter(k => x[k] !== undefined && x.values === undefined).map(k => [k, String(x[k])]), ['zeros', x.zeros ? `${(100 * x.zeros).toFixed(1)} %` : ''], ['not finite', x['not finite']], ['looked at', x.sampled ? `${x.sampled} elements` : '']]);
      if (c.w) showValues(this.place, c.n, c.w);
      else if (c.bytes && c.e !== 'string') make(this.place, 'p', { class: 'soft' }, 'The values are not in this page; report --values SIZE puts them into it.');
      this.clone(`histogram-c${k}`);
    }
  }

  pictures(n) {
    const maps = this.model.data.pictures?.[n.index];
    if (maps) { this.section('Output in the run'); showPictures(this.place, maps, this.model.data.sides, this.app); }
  }

  histogram(n) { this.clone(`histogram-n${n.index}`, 'Values in the run'); }
  clone(id, title) { const svg = this.view.isOld ? null : document.getElementById(id); if (svg) { if (title) this.section(title); const copy = svg.cloneNode(true); copy.removeAttribute('id'); copy.setAttribute('width', '100%'); this.place.append(copy); } }

  change(n) {
    if (!n.x) return;
    this.section('Changes');
    const ul = make(this.place, 'ul'); for (const text of n.x) make(ul, 'li', {}, text);
  }

  scope(s) {
    make(this.place, 'h2', {}, s.label);
    const inside = this.model.nodes.filter(n => { for (let p = n.parent; p; p = p.parent) if (p === s) return !n.h && this.model.item(n.index) !== s; return false; }), count = new Map();
    for (const n of inside) count.set(n.t, (count.get(n.t) || 0) + 1);
    this.list([['layers', String(s.size)], ['copies', s.copies ? `${s.copies}, of ${s.kids[0].size} layers each: ${s.kids[0].label} to ${s.kids.at(-1).label}` : ''], ['in', this.scopeLinks(s)]]);
    this.measures(s);
    this.section('Operations');
    this.list([...count].sort((a, b) => b[1] - a[1]).slice(0, 15));
    this.ends('From', s.ins, 0); this.ends('To', s.outs, 2);
    const o = this.app.overlay;
    if (o.kind !== 'category' && o.model === this.model) {
      const top = inside.filter(n => o.value(n)).sort((a, b) => o.value(b) - o.value(a)).slice(0, 8);
      if (top.length) { this.section(`Most ${o.label}`); const ul = make(this.place, 'ul', { class: 'plain' }); for (const n of top) { const li = make(ul, 'li'); li.append(this.link(n.index, `${n.t} ${n.n}`)); make(li, 'div', { class: 'soft' }, o.text(n)); } }
    }
    if (s.node) { make(this.place, 'hr'); this.layer(s.node); }
  }

  ends(title, ends, end) {
    const tensors = new Map(); for (const e of ends.values()) for (const f of e.list) tensors.set(f[0] + ':' + f[1] + (end ? '>' + f[2] : ''), f);
    if (!tensors.size) return;
    this.section(title); const ul = make(this.place, 'ul', { class: 'plain' });
    for (const f of [...tensors.values()].slice(0, 12)) { const li = make(ul, 'li'), o = this.model.tensor(f); li.append(this.link(f[end], `${this.model.nodes[f[end]].t} ${this.model.nodes[f[end]].n}`)); make(li, 'div', { class: 'soft' }, `${o[0]} ${o[1]}`); }
    if (tensors.size > 12) make(ul, 'li', { class: 'soft' }, `… and ${tensors.size - 12} more`);
  }
}
