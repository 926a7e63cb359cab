import { z } from 'zod';
import { nearest, printable, readBody } from '../../src/http/faults';

const schema = z.strictObject(
  {
    name: z.string('must be a string'),
    size: z
      .strictObject({ width: z.number('must be a number'), height: z.number('must be a number') })
      .optional(),
  },
  'The body must be an object.',
);

function refused(...problems: [code: string, description: string][]) {
  return { ok: false, problems: problems.map(([code, description]) => ({ code, description })) };
}

describe('readBody', () => {
  it('answers the value of a body that fits', () => {
    const body = { name: 'a', size: { width: 1, height: 2 } };
    expect(readBody(schema, body)).toEqual({ ok: true, value: body });
  });

  it.each<[body: unknown, problems: [code: string, description: string][]]>([
    [
      { name: 5, size: { width: 'secret' }, nmae: 'secret' },
      [
        ['invalid_body', 'name: must be a string'],
        ['invalid_body', 'size.width: must be a number'],
        ['invalid_body', 'size.height: is missing'],
        ['unknown_field', 'nmae is not a field of this request. Did you mean name?'],
      ],
    ],
    [
      { name: 'a', size: { width: 1, height: 2, hight: 3 } },
      [['unknown_field', 'size.hight is not a field of this request. Did you mean size.height?']],
    ],
    [
      { name: 'a', width: 1 },
      [['unknown_field', 'width is not a field of this request. Did you mean size.width?']],
    ],
    [
      { name: 'a', colour: 1, weight: 2 },
      [
        ['unknown_field', 'colour is not a field of this request. Fields of the body: name, size.'],
        ['unknown_field', 'weight is not a field of this request. Fields of the body: name, size.'],
      ],
    ],
    [
      { name: 'a', size: { width: 1, height: 2, colour: 3 } },
      [['unknown_field', 'size.colour is not a field of this request. Fields of size: width, height.']],
    ],
    ['secret', [['invalid_body', 'The body must be an object.']]],
    [undefined, [['invalid_body', 'The body must be an object.']]],
  ])('answers every problem of %j at once and quotes no value', (body, problems) => {
    expect(readBody(schema, body)).toEqual(refused(...problems));
  });
});

describe('printable', () => {
  it.each([
    ['plain', 'plain'],
    ['a\r\nb\u0000é\u2028', 'a??b???'],
    ['x'.repeat(60), 'x'.repeat(60)],
    ['x'.repeat(61), `${'x'.repeat(57)}...`],
  ])('shows %j as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });
});

test.each([
  ['lnA03mLuxnL3toiRMxV4Zw==', '(a value)'],
  ['contentkey:lnA03mLuxnL3toiRMxV4Zw==', 'contentkey:(a value)'],
  ['keyIdWithoutDigitsABCDEFgh==', '(a value)'],
  ['CBF76BB43B9A54254A5FC20074A3A53B', '(a value)'],
  ['lnA03mLuxnL3toiRMxV4Zw', '(a value)'],
  ['playreadyLicenseAcquisitionAddress', 'playreadyLicenseAcquisitionAddress'],
  ['content_key', 'content_key'],
])('shows of the name %s what is no value: %s', (name, shown) => {
  expect(printable(name)).toBe(shown);
});

test.each([
  ['WIDEWINE', 'widevine'],
  ['fair_play', 'fairplay'],
  ['client_api_key', 'clientApiKey'],
  ['clients', 'client'],
  ['clearkey', undefined],
  ['', undefined],
  ['z'.repeat(100_000), undefined],
])('takes the name %.20s for %s', (name, meant) => {
  const known = ['cenc', 'playready', 'widevine', 'fairplay', 'contentId', 'client', 'clientApiKey'];
  expect(nearest(name, known)).toBe(meant);
});
