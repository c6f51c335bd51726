'use strict';
// What colours the boxes and sorts the table: a number for each layer, or a category.

const FAMILIES = { convolution: 'Convolution and matrix', matrix: 'Convolution and matrix', activation: 'Activation', normalization: 'Normalization', pooling: 'Pooling and reduction', reduction: 'Pooling and reduction',
  arithmetic: 'Arithmetic', elementwise: 'Arithmetic', comparison: 'Arithmetic', logical: 'Arithmetic', bitwise: 'Arithmetic', quantization: 'Quantization', 'input or output': 'Input or output',
  condition: 'Control and state', infrastructure: 'Control and state', sequence: 'Sequences and attention', recurrent: 'Sequences and attention', detection: 'Detection and sorting', sort: 'Detection and sorting', boxes: 'Detection and sorting', unknown: 'Unknown', custom: 'Custom' };
const FAMILY_COLOURS = { 'Convolution and matrix': '#8ec5ff', Activation: '#ffc078', Normalization: '#8ce99a', 'Pooling and reduction': '#d0bfff', Arithmetic: '#ffec99', Quantization: '#fcc2d7', 'Input or output': '#ced4da',
  'Control and state': '#ffa8a8', 'Sequences and attention': '#99e9f2', 'Detection and sorting': '#eebefa', Unknown: '#ff8787', Custom: '#b2f2bb', 'Movement and shape': '#dee2e6' };
const PALETTE = ['#8ec5ff', '#ffc078', '#8ce99a', '#d0bfff', '#ffec99', '#fcc2d7', '#99e9f2', '#ced4da', '#ffa8a8'];

class Overlay {
  constructor(model, spec) {
    Object.assign(this, spec);
    this.model = model;
    if (this.kind === 'category') this.names = this.categories();
    else this.totals = this.summed();
  }

  static all(model) {
    const family = { key: 'operation', label: 'operation', kind: 'category', values: model.nodes.map(n => FAMILIES[model.data.groups[n.g]] || 'Movement and shape'), colours: FAMILY_COLOURS };
    const types = { key: 'type', label: 'element type', kind: 'category', values: model.nodes.map(n => n.o[0]?.[0] || n.i.length && 'none' || 'none') };
    return [family, ...model.data.overlays, types].map(spec => new Overlay(model, spec));
  }

  categories() {
    const count = new Map();
    for (const v of this.values) if (v !== null) count.set(v, (count.get(v) || 0) + 1);
    const names = [...count.keys()].sort((a, b) => count.get(b) - count.get(a));
    this.colours ??= Object.fromEntries(names.map((name, i) => [name, PALETTE[i % PALETTE.length]]));
    return names;
  }

  summed() { // of every scope: the sum, or the largest
    const totals = new Array(this.model.scopes.length).fill(null);
    this.model.nodes.forEach((n, i) => {
      const v = this.values[i];
      if (v === null) return;
      for (let s = n.parent; s; s = s.parent) {
        if (this.inclusive && s.node && s.node !== n && this.values[s.node.index] !== null) break; // the layer with the body counts it
        totals[s.index] = totals[s.index] === null ? v : this.kind === 'max' ? Math.max(totals[s.index], v) : totals[s.index] + v;
      }
    });
    return totals;
  }

  value(item) {
    if (this.kind === 'category') return item.isScope ? null : this.values[item.index];
    return item.isScope ? this.totals[item.index] : this.values[item.index];
  }

  strength(item) { // from 0 to 1
    const v = this.value(item);
    if (v === null || v <= 0) return 0;
    return this.full ? Math.min(1, v / this.full) : Math.min(1, Math.sqrt(4 * v / (this.totals[0] || 1)));
  }

  colour(item) {
    if (this.kind === 'category') return item.isScope ? null : this.colours[this.values[item.index]] || null;
    const f = this.strength(item);
    return f > .02 ? ramp(f) : null;
  }

  text(item) {
    const v = this.value(item);
    if (v === null || v === undefined) return '';
    if (this.kind === 'category') return String(v);
    const share = this.kind === 'sum' && !this.full && this.totals[0] ? `, ${(100 * v / this.totals[0]).toFixed(1)} %` : '';
    return number(v, this.unit) + share;
  }

  short(item) { const v = this.value(item); return v === null || this.kind === 'category' ? '' : number(v, this.unit); }
}

const STOPS = [[255, 244, 210], [255, 197, 107], [240, 117, 44]];
function ramp(f) {
  const k = f < .5 ? 0 : 1, g = f < .5 ? 2 * f : 2 * f - 1;
  return `rgb(${STOPS[k].map((a, i) => Math.round(a + g * (STOPS[k + 1][i] - a))).join(',')})`;
}

function number(v, unit) {
  if (v === null || v === undefined) return '';
  if (unit === 'ms') return v >= 1 ? v.toFixed(2) + ' ms' : (v * 1000).toFixed(v >= .01 ? 0 : 1) + ' µs';
  const scales = unit === 'B' ? [[1 << 30, ' GiB'], [1 << 20, ' MiB'], [1 << 10, ' KiB']] : [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
  if (unit === 'B' || unit === 'FLOP') for (const [size, name] of scales) if (v >= size) return (v / size).toFixed(v >= 100 * size ? 0 : 1) + name + (unit === 'B' ? '' : unit);
  const noun = v === 1 ? unit.replace(/s$/, '') : unit;
  return `${v && Math.abs(v) < 1e-3 ? v.toExponential(1) : Number(v.toPrecision(3))}${noun ? ' ' + noun : ''}`;
}
