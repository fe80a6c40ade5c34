// Charts of uPlot, in the colours of the theme, as wide as their place.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from './dom.js';
import { number } from './numbers.js';
import { color, onTheme } from './theme.js';

const kHeight = 190;
const kFont = '12px system-ui, sans-serif';

const strokes = { accent: '--accent', muted: '--muted', faint: '--faint' };

function axis({ label, values, incrs, size, space = 30 }) {
  return {
    font: kFont,
    stroke: () => color('--muted'),
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
    size,
    space,
    gap: 6,
    values,
    ...(label === undefined ? {} : { label, labelFont: kFont, labelSize: 18 }),
    ...(incrs === undefined ? {} : { incrs }),
  };
}

const texts = (text) => (_, ticks) => ticks.map((tick) => (tick === null ? '' : text(tick)));

const kWhole = Array.from({ length: 16 }, (_, i) => [1, 2, 5].map((step) => step * 10 ** i)).flat();
/** Steps of an axis that shows bytes. */
export const kBinary = Array.from({ length: 50 }, (_, i) => 2 ** i);
const kSeconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
const kSpan = 30;
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString('en-GB');

/** The vertical axis begins at 0 if that is asked for, and is there without data, too. */
function yScale({ range, zero }) {
  const edge = { pad: 0.1, soft: 0, mode: 3 };
  const fitting = (_, least, most) => {
    if (least === null) return [0, 1];
    if (zero) return [0, most > 0 ? most * 1.1 : 1];
    return uPlot.rangeNum(least, most, { min: edge, max: edge });
  };
  return { range: range ?? fitting };
}

/** How the horizontal axis is cut. A chart over time spans half a minute at least. */
function xScale({ time, log, bars }) {
  if (time)
    return { time: false, range: (_, least, most) => [Math.min(least, most - kSpan), most] };
  if (log) return { time: false, distr: 3 };
  if (bars) return { time: false, range: (_, least, most) => [least - 0.6, most + 0.6] };
  return { time: false };
}

function xAxis(x) {
  const text = x.time ? clock : (x.text ?? number);
  return axis({
    label: x.label,
    size: 30,
    incrs: x.time ? kSeconds : x.whole ? kWhole : undefined,
    space: x.time ? 84 : 50,
    values: texts(text),
  });
}

function seriesOf({ label, tone = 'accent', width = 2, ...kinds }, sparse) {
  const { dashed, bars, steps, marks, points } = kinds;
  const filled = bars ? strokes[tone] : steps ? '--accent-soft' : null;
  return {
    label,
    stroke: () => color(strokes[tone]),
    width: bars ? 0 : width,
    dash: dashed ? [5, 4] : undefined,
    fill: filled === null ? undefined : () => color(filled),
    paths: bars
      ? uPlot.paths.bars({ size: [0.8, 48] })
      : steps
        ? uPlot.paths.stepped({ align: 1 })
        : marks
          ? () => null
          : undefined,
    points: marks
      ? { show: true, size: 7, width: 2, fill: () => color('--card') }
      : { size: 5, ...(sparse ? {} : { show: points === true }) },
    value: (_, value) => (value === null || value === undefined ? '–' : number(value)),
  };
}

/**
 * A chart with a heading. `x` has {label, log, time, bars, whole, text}, and `y` {range, zero, text, incrs}. A
 * series has a label and a tone, and is a line, bars, steps or marks. Returns {element, set, end};
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
    // Half the width of the last label of an axis over time.
    padding: [10, x.time ? 30 : 18, 0, 0],
    scales: { x: xScale(x), y: yScale(y) },
    axes: [xAxis(x), axis({ values: texts(y.text ?? number), incrs: y.incrs, size: 58 })],
    series: [
      {
        label: x.time ? 'time' : (x.label ?? 'x'),
        value: (_, value) =>
          value === null || value === undefined ? '–' : (x.time ? clock : number)(value),
      },
      ...series.map((each) => seriesOf(each, x.time)),
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
      // One moment alone has no span: the time before it is empty.
      shown =
        x.time && data[0].length === 1
          ? data.map((list, i) => [i === 0 ? list[0] - kSpan : null, ...list])
          : data;
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
