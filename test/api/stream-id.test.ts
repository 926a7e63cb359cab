import { isAbsolute, normalize } from 'node:path';
import fc from 'fast-check';
import { parseStreamId, type StreamId } from '../../src/api/stream-id';
import { keyFilePath } from '../../src/sidecar/storage/key-file-store';
import { anyCharacter } from '../support/any-character';
import { errorBody } from '../support/error-body';
import { CENC_ONLY, CENC_ONLY_FILE } from '../support/post-manual';
import { rawRequest } from '../support/raw-http';
import { API_KEY, sidecarForAll, startSidecar } from '../support/start-sidecar';

const sidecar = sidecarForAll();
const { api, files } = sidecar;
const HEADERS = { 'x-api-key': API_KEY };
const JSON_HEADERS = { ...HEADERS, 'content-type': 'application/json' };

const TOO_LONG = 'The stream id has 201 characters; 200 are allowed.';
const TOO_DEEP = 'The stream id has 9 parts; 8 are allowed.';
const EMPTY_PART = 'A part of the stream id is empty.';
const DOT = 'No part of a stream id may start with a dot.';
const KEY_FOLDER = 'No sub-folder of a stream id may end in .key.';
const RULE =
  'A stream id may have letters, digits and . _ - ~ @ +, and a / between sub-folders (%2F in an address).';
const UNENCODED = 'Write the slashes of a stream id as %2F.';
const MISSING = 'The stream id is missing: it is the last part of the path, /api/keyfile/{streamid}.';

const invalid = (description: string) => errorBody('invalid_stream_id', description);
const UNDECODABLE = errorBody(
  'invalid_path',
  'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.',
);

/** Each as it is in the request line, behind `/api/keyfile`. */
const REFUSED: [what: string, path: string, body: object][] = [
  ['nothing', '', invalid(MISSING)],
  ['an empty stream id', '/', invalid(MISSING)],
  ['a sub-folder that could be a key file', '/live.key%2Fx', invalid(KEY_FOLDER)],
  ['one in capitals', '/a%2Flive.KEY%2Fx', invalid(KEY_FOLDER)],
  ['two dots', '/..', invalid(DOT)],
  ['two dots in front of a name', '/%2e%2e%2fdemo', invalid(DOT)],
  ['two dots amid a name', '/a%2f..%2fdemo', invalid(DOT)],
  ['an unencoded way up', '/../demo', invalid(UNENCODED)],
  ['a way up that is encoded twice', '/%252e%252e%252fdemo', invalid(RULE)],
  ['a leading dot in a sub-folder', '/a%2F.hidden', invalid(DOT)],
  ['a NUL', '/demo%00', invalid(RULE)],
  ['bytes that are not UTF-8', '/%E0%A4%A', UNDECODABLE],
  ['half a percent-encoding', '/demo%', UNDECODABLE],
  ['a back-slash', '/a%5Cb', invalid(RULE)],
  ['a full-width dot', '/%EF%BC%8E%EF%BC%8E', invalid(RULE)],
  ['201 characters', `/${'a'.repeat(201)}`, invalid(TOO_LONG)],
  ['9 parts', `/${Array(9).fill('a').join('%2F')}`, invalid(TOO_DEEP)],
  ['a leading slash', '/%2Fetc%2Fpasswd', invalid(EMPTY_PART)],
  ['a trailing slash', '/demo%2F', invalid(EMPTY_PART)],
  ['an unencoded slash', '/a/b', invalid(UNENCODED)],
  ['an unencoded double slash', '//demo', invalid(UNENCODED)],
];

const TAKEN: [what: string, encoded: string, file: string][] = [
  ['200 characters', 'a'.repeat(200), `${'a'.repeat(200)}.key`],
  ['every character of the rule', 'Az0.9_-~@+', 'Az0.9_-~@+.key'],
  ['a name with its own extension', 'demo.key', 'demo.key.key'],
  ['a sub-folder with %2f in lower case', 'app%2fdemo', 'app/demo.key'],
  ['8 parts', 'a%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg%2Fh', 'a/b/c/d/e/f/g/h.key'],
  ['letters that are percent-encoded', '%64emo', 'demo.key'],
];

describe('a stream id in the path', () => {
  it.each(REFUSED)('answers 400 to %s, whatever the method', async (_what, path, body) => {
    const url = `/api/keyfile${path}`;
    const answers = [
      await rawRequest(sidecar.port, 'GET', url, HEADERS),
      await rawRequest(sidecar.port, 'DELETE', url, HEADERS),
      await rawRequest(sidecar.port, 'POST', url, JSON_HEADERS, JSON.stringify(CENC_ONLY)),
    ];
    expect(answers.map(({ status, text }) => [status, JSON.parse(text)])).toEqual(Array(3).fill([400, body]));
    expect(await files()).toEqual({});
  });

  it.each(TAKEN)('takes %s and names the file after it', async (_what, encoded, file) => {
    const url = `/api/keyfile/${encoded}`;
    const posted = await rawRequest(sidecar.port, 'POST', url, JSON_HEADERS, JSON.stringify(CENC_ONLY));
    expect([posted.status, posted.text]).toEqual([200, CENC_ONLY_FILE]);
    expect(await files()).toMatchObject({ [file]: CENC_ONLY_FILE });
    const deleted = await rawRequest(sidecar.port, 'DELETE', url, HEADERS);
    expect([deleted.status, deleted.text]).toEqual([200, CENC_ONLY_FILE]);
    expect(Object.values(await files()).filter((content) => content !== 'folder')).toEqual([]);
  });

  it('distinguishes streams by case', async () => {
    await api.post('/api/keyfile/Demo').send(CENC_ONLY).expect(200);
    await api.get('/api/keyfile/demo').expect(404);
    expect(await files()).toEqual({ 'Demo.key': CENC_ONLY_FILE });
  });

  it('logs the stream id only when it is a valid one', async () => {
    const { port, logEntries } = await startSidecar();
    await rawRequest(port, 'GET', '/api/keyfile/good', HEADERS);
    await rawRequest(port, 'GET', '/api/keyfile/bad%0Aid', HEADERS);
    expect((await logEntries()).map(({ streamId }) => streamId)).toEqual(['good', undefined]);
  });
});

/** Strings made of the parts of path tricks, and any strings. */
const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 250 }),
  fc
    .array(fc.constantFrom('.', '..', '/', '\\', '\0', '%2e', '~', 'a', 'key', ' ', '\n', 'é', '-'), {
      maxLength: 12,
    })
    .map((pieces) => pieces.join('')),
);

describe('parseStreamId and keyFilePath', () => {
  it('refuse a text or name a file inside the folder, whatever the text', () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom('/', '/srv/keys', '/srv/keys/'), (text, folder) => {
        const parsed = parseStreamId(text);
        if (!parsed.ok) return;
        const { path, subFolders, name } = keyFilePath(folder, parsed.value);
        const root = folder.endsWith('/') ? folder : `${folder}/`;
        expect(isAbsolute(path) && path === normalize(path) && path.startsWith(root)).toBe(true);
        expect(path).toBe(`${root}${text}.key`);
        expect([...subFolders, name].join('/')).toBe(`${text}.key`);
        for (const each of [...subFolders, name]) expect(each).not.toMatch(/^\.{0,2}$|[/\0]/);
      }),
      { numRuns: 1000 },
    );
  });

  it('refuse every other character, in whatever place', () => {
    const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
    const others = [...ascii.filter((each) => !/[\w.~@+/-]/.test(each)), 'é'];
    const taken = others.filter((each) => [`${each}a`, `a${each}`].some((text) => parseStreamId(text).ok));
    expect(taken).toEqual([]);
  });

  it('take every id that keeps the rule', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9_\-~@+][A-Za-z0-9._\-~@+]{0,20}$/);
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
        const text = parts.join('/');
        expect(parseStreamId(text)).toEqual({ ok: true, value: text });
      }),
    );
  });

  it('hold the second fence when the first is passed over', () => {
    for (const text of ['..', '../keys2/demo', 'a/../../demo', 'demo\0']) {
      expect(() => keyFilePath('/srv/keys', text as StreamId)).toThrow(RangeError);
    }
  });
});
