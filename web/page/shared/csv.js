// SPDX-License-Identifier: MIT
// Rows of a CSV text, with the formula guard of probe/base/csv: a spreadsheet evaluates a field that begins
// like a formula, so such text gets an apostrophe in front, also behind a semicolon, which separates columns
// in some locales.  A number, or numbers joined by semicolons, is no formula.

const RISKY = /(^|;)[-+=@%\t\r\uff0b\uff0d\uff1d\uff20\uff05]/, RISKY_PARTS = new RegExp(RISKY, 'g');
const NUMBER = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|NaN|-?Infinity)$/;

// Tells whether a spreadsheet could evaluate the text or a part of it after a semicolon.
export const isFormula = (text) => RISKY.test(text) && !text.split(';').every((part) => NUMBER.test(part));

// Formats a field, quoted if the text or the guard needs quotes; null and undefined are empty.
export function csvField(value) {
  const text = String(value ?? '');
  const shown = isFormula(text) ? text.replace(RISKY_PARTS, (begin) => (begin[0] === ';' ? `;'${begin.slice(1)}` : `'${begin}`)) : text;
  return shown !== text || /[",\n\r]/.test(text) ? `"${shown.replaceAll('"', '""')}"` : text;
}

export const csvRow = (values) => values.map(csvField).join(',');
