'use strict';
// The layers as a table: for screen readers, for sorting, for print.

const ROWS = 300;

class Table {
  constructor(place, app) { Object.assign(this, { place, app, order: null, down: false, all: false }); }

  columns() {
    const model = this.app.views[0].model, current = this.app.overlay.key, first = o => o.key === current ? 0 : 1;
    const measures = this.app.overlays(this.app.views[0]).filter(o => o.kind !== 'category').sort((x, y) => first(x) - first(y));
    const [shown, rest] = measures[0]?.key === current ? [measures.slice(0, 1), measures.slice(1)] : [[], measures]; // what colours the graph stands beside the name, so that narrow screens show it
    const column = o => [o.label, n => o.short(n), true, n => o.value(n)];
    return [
      ['layer', n => n.n, false], ...shown.map(column), ['operation', n => n.v, false, null, 'keep'], ['scope', n => model.chain(n).slice(1, -1).map(s => s.label).join(' › '), false],
      ['output', n => n.o.map(o => o[1] === null ? '' : `${o[0]} ${o[1]}`).join('; '), false], ['line', n => n.line ?? '', true, n => n.line],
      ...rest.map(column),
    ];
  }

  sortBy(name, down) { this.order = name; this.down = down; if (!$('view-layers').hidden) this.render(); }

  rows() {
    const model = this.app.views[0].model, text = this.app.query, nodes = text ? model.search(text) : model.nodes, column = this.columns().find(c => c[0] === this.order);
    if (!column) return nodes;
    const value = column[3] || column[1], sign = this.down ? -1 : 1;
    return [...nodes].sort((a, b) => { const x = value(a), y = value(b); return (x === null) - (y === null) || sign * (x < y ? -1 : x > y ? 1 : 0); });
  }

  render() {
    const columns = this.columns(), rows = this.rows(), shown = this.all ? rows : rows.slice(0, ROWS), table = make(null, 'table');
    make(table, 'caption', {}, `${rows.length} layers` + (this.app.query ? ` with “${this.app.query}”` : '') + ', without constants');
    const head = make(make(table, 'thead'), 'tr');
    for (const [name, , isNumber] of columns) {
      const th = make(head, 'th', { scope: 'col', ...(isNumber ? { class: 'n' } : {}), ...(this.order === name ? { 'aria-sort': this.down ? 'descending' : 'ascending' } : {}) }), b = make(th, 'button', {}, name + (this.order === name ? this.down ? ' ▾' : ' ▴' : ''));
      b.addEventListener('click', () => { this.sortBy(name, this.order === name ? !this.down : isNumber && name !== 'line'); this.place.querySelector(`th:nth-child(${columns.findIndex(c => c[0] === name) + 1}) button`).focus(); });
    }
    const body = make(table, 'tbody');
    for (const n of shown) {
      const tr = make(body, 'tr');
      columns.forEach(([, text, isNumber, , kind], i) => {
        const td = make(tr, 'td', isNumber ? { class: 'n' } : kind ? { class: kind } : {});
        if (i) { breakable(td, String(text(n) ?? '')); return; }
        const b = make(td, 'button', { class: 'link' });
        breakable(b, text(n) || '(no name)');
        b.addEventListener('click', () => { this.app.tab('graph'); this.app.show(this.app.views[0].model.item(n.index), this.app.views[0]); });
      });
    }
    this.place.replaceChildren(table);
    if (shown.length < rows.length) make(this.place, 'button', {}, `Show all ${rows.length}`).addEventListener('click', () => { this.all = true; this.render(); });
  }
}
