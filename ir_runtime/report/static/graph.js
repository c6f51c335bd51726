'use strict';
// One graph on the page: layout of every open scope, drawing, zoom, selection.

const NS = 'http://www.w3.org/2000/svg';
const ROW = 38, TITLE = 24, PILL = { h: 18, least: 60, most: 28 }, MANY = 6, MANY_READERS = 4, ALL = 1500, NEAR = .35, NARROW = 600, LABEL = 30, SHORT = 16, COLUMN = 700, CROSSING = 3, GUTTER = 36;

const pen = document.createElement('canvas').getContext('2d'), FONTS = { strong: '600 12px system-ui, sans-serif', sub: '10.5px system-ui, sans-serif', label: '10px system-ui, sans-serif' };
function breadth(text, font) { pen.font = FONTS[font]; return pen.measureText(text).width; }

function el(parent, name, attributes = {}, text) {
  const e = document.createElementNS(NS, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

class GraphView {
  constructor(pane, model, app, id) {
    Object.assign(this, { model, app, chosen: null, drawn: [], placed: new Map(), waiting: 0, direction: 'TB', hits: new Set() });
    this.svg = el(pane, 'svg', { class: 'graph', role: 'application', tabindex: 0, 'aria-label': 'Graph of the model. Arrow keys go from box to box, Enter opens or folds a scope, plus, minus and 0 zoom, slash searches. The table of layers has the same as text.' });
    this.tip = 'tip' + id;
    const marker = el(el(this.svg, 'defs'), 'marker', { id: this.tip, viewBox: '0 0 8 8', refX: 7.5, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto' });
    el(marker, 'path', { d: 'M0 .8L7.5 4L0 7.2Z' });
    this.view = el(this.svg, 'g');
    this.map = el(pane, 'svg', { class: 'map', 'aria-hidden': true });
    this.map.addEventListener('click', e => this.jump(e));
    this.zoom = d3.zoom().scaleExtent([.02, 4]).on('zoom', e => { this.view.setAttribute('transform', e.transform); if (!this.waiting) this.waiting = requestAnimationFrame(() => this.cull()); });
    d3.select(this.svg).call(this.zoom).on('dblclick.zoom', null);
    this.svg.addEventListener('click', e => this.click(e));
    this.svg.addEventListener('keydown', e => this.key(e));
  }

  sizeOf(item) {
    const [one, two] = this.lines(item), wide = Math.max(breadth(one, 'strong'), breadth(two, 'sub')) + 30;
    return { w: Math.max(96, wide), h: two ? ROW : 26 };
  }

  lines(item) { // what a closed box says
    if (item.isScope) {
      const measure = this.app.overlay.kind === 'category' ? '' : this.app.overlay.short(item);
      return [cut('▸ ' + item.label, 30), this.count(item) + (measure ? ' · ' + measure : '')];
    }
    const measure = this.app.overlay.kind === 'category' ? '' : this.app.overlay.short(item);
    return [cut(item.t, 28), measure || cut(item.d || '', 32)];
  }

  count(scope) { return `${scope.size} layer${scope.size === 1 ? '' : 's'}`; }
  titles(scope) { return [`▾ ${scope.label}`, this.app.overlay.short(scope) || this.count(scope)]; }

  layout(scope) { // each open scope is laid out alone, and kept until something in it changes
    if (scope.box) return scope.box;
    const g = new dagre.graphlib.Graph({ multigraph: true });
    g.setGraph({ rankdir: this.direction, nodesep: 18, ranksep: 14, edgesep: 12, marginx: 14, marginy: 12 });
    for (const k of scope.kids) { if (k.size || this.model.showShapes) { const b = k.open ? this.layout(k) : this.sizeOf(k); g.setNode(k.key, { width: b.w, height: b.h, item: k }); } }
    for (const n of this.model.leavesOf(scope)) { const b = this.sizeOf(n); g.setNode(n.key, { width: b.w, height: b.h, item: n }); }
    for (const e of scope.edges.values()) this.addEdge(g, e.a.key, e.b.key, e);
    this.addPills(g, scope.ins, true);
    this.addPills(g, scope.outs, false);
    dagre.layout(g);
    if (this.direction === 'TB') wrap(g);
    const title = scope.parent ? TITLE : 0, least = scope.parent ? this.titles(scope).reduce((sum, text, i) => sum + breadth(text, i ? 'sub' : 'strong'), 44) : 0;
    return scope.box = { w: Math.max(g.graph().width, least, 120), h: g.graph().height + title, inner: g.graph().width, g };
  }

  addEdge(g, a, b, e) {
    if (!g.hasNode(a) || !g.hasNode(b)) return;
    const label = this.label(g, e), size = label.text ? { width: breadth(label.text, 'label') + 6, height: 14 } : { width: 0, height: 0 };
    g.setEdge(e.back ? b : a, e.back ? a : b, { ...size, labelpos: 'r', labeloffset: 5, weight: this.isShared(e) ? 1 : 6, label, list: e.list, back: e.back, a, b }, e.back ? 'back' : 'data');
  }

  isShared(e) { return e.list.every(f => this.model.nodes[f[0]].readers.length > MANY_READERS); }

  label(g, e) { // a tensor with many readers is labelled once
    if (!this.isShared(e)) return this.model.edgeLabel(e.list);
    const seen = g.seen ??= new Set(), tensor = e.list[0][0] + ':' + e.list[0][1];
    if (seen.has(tensor)) return { text: '', full: '', differs: false };
    seen.add(tensor);
    return this.model.edgeLabel(e.list);
  }

  addPills(g, ends, isInput) {
    const outer = new Set([...ends.values()].map(e => e.outer.key)), many = outer.size > MANY, joined = new Map();
    for (const e of ends.values()) {
      const id = (isInput ? 'i' : 'o') + (many ? '*' : e.outer.key);
      const pill = many ? `${outer.size} ${isInput ? 'inputs' : 'outputs'}` : e.outer.isScope ? e.outer.label : e.outer.d && /^(Parameter|Result)$/.test(e.outer.t) ? e.outer.d : e.outer.t, text = (isInput ? '↓ ' : '→ ') + cut(pill, PILL.most);
      if (!g.hasNode(id)) g.setNode(id, { width: Math.max(PILL.least, breadth(text, 'sub') + 22), height: PILL.h, pill, text, to: e.to, isInput });
      const key = id + e.inner.key;
      if (joined.has(key)) joined.get(key).list.push(...e.list);
      else joined.set(key, { a: isInput ? id : e.inner.key, b: isInput ? e.inner.key : id, list: [...e.list], back: false });
    }
    for (const e of joined.values()) this.addEdge(g, e.a, e.b, e);
  }

  draw(p, scope, x0, y0) {
    const { g } = this.layout(scope);
    for (const id of g.edges()) this.drawEdge(p, g.edge(id), x0, y0);
    for (const id of g.nodes()) {
      const b = g.node(id), x = b.x - b.width / 2 + x0, y = b.y - b.height / 2 + y0;
      if (b.item) this.drawBox(p, b, x, y); else this.drawPill(p, b, x, y);
    }
  }

  drawEdge(p, e, x0, y0) {
    const points = e.points.map(q => ({ x: q.x + x0, y: q.y + y0 })), X = points.map(q => q.x), Y = points.map(q => q.y), x = Math.min(...X), y = Math.min(...Y);
    if (e.back) points.reverse();
    const hidden = e.list.every(f => this.model.nodes[f[0]].h), path = el(p, 'path', { class: 'edge' + (e.back ? ' back' : '') + (hidden ? ' shape' : ''), d: e.wraps ? 'M' + points.map(at).join('L') : curve(points), 'marker-end': `url(#${this.tip})`, 'data-a': e.a, 'data-b': e.b });
    el(path, 'title', {}, this.model.edgeTitle(e.list));
    this.drawn.push({ e: path, x, y, w: Math.max(...X) - x, h: Math.max(...Y) - y, on: true, small: false });
    const line = e.wraps ? points : sampled(points);
    line.forEach((q, i) => { if (i) this.spots.line(line[i - 1], q); });
    if (!e.label.text) return;
    const text = el(p, 'text', { class: 'label' + (e.label.differs ? ' differs' : '') }, e.label.text);
    this.labels.push({ e: text, label: e.label, line, x: e.x + x0 - e.width / 2 + 3, y: e.y + y0 - 6, w: e.width - 6, h: 12, on: true, small: true });
  }

  drawPill(p, b, x, y) {
    const q = el(p, 'g', { class: 'pill', transform: `translate(${x},${y})` });
    el(q, 'rect', { width: b.width, height: PILL.h, rx: 9 });
    el(q, 'text', { x: b.width / 2, y: 12.5, 'text-anchor': 'middle', class: 'sub' }, b.text);
    el(q, 'title', {}, `${b.isInput ? 'from' : 'to'} ${b.pill}`);
    q.addEventListener('click', () => this.app.show(this.model.item(b.to), this));
    this.drawn.push({ e: q, x, y, w: b.width, h: PILL.h, on: true, small: true });
    this.spots.box(x, y, b.width, PILL.h);
  }

  drawBox(p, b, x, y) {
    const item = b.item, open = item.isScope && item.open, colour = open ? null : this.app.overlay.colour(item), family = !open && !item.isScope ? this.app.family.colour(item) : null;
    const q = el(p, 'g', { class: 'box' + (item.isScope ? ' scope' : '') + (open ? ` open d${item.depth % 3}` : '') + (colour ? ' hot' : ''), transform: `translate(${x},${y})`, tabindex: -1, role: 'button', ...(item.isScope ? { 'aria-expanded': open } : {}) });
    const rect = el(q, 'rect', { width: b.width, height: b.height, rx: item.isScope ? 8 : 4 });
    if (colour) rect.style.fill = colour;
    if (family && !colour) el(q, 'rect', { class: 'family', x: 1, y: 1, width: 5, height: b.height - 2, rx: 2 }).style.fill = family;
    el(q, 'title', {}, this.describe(item)); // the tooltip, and the name for screen readers
    this.drawn.push({ e: q, x, y, w: b.width, h: b.height, on: true, small: false });
    this.placed.set(item.key, { q, x, y, w: b.width, h: b.height, item });
    q.item = item;
    if (this.hits.has(item.key)) q.classList.add('hit');
    if (open) return this.drawOpen(p, q, b, x, y);
    this.spots.box(x, y, b.width, b.height);
    const [one, two] = this.lines(item), middle = b.width / 2 + (family && !colour ? 2 : 0);
    el(q, 'text', { x: middle, y: two ? 16 : 17, 'text-anchor': 'middle', class: 'strong' }, one);
    if (two) el(q, 'text', { x: middle, y: 30, 'text-anchor': 'middle', class: 'sub' }, two);
    this.drawFlag(q, item, b.width);
  }

  drawOpen(p, q, b, x, y) {
    const item = b.item, [one, two] = this.titles(item);
    el(q, 'text', { x: 12, y: 17, class: 'strong' }, one);
    el(q, 'text', { x: b.width - 12, y: 17, 'text-anchor': 'end', class: 'sub' }, two);
    this.spots.box(x, y, b.width, TITLE - 4);
    const corners = [[0, 0], [0, b.height], [b.width, b.height], [b.width, 0]].map(([dx, dy]) => ({ x: x + dx, y: y + dy }));
    corners.forEach((q, i) => { if (i) this.spots.line(corners[i - 1], q); });
    this.draw(p, item, x + (b.width - item.box.inner) / 2, y + TITLE);
  }

  drawFlag(q, item, width) {
    const worst = this.model.worst?.get(item.key);
    if (worst) el(el(q, 'circle', { class: `flag ${worst}`, cx: width - 1, cy: 1, r: 5.5 }), 'title', {}, worst);
  }

  describe(item) {
    if (item.isScope) return `${item.label}, scope of ${item.size} layers` + (this.app.overlay.text(item) ? `, ${this.app.overlay.label} ${this.app.overlay.text(item)}` : '');
    return [item.v, item.n, item.o.map(o => `${o[0]} ${o[1]}`).join('; '), this.app.overlay.text(item)].filter(Boolean).join(', ');
  }

  render() {
    this.placed = new Map(); this.drawn = []; this.labels = []; this.spots = new Spots();
    this.model.worst ??= worstFindings(this.model);
    const v = document.createElementNS(NS, 'g');
    this.draw(v, this.model.root, 0, 0);
    this.labels = this.labels.filter(each => this.placeLabel(each) || void each.e.remove());
    for (const each of this.labels) { v.append(each.e); this.drawn.push(each); }
    this.view.replaceChildren(v);
    this.drawMap();
    this.mark();
    this.cull();
  }

  placeLabel(d) { // where nothing crosses it, whole if there is room; an edge without room for its label has a tooltip
    for (const text of new Set([d.label.full, d.label.text, cut(d.label.full, SHORT)])) {
      const w = breadth(text, 'label');
      for (const [x, y] of this.labelPlaces(d, w)) {
        if (this.spots.isTaken(x - 2, y - 1, w + 4, d.h + 2)) continue;
        Object.assign(d, { x, y, w });
        d.e.textContent = text;
        d.e.setAttribute('x', x.toFixed(1)); d.e.setAttribute('y', (y + 9.5).toFixed(1));
        this.spots.box(x, y, w, d.h);
        return true;
      }
    }
    return false;
  }

  labelPlaces(d, w) { // first where the layout has room for it, then beside, above and below points of its edge
    const places = Number.isFinite(d.x) ? [[d.x, d.y]] : []; // the layout keeps no room beside an edge between the same boxes as another
    for (const f of [.5, .4, .6, .3, .7, .2, .8, .1, .9]) {
      const q = along(d.line, f);
      places.push([q.x + 5, q.y - 6], [q.x - w - 5, q.y - 6], [q.x + 4, q.y - 15], [q.x + 4, q.y + 3], [q.x - w - 4, q.y - 15], [q.x - w - 4, q.y + 3], [q.x - w / 2, q.y - 15], [q.x - w / 2, q.y + 3]);
    }
    return places;
  }

  drawMap() { // the whole graph, small, where it is larger than the window
    const b = this.model.root.box;
    this.map.replaceChildren();
    this.map.setAttribute('viewBox', `0 0 ${b.w} ${b.h}`);
    for (const p of this.placed.values()) if (!(p.item.isScope && p.item.open)) el(this.map, 'rect', { x: p.x, y: p.y, width: p.w, height: p.h, rx: 6 }).style.fill = this.app.overlay.colour(p.item) || '';
    this.frame = el(this.map, 'rect', { class: 'frame' });
  }

  frameMap() {
    const t = d3.zoomTransform(this.svg), r = this.svg.getBoundingClientRect(), b = this.model.root.box;
    if (!b || !this.frame) return;
    const whole = b.w * t.k <= r.width + 1 && b.h * t.k <= r.height + 1;
    this.map.classList.toggle('unneeded', whole || r.width < NARROW);
    for (const [name, value] of Object.entries({ x: -t.x / t.k, y: -t.y / t.k, width: r.width / t.k, height: r.height / t.k })) this.frame.setAttribute(name, value);
  }

  jump(e) {
    const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.map.getScreenCTM().inverse()), r = this.svg.getBoundingClientRect(), k = d3.zoomTransform(this.svg).k;
    d3.select(this.svg).call(this.zoom.transform, d3.zoomIdentity.translate(r.width / 2 - at.x * k, r.height / 2 - at.y * k).scale(k));
  }

  cull() { // what is outside the window is taken out of the document, and text that is too small to be read
    this.waiting = 0;
    this.frameMap();
    const t = d3.zoomTransform(this.svg), r = this.svg.getBoundingClientRect(), far = t.k < NEAR;
    const x0 = (-200 - t.x) / t.k, y0 = (-200 - t.y) / t.k, x1 = (r.width + 200 - t.x) / t.k, y1 = (r.height + 200 - t.y) / t.k;
    const held = document.activeElement;
    let changed = false;
    for (const d of this.drawn) {
      const keep = this.printing || (d.x <= x1 && d.x + d.w >= x0 && d.y <= y1 && d.y + d.h >= y0 && (!far || !d.small)) || d.e === held;
      if (keep !== d.on) { d.on = keep; changed = true; }
    }
    this.view.classList.toggle('far', far && !this.printing);
    if (!changed) return;
    this.view.firstChild.replaceChildren(...this.drawn.filter(d => d.on).map(d => d.e));
    if (this.svg.contains(held) && held !== this.svg) held.focus({ preventScroll: true });
  }

  mark() {
    for (const e of this.view.querySelectorAll('.on')) e.classList.remove('on');
    for (const d of this.drawn) d.e.classList.remove('on');
    if (!this.chosen) return;
    const key = this.chosen.key;
    this.placed.get(key)?.q.classList.add('on');
    for (const d of this.drawn) if (d.e.dataset.a === key || d.e.dataset.b === key) d.e.classList.add('on');
  }

  forget(scope) { for (let s = scope; s; s = s.parent) s.box = null; }
  forgetAll() { for (const s of this.model.scopes) s.box = null; }

  toggle(scope) {
    const before = this.placed.get(scope.key), t = d3.zoomTransform(this.svg);
    scope.open = !scope.open;
    if (scope.open && scope.copies) { scope.kids[0].open = true; this.forget(scope.kids[0]); } // one copy shows what is in all
    this.forget(scope);
    this.render();
    const after = this.placed.get(scope.key);
    if (before && after) d3.select(this.svg).call(this.zoom.translateBy, before.x - after.x, before.y - after.y);
    after?.q.focus({ preventScroll: true });
    this.app.say(`${scope.label} ${scope.open ? 'open' : 'folded'}`);
    return t;
  }

  setAll(open) {
    for (const s of this.model.scopes) { s.open = open || !s.parent; s.box = null; }
    this.render();
    this.fit(!open);
  }

  canOpenAll() { return this.model.nodes.length + this.model.scopes.length <= ALL; }

  fit(readable = true, most = 4) { // the whole graph, but not smaller than can be read
    const r = this.svg.getBoundingClientRect(), b = this.model.root.box, all = Math.min(1.2, (r.width - 24) / b.w, (r.height - 24) / b.h), across = this.direction === 'LR' ? (r.height - 24) / b.h : (r.width - 24) / b.w, narrow = r.width < NARROW;
    const k = Math.min(most, !readable ? all : across >= (narrow ? .75 : .6) ? Math.min(1, across) : narrow ? .9 : .7), right = this.direction === 'LR';
    const wide = b.w * k > r.width, tall = b.h * k > r.height, starts = this.starts();
    const x = right && wide ? 12 : r.width / 2 - b.w / 2 * k, shift = !right && wide && starts !== null ? Math.max(Math.min(12, r.width - 12 - b.w * k), Math.min(12, r.width / 2 - starts * k)) : x;
    const y = right || !tall ? r.height / 2 - b.h / 2 * k : 12 - (wide ? this.top(-shift / k, (r.width - shift) / k) * k : 0);
    d3.select(this.svg).call(this.zoom.transform, d3.zoomIdentity.translate(shift, y).scale(k));
  }

  top(left, right) { // of the first box between two abscissas
    const tops = [...this.placed.values()].filter(p => p.x < right && p.x + p.w > left).map(p => p.y);
    return tops.length ? Math.min(...tops) : 0;
  }

  starts() { // where the inputs are, so that a wide graph begins with them in sight
    const inputs = [...this.placed.values()].filter(p => p.item.t === 'Parameter' && p.item.parent === this.model.root);
    return inputs.length ? inputs.reduce((sum, p) => sum + p.x + p.w / 2, 0) / inputs.length : null;
  }

  centre(item) {
    const b = this.placed.get(item.key);
    if (!b) return;
    const r = this.svg.getBoundingClientRect(), k = Math.max(.8, d3.zoomTransform(this.svg).k), y = item.open && b.h * k > r.height ? 30 - b.y * k : r.height / 2 - (b.y + b.h / 2) * k;
    d3.select(this.svg).call(this.zoom.transform, d3.zoomIdentity.translate(r.width / 2 - (b.x + b.w / 2) * k, y).scale(k));
  }

  reveal(item) { // open what it is in
    let changed = false;
    if (item.h && !this.model.showShapes) { this.app.setShapes(true); changed = true; }
    for (let s = item.parent; s; s = s.parent) if (!s.open) { s.open = true; this.forget(s); changed = true; }
    if (changed) this.render();
  }

  choose(item) { this.chosen = item; this.mark(); }

  click(e) {
    const item = e.target.closest('.box')?.item;
    if (!item) return;
    this.app.choose(item, this);
    const title = e.target.closest('.open') && item.open;
    if (item.isScope && (!title || this.isTitle(e, item))) this.toggle(item); else this.placed.get(item.key)?.q.focus({ preventScroll: true });
  }

  isTitle(e, item) { const b = this.placed.get(item.key), t = d3.zoomTransform(this.svg), r = this.svg.getBoundingClientRect(); return ((e.clientY - r.top - t.y) / t.k) - b.y < TITLE; }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if ((e.key === 'Enter' || e.key === ' ') && this.chosen?.isScope) { e.preventDefault(); this.toggle(this.chosen); return; }
    if (e.key === 'Escape') { this.app.choose(null, this); return; }
    if (e.key === '+' || e.key === '=') return void d3.select(this.svg).call(this.zoom.scaleBy, 1.25);
    if (e.key === '-') return void d3.select(this.svg).call(this.zoom.scaleBy, .8);
    if (e.key === '0') return void this.fit(false);
    const way = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[e.key];
    if (!way) return;
    e.preventDefault();
    const from = this.chosen && this.placed.get(this.chosen.key);
    this.app.show(from ? this.next(from, way) || this.chosen : [...this.placed.values()].sort((a, b) => a.y - b.y)[0].item, this, false);
  }

  next(from, way) { // the nearest box in a direction
    let best = null, least = Infinity;
    const cx = from.x + from.w / 2, cy = from.item.open ? from.y : from.y + from.h / 2;
    for (const p of this.placed.values()) {
      if (p === from) continue;
      const dx = p.x + p.w / 2 - cx, dy = (p.item.open ? p.y : p.y + p.h / 2) - cy, along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along > 4 && along + 3 * aside < least) { least = along + 3 * aside; best = p.item; }
    }
    return best;
  }
}

function wrap(g) { // a long chain continues in the next column, where few edges cross
  const { width, height } = g.graph(), nodes = g.nodes().map(id => g.node(id)), edges = g.edges().map(id => g.edge(id));
  const count = Math.min(8, Math.round(Math.sqrt(height / (2 * width))), Math.floor(height / COLUMN));
  if (count < 2) return;
  const spans = nodes.map(n => [n.y - n.height / 2, n.y + n.height / 2]).sort((a, b) => a[0] - b[0]), gaps = [];
  let bottom = spans[0][1];
  for (const [y0, y1] of spans) { if (y0 > bottom) gaps.push((bottom + y0) / 2); bottom = Math.max(bottom, y1); }
  const crossing = y => edges.filter(e => { const Y = e.points.map(q => q.y); return Math.min(...Y) < y && Math.max(...Y) > y; }).length;
  const cuts = [];
  for (let k = 1; k < count; k++) {
    const near = gaps.filter(y => Math.abs(y - k * height / count) < height / count / 3 && !(y <= cuts.at(-1)));
    const best = near.map(y => [crossing(y) * 40 + Math.abs(y - k * height / count), y]).sort((a, b) => a[0] - b[0])[0];
    if (!best || crossing(best[1]) > CROSSING) return;
    cuts.push(best[1]);
  }
  const starts = [0, ...cuts], tall = Math.max(...starts.map((y, k) => (starts[k + 1] ?? height) - y)) + GUTTER, step = width + GUTTER;
  const column = y => starts.findLastIndex(start => y >= start) , moved = (q, k) => ({ x: q.x + k * step, y: q.y - starts[Math.max(k, 0)] + (k ? GUTTER / 2 : 0) });
  for (const n of nodes) Object.assign(n, moved(n, column(n.y)));
  for (const e of edges) {
    const label = column(e.y ?? 0);
    if (e.x !== undefined) Object.assign(e, moved(e, label));
    const points = [];
    let before = null;
    for (const q of e.points) {
      const k = Math.max(0, column(q.y)), here = moved(q, k);
      if (before !== null && k !== before) {
        const from = points.at(-1), [low, high] = k > before ? [tall - 6, 4] : [4, tall - 6], x = Math.max(k, before) * step - GUTTER / 2;
        points.push({ x: from.x, y: low }, { x, y: low }, { x, y: high }, { x: here.x, y: high });
        e.wraps = true;
      }
      points.push(here);
      before = k;
    }
    e.points = points;
  }
  Object.assign(g.graph(), { width: count * step - GUTTER, height: tall });
}

function curve(p) { // through the points of the layout, rounded
  if (p.length < 3) return 'M' + p.map(at).join('L');
  let d = 'M' + at(p[0]);
  for (let i = 1; i < p.length - 1; i++) { const q = p[i], n = p[i + 1], end = i === p.length - 2 ? n : { x: (q.x + n.x) / 2, y: (q.y + n.y) / 2 }; d += `Q${at(q)} ${at(end)}`; }
  return d;
}
function sampled(p) { // the same curve as a line
  if (p.length < 3) return p;
  const line = [p[0]];
  let from = p[0];
  for (let i = 1; i < p.length - 1; i++) {
    const q = p[i], n = p[i + 1], end = i === p.length - 2 ? n : { x: (q.x + n.x) / 2, y: (q.y + n.y) / 2 };
    for (const t of [.125, .25, .375, .5, .625, .75, .875, 1]) { const s = 1 - t; line.push({ x: s * s * from.x + 2 * s * t * q.x + t * t * end.x, y: s * s * from.y + 2 * s * t * q.y + t * t * end.y }); }
    from = end;
  }
  return line;
}

function along(line, fraction) { // the point at a fraction of the length of a line
  const lengths = line.map((q, i) => i ? Math.hypot(q.x - line[i - 1].x, q.y - line[i - 1].y) : 0);
  let left = fraction * lengths.reduce((a, b) => a + b, 0), i = 1;
  while (i < line.length - 1 && left > lengths[i]) left -= lengths[i++];
  const a = line[i - 1], b = line[i], t = lengths[i] ? left / lengths[i] : 0;
  return { x: a.x + t * (b.x - a.x), y: a.y + t * (b.y - a.y) };
}

const CELL = 80;
class Spots { // the places that boxes, lines and labels take, by cells of a grid
  constructor() { this.cells = new Map(); }

  *around(x0, y0, x1, y1) {
    for (let i = Math.floor(x0 / CELL); i <= Math.floor(x1 / CELL); i++) for (let j = Math.floor(y0 / CELL); j <= Math.floor(y1 / CELL); j++) yield i * 65536 + j;
  }

  add(thing, x0, y0, x1, y1) { for (const key of this.around(x0, y0, x1, y1)) { const cell = this.cells.get(key); if (cell) cell.push(thing); else this.cells.set(key, [thing]); } }
  box(x, y, w, h) { this.add({ x0: x, y0: y, x1: x + w, y1: y + h }, x, y, x + w, y + h); }
  line(a, b) { this.add({ a, b }, Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)); }

  isTaken(x, y, w, h) { // whether something touches a rectangle
    for (const key of this.around(x, y, x + w, y + h)) for (const thing of this.cells.get(key) || []) if (thing.a ? crosses(thing, x, y, x + w, y + h) : thing.x0 < x + w && thing.x1 > x && thing.y0 < y + h && thing.y1 > y) return true;
    return false;
  }
}

function crosses({ a, b }, x0, y0, x1, y1) { // whether a line goes through a rectangle (Liang and Barsky 1984)
  let low = 0, high = 1;
  for (const [from, way, least, most] of [[a.x, b.x - a.x, x0, x1], [a.y, b.y - a.y, y0, y1]]) {
    if (!way) { if (from < least || from > most) return false; continue; }
    const s = (least - from) / way, t = (most - from) / way;
    low = Math.max(low, Math.min(s, t)); high = Math.min(high, Math.max(s, t));
  }
  return low <= high;
}

const at = q => `${q.x.toFixed(1)} ${q.y.toFixed(1)}`;

function worstFindings(model) { // the gravest finding of every layer, and of the scopes around it
  const order = ['note', 'warning', 'error'], worst = new Map();
  for (const n of model.nodes) for (const f of n.f || []) {
    const grave = model.data.findings[f].severity;
    for (let item = model.item(n.index); item; item = item.parent) if (order.indexOf(grave) > order.indexOf(worst.get(item.key))) worst.set(item.key, grave);
  }
  return worst;
}
