// A heat map on a canvas: queries down, rows or blocks of rows across. The pointer and the arrow keys
// choose a cell.
import { max } from 'd3-array';
import { scaleLinear, scaleSqrt } from 'd3-scale';
import { h } from './dom.js';
import { color, onTheme } from './theme.js';

const kCellMax = 34;
const kHeightMax = 560;

function rgb(name) {
  const text = color(name);
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

/** The colour of each weight: from --heat-low at 0 to --heat-high at the largest. */
function colorScale(most, root) {
  const part = (root ? scaleSqrt() : scaleLinear())
    .domain([0, most || 1])
    .range([0, 1])
    .clamp(true);
  const low = rgb('--heat-low');
  const high = rgb('--heat-high');
  return (weight) =>
    low.map((from, i) => Math.round(from + (high[i] - from) * part(Math.abs(weight))));
}

/**
 * `chosen(row, column)` is called for the cell that the reader looks at. Returns {element, show, end}.
 * show({weights, rows, columns, masked, root}) draws; `masked(cell)` says which cells do not count.
 */
export function heatMap(chosen) {
  const canvas = h('canvas', {});
  const frame = h(
    'div',
    {
      class: 'heat',
      tabindex: 0,
      role: 'application',
      'aria-label': 'Heat map of the weights. Arrow keys move from cell to cell.',
    },
    canvas,
    h('div', { class: 'heat-cursor', 'aria-hidden': 'true' }),
  );
  const cursor = frame.lastChild;
  let shown = null;
  let cell = [0, 0];
  let size = [1, 1];

  function draw() {
    if (shown === null || frame.clientWidth === 0) return;
    const { weights, rows, columns, masked, root } = shown;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.min(kCellMax, Math.max(frame.clientWidth / columns, 1));
    const height = Math.max(3, Math.min(width, kCellMax, kHeightMax / rows));
    size = [width, height];
    canvas.width = Math.round(columns * width * ratio);
    canvas.height = Math.round(rows * height * ratio);
    canvas.style.width = `${columns * width}px`;
    canvas.style.height = `${rows * height}px`;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const colorOf = colorScale(max(weights, Math.abs), root);
    const hatch = hatching(context, ratio);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const index = row * columns + column;
        const hidden = masked(index);
        context.fillStyle = hidden ? hatch : `rgb(${colorOf(weights[index]).join(' ')})`;
        const x = Math.round((column * canvas.width) / columns);
        const y = Math.round((row * canvas.height) / rows);
        context.fillRect(
          x,
          y,
          Math.round(((column + 1) * canvas.width) / columns) - x,
          Math.round(((row + 1) * canvas.height) / rows) - y,
        );
      }
    }
    place();
  }

  function hatching(context, ratio) {
    const tile = document.createElement('canvas');
    const side = Math.round(6 * ratio);
    tile.width = side;
    tile.height = side;
    const stroke = tile.getContext('2d');
    stroke.fillStyle = color('--heat-masked');
    stroke.fillRect(0, 0, side, side);
    stroke.strokeStyle = color('--heat-hatch');
    stroke.lineWidth = ratio;
    stroke.beginPath();
    for (const shift of [-side, 0, side]) {
      stroke.moveTo(shift, side);
      stroke.lineTo(shift + side, 0);
    }
    stroke.stroke();
    return context.createPattern(tile, 'repeat');
  }

  function place() {
    cursor.style.transform = `translate(${cell[1] * size[0]}px, ${cell[0] * size[1]}px)`;
    cursor.style.width = `${size[0]}px`;
    cursor.style.height = `${size[1]}px`;
  }
  function choose(row, column) {
    if (shown === null) return;
    cell = [
      Math.max(0, Math.min(shown.rows - 1, row)),
      Math.max(0, Math.min(shown.columns - 1, column)),
    ];
    place();
    chosen(cell[0], cell[1]);
  }
  frame.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    choose(
      Math.floor((event.clientY - box.top) / size[1]),
      Math.floor((event.clientX - box.left) / size[0]),
    );
  });
  frame.addEventListener('keydown', (event) => {
    const moves = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      PageUp: [-10, 0],
      PageDown: [10, 0],
      Home: [0, -1e9],
      End: [0, 1e9],
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    choose(cell[0] + move[0], cell[1] + move[1]);
  });
  const observer = new ResizeObserver(draw);
  observer.observe(frame);
  const forget = onTheme(draw);
  return {
    element: frame,
    show(next) {
      shown = next;
      draw();
      choose(cell[0], cell[1]);
    },
    end() {
      observer.disconnect();
      forget();
    },
  };
}
