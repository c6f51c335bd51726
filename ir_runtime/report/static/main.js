'use strict';
// The page: tabs, search, overlays, and what was chosen.

const $ = id => document.getElementById(id);
const TABS = ['graph', 'layers', 'charts', 'findings'];

class App {
  constructor(data, began) {
    document.body.classList.add('app');
    this.query = '';
    this.views = (data.old ? [['old', data.old], ['new', data]] : [['', data]]).map(([name, each], i) => this.pane(name, each, i)).reverse();
    this.sets = new Map(this.views.map(v => [v, Overlay.all(v.model)]));
    this.family = this.sets.get(this.views[0])[0];
    this.key = data.start;
    this.details = new Details($('chosen'), this);
    this.table = new Table($('table'), this);
    this.wire();
    this.setOverlay(this.key);
    for (const v of this.views) v.fit();
    const scale = Math.min(...this.views.map(v => d3.zoomTransform(v.svg).k));
    if (this.views.length > 1) for (const v of this.views) v.fit(true, scale); // two models are compared at one scale
    this.follow();
    this.ready = performance.now() - began;
  }

  pane(name, data, i) {
    const pane = make($('graphs'), 'div', { class: 'pane' });
    if (name) make(pane, 'h2', {}, `${name}: ${data.file}`);
    const view = new GraphView(pane, new Model(data), this, i);
    view.isOld = name === 'old';
    return view;
  }

  overlays(view) { return this.sets.get(view); }
  get overlay() { return this.current || this.family; }

  setOverlay(key) {
    this.key = key;
    for (const v of this.views) { this.use(v); v.forgetAll(); v.render(); }
    this.use(this.views[0]);
    this.legend();
    const o = this.overlay;
    if (o.kind !== 'category') this.table.sortBy(o.label, true); else this.table.sortBy(null, false);
    if (this.chosen) this.details.show(...this.chosen);
  }

  use(view) { const set = this.sets.get(view); this.current = set.find(o => o.key === this.key) || set[0]; this.family = set[0]; }

  legend() {
    const o = this.overlay, place = $('legend');
    place.replaceChildren();
    if (o.kind === 'category') { for (const name of o.names.slice(0, 9)) { const span = make(place, 'span'); make(span, 'i').style.background = o.colours[name]; span.append(name); } return; }
    if (o.at) make(place, 'span', {}, `at ${o.at}:`);
    make(place, 'span', {}, '0'); make(place, 'span', { class: 'ramp' });
    make(place, 'span', {}, o.full ? `${number(o.full, o.unit)} or more` : `a quarter of ${number(o.totals[0], o.unit)} or more`);
    if (o.legend) make(place, 'span', {}, `(${o.legend})`);
  }

  redraw(view) { this.use(view); view.render(); this.use(this.views[0]); }

  setShapes(shown) { $('shapes').checked = shown; for (const v of this.views) { v.model.setShapes(shown); this.redraw(v); } }

  choose(item, view) {
    this.chosen = item ? [item, view] : null;
    for (const v of this.views) v.choose(v === view ? item : item && this.partner(item, view, v));
    $('story').hidden = $('summary').hidden = !!item; $('chosen').hidden = !item;
    this.remember(item);
    if (!item) { view.svg.focus({ preventScroll: true }); return; }
    this.details.show(item, view);
    this.say(view.describe(item));
  }

  remember(item) { // in the address, so that a link leads to the layer; a frame in a notebook has no address
    const n = item?.isScope ? item.node : item;
    try { history.replaceState(null, '', n ? '#layer=' + encodeURIComponent(n.n) : location.pathname + location.search); } catch { /* a frame */ }
  }

  follow() { // the address names a layer
    const name = new URLSearchParams(location.hash.slice(1)).get('layer'), view = this.views[0], n = name && view.model.nodes.find(n => n.n === name);
    if (n) { this.tab('graph'); this.show(view.model.item(n.index), view); }
  }

  partner(item, view, other) { // the same layer in the other model
    const around = s => { for (let p = s.parent; p; p = p.parent) if (!p.copies) return p.label; return ''; }; // a run of copies may be shorter in the other model
    if (item.isScope) return other.model.scopes.find(s => s.label === item.label && s.size && around(s) === around(item)) || null;
    return item.m === undefined ? null : other.model.item(item.m);
  }

  show(item, view, centre = true) { // open what it is in, choose it, and bring it into sight
    if (!item) return;
    this.use(view); view.reveal(item); this.use(this.views[0]);
    this.choose(item, view);
    const placed = view.placed.get(item.key), t = d3.zoomTransform(view.svg), r = view.svg.getBoundingClientRect();
    const outside = placed && (placed.x * t.k + t.x < 8 || (placed.x + placed.w) * t.k + t.x > r.width - 8 || placed.y * t.k + t.y < 8 || (placed.y + Math.min(placed.h, 60)) * t.k + t.y > r.height - 8);
    if (centre || outside) view.centre(item);
    view.cull();
    if (placed) { const d = view.drawn.find(x => x.e === placed.q); if (d && !d.on) { d.on = true; view.view.firstChild.append(d.e); } placed.q.focus({ preventScroll: true }); }
    for (const v of this.views) if (v !== view) { const same = this.partner(item, view, v); if (same) { this.use(v); v.reveal(same); v.choose(same); v.centre(same); this.use(this.views[0]); } }
  }

  say(text) { $('said').textContent = text; }

  tab(name) {
    document.body.dataset.tab = name;
    for (const t of TABS) { const on = t === name; $('tab-' + t).setAttribute('aria-selected', on); $('tab-' + t).tabIndex = on ? 0 : -1; $('view-' + t).hidden = !on; }
    if (name === 'layers') this.table.render();
  }

  find(text) {
    this.query = text.trim();
    const view = this.views[0], found = view.model.search(this.query);
    this.hit = -1; this.found = found;
    view.hits = new Set();
    for (const n of found) for (let item = view.model.item(n.index); item && item.parent; item = item.parent) view.hits.add(item.key);
    for (const p of view.placed.values()) p.q.classList.toggle('hit', view.hits.has(p.item.key) && !(p.item.isScope && p.item.open));
    $('hits').textContent = this.query ? `${found.length} found` + (found.length ? ', Enter shows them' : '') : '';
    if (!$('view-layers').hidden) this.table.render();
  }

  nextHit(step) {
    if (!this.found?.length) return;
    this.hit = (this.hit + step + this.found.length) % this.found.length;
    this.tab('graph');
    this.show(this.views[0].model.item(this.found[this.hit].index), this.views[0]);
    $('find').focus();
    $('hits').textContent = `${this.hit + 1} of ${this.found.length}`;
  }

  save() { // the graph as a picture, with the styles that it needs
    const view = this.views[0], b = view.model.root.box, copy = view.svg.cloneNode(false);
    copy.setAttribute('xmlns', NS); copy.setAttribute('viewBox', `0 0 ${b.w} ${b.h}`); copy.setAttribute('width', b.w); copy.setAttribute('height', b.h);
    copy.append(document.querySelector('style').cloneNode(true), view.svg.querySelector('defs').cloneNode(true), ...view.drawn.map(d => d.e.cloneNode(true)));
    download('graph.svg', new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' }));
  }

  wire() {
    const select = $('overlay'), each = f => { for (const v of this.views) { this.use(v); f(v); } this.use(this.views[0]); };
    for (const o of this.sets.get(this.views[0])) make(select, 'option', { value: o.key }, o.label);
    select.value = this.key;
    select.addEventListener('change', () => this.setOverlay(select.value));
    TABS.forEach((name, i) => { const b = $('tab-' + name); b.addEventListener('click', () => this.tab(name)); b.addEventListener('keydown', e => { const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]; if (step) { const next = TABS[(i + step + TABS.length) % TABS.length]; this.tab(next); $('tab-' + next).focus(); } }); });
    $('find').addEventListener('input', e => this.find(e.target.value));
    $('find').addEventListener('keydown', e => { if (e.key === 'Enter') this.nextHit(e.shiftKey ? -1 : 1); if (e.key === 'Escape') { e.target.value = ''; this.find(''); this.views[0].svg.focus(); } });
    document.addEventListener('keydown', e => { if (e.key === '/' && !/INPUT|SELECT/.test(e.target.tagName)) { e.preventDefault(); $('find').focus(); } });
    $('fold').addEventListener('click', () => each(v => v.setAll(false)));
    $('unfold').addEventListener('click', () => each(v => v.setAll(true)));
    if (!this.views.every(v => v.canOpenAll())) { $('unfold').disabled = true; $('unfold').title = `only for models of at most ${ALL} boxes`; }
    $('fit').addEventListener('click', () => each(v => v.fit(false)));
    $('in').addEventListener('click', () => each(v => d3.select(v.svg).call(v.zoom.scaleBy, 1.25)));
    $('out').addEventListener('click', () => each(v => d3.select(v.svg).call(v.zoom.scaleBy, .8)));
    $('direction').addEventListener('change', e => each(v => { v.direction = e.target.value; v.forgetAll(); v.render(); v.fit(); }));
    const hidden = this.views[0].model.nodes.filter(n => n.h).length;
    $('shapes-label').hidden = !hidden; $('shapes-count').textContent = `(${hidden})`;
    $('shapes').addEventListener('change', e => this.setShapes(e.target.checked));
    $('save').addEventListener('click', () => this.save());
    $('view-charts').addEventListener('click', e => this.fromChart(e.target));
    $('view-findings').addEventListener('click', e => this.fromChart(e.target));
    $('story').addEventListener('click', e => { if (e.ctrlKey || e.metaKey || e.shiftKey) return; if (e.target.closest('a')) e.preventDefault(); this.fromChart(e.target); });
    for (const e of document.querySelectorAll('#summary [data-node]')) e.addEventListener('click', () => this.fromChart(e));
    window.addEventListener('beforeprint', () => this.print(true)); window.addEventListener('afterprint', () => this.print(false));
    window.addEventListener('hashchange', () => this.follow());
    this.tab('graph');
  }

  fromChart(target) {
    const place = target.closest('[data-node], [data-scope], [data-tab]');
    if (!place) return;
    if (place.dataset.tab) { this.tab(place.dataset.tab); return; }
    const view = this.views[0];
    this.tab('graph');
    this.show(place.dataset.node !== undefined ? view.model.item(+place.dataset.node) : view.model.scopes[+place.dataset.scope], view);
  }

  print(on) { // all of the graph, on one page, and the first layers as a table
    if (!!this.printing === on) return;
    this.printing = on;
    this.table.render();
    for (const v of this.views) { v.printing = on; const b = v.model.root.box; if (on) { v.svg.setAttribute('viewBox', `0 0 ${b.w} ${b.h}`); v.kept = v.view.getAttribute('transform'); v.view.removeAttribute('transform'); } else { v.svg.removeAttribute('viewBox'); v.view.setAttribute('transform', v.kept); } v.cull(); }
  }
}

(async () => { const began = performance.now(); ARRAYS = await (await unpack('arrays')).arrayBuffer(); window.report = new App(await (await unpack('data')).json(), began); })();
