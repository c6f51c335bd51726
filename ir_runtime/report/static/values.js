'use strict';
// Arrays as pictures: the values of constants, and the outputs of layers, beside those of another side.

const WIDE = 320, LARGEST = 512, TILES = 1024, ROW_OF = 64;
const READ = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, i8: BigInt64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array, b1: Uint8Array, f2: Uint16Array };

let ARRAYS; // the bytes of all arrays in the page, one after the other

function half(bits) { // the number that an f16 is
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
  return sign * (exponent === 31 ? (fraction ? NaN : Infinity) : exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * fraction / 1024);
}

class Values {
  constructor([type, shape, place]) {
    const kind = type.slice(1), count = shape.reduce((a, b) => a * b, 1), bytes = ARRAYS.slice(place, place + count * READ[kind].BYTES_PER_ELEMENT), raw = new READ[kind](bytes);
    Object.assign(this, { type, shape, bytes });
    this.numbers = kind === 'f2' ? Float32Array.from(raw, half) : kind[1] === '8' && kind[0] !== 'f' ? Float64Array.from(raw, Number) : raw;
  }

  npy() { // version 1.0 of NumPy's format
    const shape = this.shape.length === 1 ? `${this.shape[0]},` : this.shape.join(', '), text = `{'descr': '${this.type}', 'fortran_order': False, 'shape': (${shape}), }`;
    const head = text.padEnd(64 * Math.ceil((text.length + 11) / 64) - 11) + '\n', start = [0x93, ...[...'NUMPY'].map(c => c.charCodeAt(0)), 1, 0, head.length & 255, head.length >> 8];
    return new Blob([Uint8Array.from(start), head, this.bytes], { type: 'application/octet-stream' });
  }

  grid() { // filters as tiles, matrices as they are, lists in rows: the size of the picture, and the index at each of its pixels
    const s = this.shape, n = this.numbers.length, [h, w] = s.length > 2 ? s.slice(-2) : s.length === 2 ? s : [1, Math.min(n, ROW_OF)];
    if (s.length > 2 && h * w > 1) {
      const all = n / (h * w), count = Math.min(all, TILES), across = s.at(-3) > 1 && s.at(-3) * (w + 1) <= LARGEST ? s.at(-3) : Math.max(1, Math.min(count, Math.round(Math.sqrt(count * (h + 1) / (w + 1) * 2)))), down = Math.ceil(count / across);
      const at = (x, y) => { const i = Math.floor(x / (w + 1)), j = Math.floor(y / (h + 1)), tile = j * across + i, dx = x % (w + 1), dy = y % (h + 1); return dx === w || dy === h || tile >= count ? -1 : (tile * h + dy) * w + dx; };
      return { width: across * (w + 1) - 1, height: down * (h + 1) - 1, at, note: count < all ? `the first ${count} of ${all} filters` : '' };
    }
    const columns = s.length > 2 ? s[s.length - 3] : w, rows = s.length === 1 ? Math.ceil(n / columns) : n / columns; // 1×1 filters are a matrix
    const width = Math.min(columns, LARGEST), height = Math.min(rows, LARGEST);
    const at = (x, y) => { const k = Math.floor(y * rows / height) * columns + Math.floor(x * columns / width); return k < n ? k : -1; };
    return { width, height, at, note: width < columns || height < rows ? `every ${Math.ceil(Math.max(columns / width, rows / height))}th number` : '' };
  }

  index(k) { const index = []; for (const length of [...this.shape].reverse()) { index.unshift(k % length); k = Math.floor(k / length); } return `[${index.join(', ')}]`; }
}

function tint(v) { // from -1, blue, over 0, white, to 1, red
  if (!Number.isFinite(v)) return [0, 0, 0, 255];
  const t = Math.min(1, Math.abs(v)), end = v < 0 ? [33, 102, 172] : [178, 24, 43];
  return [...end.map(c => Math.round(255 + t * (c - 255))), 255];
}

function paint(parent, label, width, height, value, room = WIDE) { // one pixel for each number; those without one stay transparent
  const canvas = make(parent, 'canvas', { width, height, role: 'img', 'aria-label': label }), context = canvas.getContext('2d'), image = context.createImageData(width, height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) { const v = value(x, y); if (v !== undefined) image.data.set(tint(v), 4 * (y * width + x)); }
  context.putImageData(image, 0, 0);
  canvas.style.width = `${width * Math.max(room / LARGEST, Math.min(16, Math.floor(room / width) || room / width))}px`;
  return canvas;
}

function scale(parent, largest, absolute = false) { // what the colours mean
  const p = make(parent, 'p', { class: 'scale' });
  make(p, 'span', {}, absolute ? '0' : `−${number(largest, '')}`);
  make(p, 'span', { class: absolute ? 'reds' : 'both' });
  make(p, 'span', {}, number(largest, ''));
}

function showValues(parent, name, w) { // a constant: its picture, its numbers under the pointer, and a button that saves it
  const values = new Values(w), numbers = values.numbers;
  if (numbers.length > 1) {
    let largest = 0;
    for (const v of numbers) if (Number.isFinite(v)) largest = Math.max(largest, Math.abs(v));
    const { width, height, at, note } = values.grid(), figure = make(parent, 'figure', { class: 'values' });
    const canvas = paint(figure, `values of ${name}`, width, height, (x, y) => { const k = at(x, y); return k < 0 ? undefined : largest ? numbers[k] / largest : numbers[k]; });
    scale(figure, largest);
    const said = make(figure, 'p', { class: 'soft code' }, note || 'point at a number');
    canvas.addEventListener('pointermove', e => {
      const r = canvas.getBoundingClientRect(), k = at(Math.min(width - 1, Math.floor((e.clientX - r.left) / r.width * width)), Math.min(height - 1, Math.floor((e.clientY - r.top) / r.height * height)));
      if (k >= 0) said.textContent = `${values.index(k)} = ${Number(Number(numbers[k]).toPrecision(7))}`;
    });
  }
  const save = make(parent, 'button', { title: 'the exact values, for numpy.load' }, 'Save .npy');
  save.addEventListener('click', () => download(`${name.split('/').at(-1).replace(/[^\w.-]+/g, '_') || 'values'}.npy`, values.npy()));
}

function download(name, blob) {
  const a = make(null, 'a', { download: name, href: URL.createObjectURL(blob) });
  a.click(); URL.revokeObjectURL(a.href);
}

function showPictures(parent, maps, sides, app) { // the output of a layer, and that of the other side, in the same colours
  const [h, w] = maps.size, count = maps.channels.length, across = Math.max(1, Math.ceil(Math.sqrt(count * h / w))), width = across * (w + 1) - 1, height = Math.ceil(count / across) * (h + 1) - 1;
  const place = make(parent, 'div');
  const label = make(place, 'label', {}, 'Colours '), select = make(label, 'select'), grid = make(place, 'div', { class: 'sides' });
  for (const name of ['signed', 'absolute']) make(select, 'option', { value: name }, name);
  select.value = app.colours || 'signed';
  const draw = () => {
    const absolute = app.colours === 'absolute';
    grid.replaceChildren();
    const one = (title, from, largest) => {
      const levels = new Int8Array(ARRAYS, from, count * h * w), figure = make(grid, 'figure');
      make(figure, 'figcaption', {}, title);
      paint(figure, title, width, height, (x, y) => {
        const tile = Math.floor(y / (h + 1)) * across + Math.floor(x / (w + 1)), dx = x % (w + 1), dy = y % (h + 1);
        if (dx === w || dy === h || tile >= count) return undefined;
        const level = levels[(tile * h + dy) * w + dx];
        return level === -128 ? NaN : absolute ? Math.abs(level) / 127 : level / 127;
      }, maps.error === undefined ? WIDE : WIDE / 2 - 6);
      scale(figure, largest, absolute);
    };
    maps.maps.forEach((from, i) => one(sides[i], from, maps.scale));
    if (maps.error !== undefined) one('difference', maps.error, maps.errorScale);
  };
  select.addEventListener('change', () => { app.colours = select.value; draw(); });
  draw();
  const channels = maps.of === 1 ? '' : `channels ${maps.channels.join(', ')} of ${maps.of}, those with the largest ${maps.error === undefined ? 'values' : 'difference'}; `;
  make(place, 'p', { class: 'soft' }, `${channels}${maps.full.join('×')} numbers each` + (maps.full[0] > h || maps.full[1] > w ? `, reduced to ${h}×${w} by the largest magnitude` : '') + '; black is Inf or NaN');
}
