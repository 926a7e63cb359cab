import { once } from 'node:events';
import { connect } from 'node:net';
import fs from 'fs-extra';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { rawRequest } from '../../support/raw-http';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const PATH = '/api/keyfiles';

const refused = (code: string, description: string) => ({ errors: [{ code, description }] });

describe('a batch is refused as a whole', () => {
  it.each<[what: string, body: object, description: string]>([
    ['as a list', [], 'The body must be a JSON object.'],
    ['with nothing in it', {}, 'Give streams, groups, or both. Nothing was written.'],
    [
      'with null in it',
      { streams: null, groups: null },
      'Give streams, groups, or both. Nothing was written.',
    ],
    ['when streams are no list', { streams: {} }, 'streams: must be a list'],
    ['when groups are no list', { groups: 'a' }, 'groups: must be a list'],
  ])('%s', async (_what, body, description) => {
    const sidecar = await startSidecar();
    await sidecar.api.post(PATH).send(body).expect(400, refused('invalid_body', description));
  });

  it('with a field that it has not, told by its nearest', async () => {
    const sidecar = await startSidecar();
    const streams = [{ streamid: 'a', ...CENC_ONLY }];
    await sidecar.api
      .post(PATH)
      .send({ stream: streams, streams })
      .expect(400, refused('unknown_field', 'stream is not a field of this request. Did you mean streams?'));
    expect(await sidecar.files()).toEqual({});
  });

  it('as malformed JSON, as another type, and beyond 16 MiB', async () => {
    const sidecar = await startSidecar();
    const { api } = sidecar;
    await api
      .post(PATH)
      .type('json')
      .send('{"streams":[')
      .expect(400, refused('malformed_json', 'The body is not valid JSON. Send one JSON object.'));
    await api.post(PATH).type('text').send('a').expect(415);
    const large = JSON.stringify({ streams: [{ streamid: 'a'.repeat(16 * 1024 * 1024) }] });
    await api
      .post(PATH)
      .type('json')
      .send(large)
      .expect(413, refused('body_too_large', 'The body is larger than this route accepts: 16384 KiB.'));
  });
});

describe('an entry that cannot be read fails alone', () => {
  it.each<[what: string, entry: unknown, ...errors: [code: string, description: string][]]>([
    ['no object', 'a', ['invalid_body', 'streams.1: must be an object']],
    ['a list', [], ['invalid_body', 'streams.1: must be an object']],
    ['null', null, ['invalid_body', 'streams.1: must be an object']],
    ['no stream id', CENC_ONLY, ['invalid_body', 'streams.1: streamid is missing']],
    ['a number as stream id', { streamid: 7 }, ['invalid_body', 'streams.1: streamid must be a string']],
    [
      'a misspelt stream id',
      { streamId: 'a', ...CENC_ONLY },
      ['unknown_field', 'streams.1: streamId is not a field of this request. Did you mean streamid?'],
    ],
    [
      'a stream id that leaves the folder',
      { streamid: '../a', ...CENC_ONLY },
      ['invalid_stream_id', 'streams.1: No part of a stream id may start with a dot.'],
    ],
    [
      'a thousand fields',
      Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, 1])),
      ['invalid_body', 'streams.1: has 1000 fields, far more than there are'],
    ],
  ])('%s', async (_what, entry, ...errors) => {
    const sidecar = await startSidecar();
    const streams = [{ streamid: 'before', ...CENC_ONLY }, entry, { streamid: 'after', ...CENC_ONLY }];
    const { body } = await sidecar.api.post(PATH).send({ streams }).expect(200);
    expect(body.results[1]).toEqual({
      index: expect.any(Number),
      streamid: null,
      result: 'failed',
      errors: errors.map(([code, description]) => ({ code, description })),
    });
    expect(await sidecar.files()).toEqual({ 'after.key': CENC_ONLY_FILE, 'before.key': CENC_ONLY_FILE });
  });

  it.each<[what: string, fields: object, ...errors: [code: string, description: string][]]>([
    [
      'no keys',
      {},
      [
        'invalid_body',
        'The body names no keys. Give cenc (with playready and widevine) and fairplay, or one of the two, or a CPIX document with cpix, or have them provisioned with client, clientApiKey and contentId.',
      ],
    ],
    [
      'a misspelt field',
      { ...CENC_ONLY, playredy: {} },
      ['unknown_field', 'playredy is not a field of this request. Did you mean playready?'],
    ],
    [
      'a prototype',
      JSON.parse('{"__proto__":{"cenc":{}},"constructor":1,"cenc":null}'),
      ['unknown_field', expect.stringContaining('__proto__ is not a field')],
      ['unknown_field', expect.stringContaining('constructor is not a field')],
    ],
    [
      'no provider to ask',
      { client: 'a', clientApiKey: 'b', contentId: 'c' },
      [
        'provisioning_not_configured',
        "Keys can't be provisioned: set PACKAGERDRMAPI_GRANDCENTRALURL and PACKAGERDRMAPI_KEYPROVIDERURL, or supply cenc and fairplay in the body.",
      ],
    ],
  ])('%s', async (_what, fields, ...errors) => {
    const sidecar = await startSidecar();
    const streams = [
      { streamid: 'a', ...fields },
      { streamid: 'b', ...CENC_ONLY },
    ];
    const text = JSON.stringify({ streams }).replace('{"streamid":"a"', `{"streamid":"a"${protoOf(fields)}`);
    const { body } = await sidecar.api.post(PATH).type('json').send(text).expect(200);
    expect(body.results[0]).toEqual({
      index: expect.any(Number),
      streamid: 'a',
      result: 'failed',
      errors: errors.map(([code, description]) => ({ code, description })),
    });
    expect(await sidecar.files()).toEqual({ 'b.key': CENC_ONLY_FILE });
  });

  /** The one field that a spread leaves behind. */
  function protoOf(fields: object): string {
    return Object.hasOwn(fields, '__proto__') ? ',"__proto__":{"cenc":{}}' : '';
  }

  it('tells ten faults of it at most', async () => {
    const sidecar = await startSidecar();
    const cenc = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, 1]));
    const { body } = await sidecar.api
      .post(PATH)
      .send({ streams: [{ streamid: 'a', cenc }] })
      .expect(200);
    expect(body.results[0].errors).toHaveLength(10);
  });
});

describe('a group that cannot be read fails as one', () => {
  const members = ['a', 'b'];
  it.each<[what: string, group: unknown, ...errors: [code: string, description: string][]]>([
    ['no object', 'a', ['invalid_body', 'groups.0: must be an object']],
    [
      'no members',
      CENC_ONLY,
      ['invalid_body', 'groups.0: give its members, or its smil, or with cpix its tracks'],
    ],
    [
      'misspelt members',
      { memebrs: members, ...CENC_ONLY },
      ['unknown_field', 'groups.0: memebrs is not a field of this request. Did you mean members?'],
      ['invalid_body', 'groups.0: give its members, or its smil, or with cpix its tracks'],
    ],
    [
      'members and a document',
      { members, smil: '<smil/>' },
      ['invalid_body', 'groups.0: give its members or its smil, not both'],
    ],
    ['members that are no list', { members: 'a' }, ['invalid_body', 'groups.0: members: must be a list']],
    [
      'members that are an empty text',
      { members: '' },
      ['invalid_body', 'groups.0: members: must be a list'],
    ],
    ['members of whom there is none', { members: [] }, ['invalid_body', 'groups.0: members: is empty']],
    [
      'a document that is none',
      { smil: ['a'] },
      ['invalid_body', 'groups.0: smil: must be a string, the text of the document'],
    ],
    [
      'a document that is broken',
      { smil: '<smil>' },
      ['invalid_body', 'groups.0: smil: is not well-formed XML: see line 1'],
    ],
    [
      'keys of a third kind',
      { members, keys: 'both' },
      ['invalid_body', 'groups.0: keys: must be "same", "each", "quality", or the keys of each quality'],
    ],
    [
      'a folder that is none, members missing, limits and keys misplaced: all of it is told',
      { folder: 7, heights: { SD: 576 }, keys: { '?': {} }, ...CENC_ONLY },
      ['invalid_body', 'groups.0: folder: must be a string'],
      ['invalid_body', 'groups.0: give its members, or its smil, or with cpix its tracks'],
      [
        'invalid_body',
        'groups.0: keys: the name of a quality must be 1 to 20 letters, digits and _ - (SD, HD, AUDIO)',
      ],
      [
        'invalid_body',
        'groups.0: heights: tells qualities of a SMIL document; leave it out without smil and keys by quality',
      ],
      [
        'invalid_body',
        'groups.0: cenc: would be that of every quality; put it into keys, next to the quality that has it.',
      ],
    ],
    ['a folder that is none', { members, folder: 7 }, ['invalid_body', 'groups.0: folder: must be a string']],
    ...['', '/', 'live/', '/live', '../live', 'a b'].map((folder): [string, unknown, [string, string]] => [
      `the folder "${folder}"`,
      { members, folder },
      [
        'invalid_body',
        'groups.0: folder: must be the first parts of a stream id, without a slash at either end',
      ],
    ]),
  ])('%s', async (_what, group, ...errors) => {
    const sidecar = await startSidecar();
    const { body } = await sidecar.api
      .post(PATH)
      .send({ groups: [group, { members: ['other'], ...CENC_ONLY }] })
      .expect(200);
    expect(body.results).toEqual([
      {
        index: expect.any(Number),
        streamid: null,
        result: 'failed',
        errors: errors.map(([code, description]) => ({ code, description })),
      },
      expect.objectContaining({ index: expect.any(Number), streamid: 'other', result: 'created' }),
    ]);
    expect(await sidecar.files()).toEqual({ 'other.key': CENC_ONLY_FILE });
  });

  it('but a member that cannot be read fails alone', async () => {
    const sidecar = await startSidecar();
    const group = {
      members: [
        7,
        null,
        { streamid: 'a', contentid: 'x' },
        { contentId: 'x' },
        '',
        { streamid: 'b', contentId: 'x' },
        'c',
      ],
      folder: 'live',
      ...CENC_ONLY,
    };
    const { body } = await sidecar.api
      .post(PATH)
      .send({ groups: [group] })
      .expect(200);
    const at = (index: number, code: string, description: string) => ({
      index: expect.any(Number),
      streamid: null,
      result: 'failed',
      errors: [{ code, description: `groups.0.members.${index}: ${description}` }],
    });
    const notAMember = 'must be a stream id, or an object with streamid and contentId or quality';
    expect(body.results).toEqual([
      at(0, 'invalid_body', notAMember),
      at(1, 'invalid_body', notAMember),
      at(
        2,
        'unknown_field',
        'contentid is not a field of this request. Fields of a member: streamid, contentId, quality.',
      ),
      at(3, 'invalid_body', 'streamid is missing'),
      at(4, 'invalid_stream_id', 'A part of the stream id is empty.'),
      {
        index: expect.any(Number),
        streamid: 'live/b',
        result: 'failed',
        errors: [
          {
            code: 'invalid_body',
            description:
              'contentId: the members of this group have the same keys; leave it out, or give the group keys: "each".',
          },
        ],
      },
      expect.objectContaining({ index: expect.any(Number), streamid: 'live/c', result: 'created' }),
    ]);
  });

  it('and faults of its keys are told for every member', async () => {
    const sidecar = await startSidecar();
    const { body } = await sidecar.api
      .post(PATH)
      .send({ groups: [{ members, cenc: 7 }] })
      .expect(200);
    const errors = [{ code: 'invalid_body', description: 'cenc: must be an object' }];
    expect(body.results).toEqual(
      members.map((streamid) => ({ index: 0, streamid, result: 'failed', errors })),
    );
  });
});

describe('a bomb', () => {
  const elements = (count: number) =>
    Array.from({ length: count }, (_, index) => `<video src="a${index}"/>`).join('');
  it.each([
    [
      'of entities',
      '<!DOCTYPE s [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><smil><body>&b;</body></smil>',
      'has a DOCTYPE; leave it out',
    ],
    ['of 10 MB', `<smil><body>${' '.repeat(10_000_000)}`, 'is longer than 1048576 characters'],
    [
      'of 100,000 members',
      `<smil><body>${elements(100_000)}</body></smil>`,
      'is longer than 1048576 characters',
    ],
    [
      'of 40,000 members',
      `<smil><body>${elements(40_000)}</body></smil>`,
      'has more than 1000 video and audio elements',
    ],
    ['of elements in elements', `<smil><body>${'<par>'.repeat(100_000)}`, 'has elements more than 50 deep'],
  ])('%s goes off without harm', async (_what, smil, fault) => {
    const sidecar = await startSidecar();
    const body = {
      streams: [{ streamid: 'a', ...CENC_ONLY }],
      groups: [{ smil, ...CENC_ONLY }],
    };
    const [answer] = await Promise.all([
      sidecar.api.post(PATH).send(body).expect(200),
      sidecar.unauthenticated.get('/healthz').expect(200),
    ]);
    const errors = [{ code: 'invalid_body', description: `groups.0: smil: ${fault}` }];
    expect(answer.body.results).toEqual([
      expect.objectContaining({ index: expect.any(Number), streamid: 'a', result: 'created' }),
      { index: expect.any(Number), streamid: null, result: 'failed', errors },
    ]);
    expect(await sidecar.files()).toEqual({ 'a.key': CENC_ONLY_FILE });
  });
});

describe('when the folder is gone', () => {
  it('every stream fails, and the log says once why', async () => {
    const sidecar = await startSidecar();
    await fs.remove(sidecar.folder);
    const streams = Array.from({ length: 50 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
    const { body } = await sidecar.api
      .post(PATH)
      .send({ streams: [...streams, { streamid: 'bad' }] })
      .expect(200);
    expect(body.summary).toEqual({ created: 0, changed: 0, unchanged: 0, failed: 51 });
    expect(body.results[0].errors).toEqual([
      {
        code: 'key_files_not_writable',
        description:
          'The key-file folder is not writable: the folder is gone (ENOENT). Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.',
      },
    ]);
    const entries = await sidecar.logEntries();
    expect(entries.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({
        message: 'streams of a batch failed',
        code: 'key_files_not_writable',
        status: 500,
        count: 50,
        cause: expect.objectContaining({ code: 'ENOENT' }),
      }),
    ]);
    expect(entries.filter(({ message }) => message === 'batch')).toEqual([
      expect.objectContaining({ dryRun: false, created: 0, changed: 0, unchanged: 0, failed: 51 }),
    ]);
  });
});

describe('a client', () => {
  it('without an API key is refused before its body is read', async () => {
    const { unauthenticated } = await startSidecar();
    await unauthenticated.post(PATH).send({ streams: [] }).expect(401);
  });

  it('that goes away has its batch done all the same', async () => {
    const sidecar = await startSidecar();
    const streams = Array.from({ length: 500 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
    const body = JSON.stringify({ streams });
    const socket = connect(sidecar.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const names = () => fs.readdir(sidecar.folder);
    await until(async () => (await names()).some((name) => name.endsWith('.key')));
    socket.destroy();
    await until(async () => (await names()).filter((name) => name.endsWith('.key')).length === 500);
  }, 20_000);

  it('that sends half a batch has none of it done, and leaves its place to others', async () => {
    const sidecar = await startSidecar();
    for (let count = 0; count < 6; count += 1) {
      const socket = connect(sidecar.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(
        `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"streams":[{"streamid":"a"`,
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.destroy();
    }
    const body = JSON.stringify({ streams: [{ streamid: 'b', ...CENC_ONLY }] });
    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
    await until(async () => (await rawRequest(sidecar.port, 'POST', PATH, headers, body)).status === 200);
    expect(await sidecar.files()).toEqual({ 'b.key': CENC_ONLY_FILE });
  });
});
