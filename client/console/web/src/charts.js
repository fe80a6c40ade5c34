// Charts of uPlot, in the colours of the theme, as wide as their place.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from './dom.js';
import { number } from './numbers.js';
import { color, onTheme } from './theme.js';

const kHeight = 190;
const kFont = '12px system-ui, sans-serif';

const strokes = { accent: '--accent', muted: '--muted', faint: '--faint' };

function axis({ label, values, size }) {
  return {
    font: kFont,
    stroke: () => color('--muted'),
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
    size,
    gap: 6,
    ...(label === undefined ? {} : { label, labelFont: kFont, labelSize: 18 }),
    ...(values === undefined ? {} : { values }),
  };
}

const tickText = (_, ticks) => ticks.map((tick) => (tick === null ? '' : number(tick)));

function seriesOf({
  label,
  tone = 'accent',
  dashed = false,
  bars = false,
  steps = false,
  width = 2,
  points = false,
}) {
  return {
    label,
    stroke: () => color(strokes[tone]),
    width: bars ? 0 : width,
    dash: dashed ? [5, 4] : undefined,
    fill: bars ? () => color(strokes[tone]) : steps ? () => color('--accent-soft') : undefined,
    paths: bars
      ? uPlot.paths.bars({ size: [0.8, 48] })
      : steps
        ? uPlot.paths.stepped({ align: 1 })
        : undefined,
    points: { show: points, size: 5 },
    value: (_, value) => (value === null || value === undefined ? '–' : number(value)),
  };
}

/**
 * A chart with a heading. `x` has {label, log, time, values}, and
 * `y` has {range, values}. Returns {element, set, end};
 * set(data, summary) draws, and says in words what is drawn.
 */
export function chart({
  title,
  x = {},
  y = {},
  series,
  height = kHeight,
  legend = series.length > 1,
}) {
  const place = h('div', { class: 'plot' });
  const caption = h('figcaption', { class: 'caption' });
  const element = h(
    'figure',
    { class: 'chart', 'aria-label': title },
    h('h3', {}, title),
    place,
    caption,
  );
  let plot = null;
  let shown = null;

  const options = (width) => ({
    width,
    height,
    padding: [10, 8, 0, 0],
    scales: {
      x: { time: x.time === true, distr: x.log ? 3 : 1 },
      y: y.range === undefined ? {} : { range: y.range },
    },
    axes: [
      axis({ label: x.label, values: x.time ? undefined : (x.values ?? tickText), size: 30 }),
      axis({ values: y.values ?? tickText, size: 58 }),
    ],
    series: [
      {
        label: x.label ?? 'x',
        value: (_, value) =>
          value === null || value === undefined
            ? '–'
            : x.time
              ? new Date(value * 1000).toLocaleTimeString()
              : number(value),
      },
      ...series.map(seriesOf),
    ],
    legend: { show: legend },
    cursor: { y: false, points: { size: 7 } },
  });

  function draw() {
    const width = Math.floor(place.clientWidth);
    if (shown === null || width === 0) return;
    if (plot === null) {
      plot = new uPlot(options(width), shown, place);
      plot.root.setAttribute('aria-hidden', 'true');
    } else {
      if (plot.width !== width) plot.setSize({ width, height });
      plot.setData(shown);
    }
  }
  const observer = new ResizeObserver(draw);
  observer.observe(place);
  const forget = onTheme(() => plot?.redraw(false));
  return {
    element,
    set(data, summary) {
      shown = data;
      caption.textContent = summary;
      draw();
    },
    end() {
      observer.disconnect();
      forget();
      plot?.destroy();
    },
  };
}
