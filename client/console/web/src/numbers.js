// Numbers as text, and as bytes.
import { format } from 'd3-format';

const grouped = format(',');
const short = format('.4~g');
const exact = format('.6~g');

const kMinus = '\u2212';

/** A whole number, with groups of three digits. */
export const count = (number) => (number === null || number === undefined ? '–' : grouped(number));

/** A number of four digits; null is what JSON makes of an infinity. */
export function number(value, infinite = '–') {
  if (value === null || value === undefined || Number.isNaN(value)) return infinite;
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${kMinus}∞`;
  return short(value);
}

/** The same with six digits. */
export const precise = (value, infinite = '–') =>
  Number.isFinite(value) ? exact(value) : number(value, infinite);

/** A weight, as part of 1. */
export function weight(value) {
  if (value === 0) return '0';
  return value < 1e-4 ? format('.1e')(value) : format('.4f')(value);
}

export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : format('.3~r')(value)} ${units[unit]}`;
}

export function seconds(value) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  if (value < 1e-3) return `${format('.3~r')(value * 1e6)} µs`;
  if (value < 1) return `${format('.3~r')(value * 1e3)} ms`;
  return `${format('.3~r')(value)} s`;
}

export function time(unixSeconds) {
  if (!unixSeconds) return '–';
  return new Date(unixSeconds * 1000)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z/, ' UTC');
}

/** The float32 numbers of a base64 text. */
export function floats(base64) {
  const text = atob(base64);
  const data = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) data[i] = text.charCodeAt(i);
  return new Float32Array(data.buffer);
}

/** The base64 of float32 numbers. */
export function base64(array) {
  const data = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = '';
  for (let i = 0; i < data.length; i += 4096)
    text += String.fromCharCode(...data.subarray(i, i + 4096));
  return btoa(text);
}

/** The shortest text that reads back as the same float32. */
export function shortest(value) {
  for (let digits = 6; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}
