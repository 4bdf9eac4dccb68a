// SPDX-License-Identifier: MIT
// Fields of CSV texts that the page exports: the cases of tests/probe/base/test_csv.c, without a browser.
import {readFileSync} from 'node:fs';

const source = readFileSync(new URL('../../../web/page/shared/csv.js', import.meta.url), 'utf8');
const {csvField, csvRow, isFormula} = await import(`data:text/javascript,${encodeURIComponent(source)}`);
let failed = 0;

function equal(what, got, wanted) {
  if (got === wanted) return;
  failed++;
  console.log(`${JSON.stringify(what)}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
}

for (const text of ['=a', '+a', '-a', '@a', '%a', '-', '=1', 'a;=b', '1;-b', '\uff1da', 'a;b;\uff0b', '\t1', '\rcmd']) equal(text, isFormula(text), true);
for (const text of ['', 'a', '-5', '-0.25', '1=2', '-Infinity']) equal(text, isFormula(text), false);
for (const [text, wanted] of [['', ''], ['relu.0.forward', 'relu.0.forward'], ['=1+1', '"\'=1+1"'], ['=a"b', '"\'=a""b"'], ['a;=b;@c', '"a;\'=b;\'@c"'],
  ['-0.5;0.25', '-0.5;0.25'], ['-2', '-2'], ['\tx', '"\'\tx"'], ['a,b', '"a,b"'], ['two\nlines', '"two\nlines"'], [null, ''], [-2.5e-7, '-2.5e-7']]) equal(text, csvField(text), wanted);
equal('a row', csvRow(['a', null, '=b', 1]), 'a,,"\'=b",1');

console.log(failed ? 'not ok csv-fields-are-quoted-and-guarded' : 'ok csv-fields-are-quoted-and-guarded');
process.exit(failed ? 1 : 0);
