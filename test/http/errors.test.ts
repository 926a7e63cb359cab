import { describeThrown, errorBody, HttpError, systemCode, toHttpError } from '../../src/http/errors';

const SECRET = 'lnA03mLuxnL3toiRMxV4Zw==';

/** What `JSON.parse` of a broken body throws: V8 quotes the text it chokes on. */
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

function single(status: number, code: string, description: string) {
  return [status, { errors: [{ code, description }] }];
}

const SERVER_ERROR = single(
  500,
  'server_error',
  'The service failed. The cause is in its log under the request id of this answer.',
);

describe('toHttpError', () => {
  it('leaves an HttpError as it is, with all its problems in their order', () => {
    const problems = [
      { code: 'first', description: 'One.' },
      { code: 'second', description: 'Two.' },
    ];
    const error = new HttpError(422, problems, { headers: { allow: 'GET' } });
    expect(toHttpError(error)).toBe(error);
    expect(errorBody(error)).toEqual({ errors: problems });
  });

  it.each<[fields: object, answer: unknown[]]>([
    [
      { type: 'entity.parse.failed', status: 400, body: SECRET },
      single(400, 'malformed_json', 'The body is not valid JSON. Send one JSON object.'),
    ],
    [
      { type: 'entity.too.large', limit: 65_536 },
      single(413, 'body_too_large', 'The body is larger than this route accepts: 64 KiB.'),
    ],
    [
      { type: 'entity.too.large' },
      single(413, 'body_too_large', 'The body is larger than this route accepts.'),
    ],
    [
      { type: 'encoding.unsupported' },
      single(415, 'unsupported_media_type', 'Send the body without that content-encoding.'),
    ],
    [{ type: 'charset.unsupported' }, single(415, 'unsupported_media_type', 'Send the body as UTF-8.')],
    [
      { type: 'request.size.invalid' },
      single(400, 'invalid_body', 'The body is not as long as its content-length says.'),
    ],
    [{ type: 'request.aborted' }, single(400, 'invalid_body', 'The request ended before its body did.')],
    [
      { name: 'URIError', status: 400 },
      single(
        400,
        'invalid_path',
        'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.',
      ),
    ],
    [{ status: 418 }, single(418, 'i_m_a_teapot', "The request can't be read: i'm a teapot.")],
    [{ status: 499 }, single(499, 'bad_request', "The request can't be read: bad request.")],
    [{ status: 503 }, SERVER_ERROR],
    [{ status: 302 }, SERVER_ERROR],
    [{ code: 'ENOENT' }, SERVER_ERROR],
  ])('gives a foreign error words of its own: %j', (fields, answer) => {
    expect(answerTo(foreign(fields))).toEqual(answer);
  });

  it.each([[undefined], [null], ['text'], [5], [{}], [new Error(SECRET)], [jsonError()]])(
    'makes whatever else is thrown a server_error and keeps it as the cause',
    (thrown) => {
      expect(answerTo(thrown)).toEqual(SERVER_ERROR);
      expect(toHttpError(thrown).cause).toBe(thrown);
    },
  );
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
    [{ code: 5 }, undefined],
    [undefined, undefined],
    ['ENOENT', undefined],
  ])('finds the code in %j', (thrown, code) => {
    expect(systemCode(thrown)).toBe(code);
  });
});
