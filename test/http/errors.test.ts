import { z } from 'zod';
import { addressOf, networkOf } from '../../src/http/app';
import { ConfigError, readConfig, unknownVariables } from '../../src/http/config';
import { describeThrown, errorBody, systemCode, toHttpError } from '../../src/http/errors';
import { nearest, printable, readBody } from '../../src/http/faults';
import { type Content, html } from '../../src/http/html';

const SECRET = 'lnA03mLuxnL3toiRMxV4Zw==';

/** The error of `JSON.parse` for a broken body: V8 quotes the faulty text. */
function jsonError(): unknown {
  try {
    return JSON.parse(SECRET);
  } catch (thrown) {
    return thrown;
  }
}

function foreign(fields: object): Error {
  return Object.assign(new Error(`it quotes ${SECRET}`), fields);
}

function answerTo(thrown: unknown) {
  const error = toHttpError(thrown);
  return [error.status, errorBody(error)];
}

const description = 'The service failed. The cause is in its log under the request id of this answer.';
const SERVER_ERROR = [500, { errors: [{ code: 'server_error', description }] }];

describe('toHttpError', () => {
  const LARGE = 'The body is larger than this route accepts';
  const UTF8 = 'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.';
  const PARSE = { type: 'entity.parse.failed', status: 400, body: SECRET };
  it.each<[fields: object, problem: string]>([
    [PARSE, '400 malformed_json: The body is not valid JSON. Send one JSON object.'],
    [{ type: 'entity.too.large', limit: 65_536 }, `413 body_too_large: ${LARGE}: 64 KiB.`],
    [{ type: 'entity.too.large' }, `413 body_too_large: ${LARGE}.`],
    [
      { type: 'encoding.unsupported' },
      '415 unsupported_media_type: Send the body without that content-encoding.',
    ],
    [{ type: 'charset.unsupported' }, '415 unsupported_media_type: Send the body as UTF-8.'],
    [
      { type: 'request.size.invalid' },
      '400 invalid_body: The body is not as long as its content-length says.',
    ],
    [{ type: 'request.aborted' }, '400 invalid_body: The request ended before its body did.'],
    [{ name: 'URIError', status: 400 }, `400 invalid_path: ${UTF8}`],
    [{ status: 418 }, "418 i_m_a_teapot: The request can't be read: i'm a teapot."],
    [{ status: 499 }, "499 bad_request: The request can't be read: bad request."],
  ])('gives a foreign error words of its own: %j', (fields, problem) => {
    const { status, problems } = toHttpError(foreign(fields));
    expect(problems.map(({ code, description }) => `${status} ${code}: ${description}`)).toEqual([problem]);
  });

  it.each([
    ...[undefined, 'text', {}, new Error(SECRET), jsonError()],
    ...[{ status: 503 }, { status: 302 }, { code: 'ENOENT' }].map(foreign),
  ])('makes whatever else is thrown a server_error and keeps it as the cause', (thrown) => {
    expect(answerTo(thrown)).toEqual(SERVER_ERROR);
    expect(toHttpError(thrown).cause).toBe(thrown);
  });
});

describe('describeThrown', () => {
  it('keeps name, code, message, frames and cause of an error as plain data', () => {
    const cause = Object.assign(new Error('no entry'), { code: 'ENOENT', syscall: 'open' });
    const described = describeThrown(new TypeError('failed', { cause }));
    const frames = expect.arrayContaining([expect.stringMatching(/^at .*errors\.test\.ts/)]);
    expect(JSON.parse(JSON.stringify(described))).toEqual({
      name: 'TypeError',
      message: 'failed',
      stack: frames,
      cause: { name: 'Error', code: 'ENOENT', syscall: 'open', message: 'no entry', stack: frames },
    });
  });

  it('leaves out the message of a JSON error, in its stack too and at any depth', () => {
    expect((jsonError() as Error).message).toContain(SECRET.slice(0, 5));
    for (const thrown of [jsonError(), new Error('outer', { cause: jsonError() })]) {
      expect(JSON.stringify(describeThrown(thrown))).not.toContain(SECRET.slice(0, 5));
    }
  });

  it('leaves out what a message of several lines puts in front of the frames', () => {
    const described = describeThrown(new Error('first\n  second line\nthird'));
    expect(described.stack).toEqual(expect.not.arrayContaining([expect.stringContaining('second')]));
  });

  it('comes to an end with an error that causes itself', () => {
    const error: Error & { cause?: unknown } = new Error('loop');
    error.cause = error;
    expect(JSON.stringify(describeThrown(error)).match(/"loop"/g)).toHaveLength(5);
  });

  it.each([
    ['text', { name: 'string' }],
    [undefined, { name: 'undefined' }],
    [null, { name: 'object' }],
    [{ code: 5, message: [] }, { name: 'object' }],
  ])('describes %j, which is no error', (thrown, described) => {
    expect(describeThrown(thrown)).toEqual(described);
  });
});

describe('systemCode', () => {
  it.each([
    [Object.assign(new Error(), { code: 'ENOENT' }), 'ENOENT'],
    [{ code: 'EACCES' }, 'EACCES'],
    // What Node says of errors that it has no name for.
    [{ code: 'Unknown system error -116', errno: -116 }, 'ESTALE'],
    [{ code: 'Unknown system error -122', errno: -122 }, 'EDQUOT'],
    [{ code: 5 }, undefined],
    [undefined, undefined],
    ['ENOENT', undefined],
  ])('finds the code in %j', (thrown, code) => {
    expect(systemCode(thrown)).toBe(code);
  });
});

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

test('takes a name in other writing, or a part of one, for the known one', () => {
  const known = ['cenc', 'widevine', 'fairplay', 'client', 'clientApiKey'];
  const meant = ['WIDEWINE', 'client_api_key', 'clients', 'clearkey', 'z'.repeat(100_000)];
  const near = ['widevine', 'clientApiKey', 'client', undefined, undefined];
  expect(meant.map((name) => nearest(name, known))).toEqual(near);
});

const variables = z.object({
  APP_NAME: z.string('is missing'),
  APP_SIZE: z.string().regex(/^\d+$/, 'must be a number').default('7'),
});

test('a configuration has the variables of its schema and no others, an empty one as absent', () => {
  const env = { APP_NAME: 'a', APP_SIZE: '', OTHER: 'x' };
  expect(readConfig(variables, env)).toEqual({ APP_NAME: 'a', APP_SIZE: '7' });
});

test('a configuration is refused with one error that holds every fault and quotes no value', () => {
  const error = new ConfigError(['APP_NAME: is missing', 'APP_SIZE: must be a number']);
  expect(() => readConfig(variables, { APP_SIZE: 'secret' })).toThrow(error);
  const [one, two] = ['  - APP_NAME: is missing', '  - APP_SIZE: must be a number'];
  expect(error.message).toBe(`The configuration has 2 faults:\n${one}\n${two}`);
  expect(() => readConfig(variables, {})).toThrow(`The configuration has a fault:\n${one}`);
});

test('a variable that has the prefix and is not known is named with the nearest one', () => {
  const env = { APP_NAME: 'a', APP_NAEM: 'secret', APP_SOMETHING_ELSE: 'secret', OTHER: 'x' };
  const unknown = ['APP_NAEM (did you mean APP_NAME?)', 'APP_SOMETHING_ELSE'];
  expect(unknownVariables('APP_', ['APP_NAME', 'APP_SIZE'], env)).toEqual(unknown);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
  ['fe80::1:2:3:4%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  [undefined, 'unknown'],
  ['/run/socket', 'unknown'],
])('takes %s for an address of the network %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:1:2', '::ffff:1:2'],
  [undefined, 'unknown'],
])('writes the address %s as %s', (remoteAddress, written) => {
  expect(addressOf(Object({ socket: { remoteAddress } }))).toBe(written);
});

test.each<[does: string, value: Content, markup: string]>([
  ['escapes markup in text', '<b>alert(1)</b>', '<p>&#60;b&#62;alert(1)&#60;/b&#62;</p>'],
  ['escapes what ends an attribute', `" ' \``, '<p>&#34; &#39; &#96;</p>'],
  ['escapes an entity, so that it shows as it is', '&lt;', '<p>&#38;lt;</p>'],
  ['keeps what another template made', html`<b>${'<'}</b>`, '<p><b>&#60;</b></p>'],
  ['joins a list without commas', ['a', html`<br>`, '<'], '<p>a<br>&#60;</p>'],
  ['shows a number, zero too', 0, '<p>0</p>'],
  ['shows nothing for undefined', undefined, '<p></p>'],
  ['shows nothing for false', false, '<p></p>'],
])('%s', (_does, value, markup) => {
  expect(html`<p>${value}</p>`.toString()).toBe(markup);
});

test('fills in several values in their order', () => {
  expect(html`${'a'}-${'b'}-${'c'}`.toString()).toBe('a-b-c');
});
