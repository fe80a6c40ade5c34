// The handle for a temperature, on a logarithmic scale, with a field for exact numbers.
import { scaleLog } from 'd3-scale';
import { h, newId } from './dom.js';

const kSteps = 600;
const kLeast = 1e-6;
const kMost = 1e6;

/** `middle` is the temperature in the middle of the scale. `changed(value)` is called as it moves. */
export function temperatureControl(label, middle, value, changed) {
  const scale = scaleLog().range([0, kSteps]).clamp(true);
  const sliderId = newId('temperature');
  const slider = h('input', {
    type: 'range',
    id: sliderId,
    min: 0,
    max: kSteps,
    step: 1,
    class: 'temperature',
  });
  const field = h('input', {
    type: 'number',
    min: kLeast,
    max: kMost,
    step: 'any',
    'aria-label': `${label}, exact`,
    class: 'exact',
  });
  const element = h(
    'div',
    { class: 'field slider' },
    h('label', { for: sliderId }, label),
    h('div', { class: 'slider-row' }, slider, field),
  );
  let current = value;

  function show(number, withField) {
    slider.value = String(Math.round(scale(number)));
    slider.setAttribute('aria-valuetext', String(number));
    if (withField) field.value = String(number);
  }
  slider.addEventListener('input', () => {
    current = Number(scale.invert(Number(slider.value)).toPrecision(3));
    show(current, true);
    changed(current);
  });
  field.addEventListener('input', () => {
    const number = Number(field.value);
    if (field.value === '' || !(number >= kLeast && number <= kMost)) return;
    current = number;
    show(current, false);
    changed(current);
  });
  const control = {
    element,
    value: () => current,
    /** Sets another middle and value, without a call of `changed`. */
    reset(newMiddle, newValue) {
      scale.domain([Math.max(newMiddle / 100, kLeast), Math.min(newMiddle * 100, kMost)]);
      current = newValue;
      show(current, true);
    },
  };
  control.reset(middle, value);
  return control;
}
